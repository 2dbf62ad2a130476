//! Everything that happens in a run passes here once: into the record, the logs and before the eyes
//! of whoever watches. Secrets are removed on the way in.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_local::{EventFile, RunLogs};
use nimbus_orchestrator::record::RunEvent;

use super::view::View;

pub(super) struct Hub {
    inner: Mutex<Inner>,
}

struct Inner {
    record: Option<EventFile>,
    logs: Option<RunLogs>,
    view: View,
    /// The first thing that could not be written.
    trouble: Option<String>,
}

/// RFC 3339 with milliseconds.
pub(super) fn now() -> String {
    Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

impl Hub {
    pub(super) fn new(view: View) -> Self {
        Self {
            inner: Mutex::new(Inner {
                record: None,
                logs: None,
                view,
                trouble: None,
            }),
        }
    }

    /// From now on events are recorded.
    pub(super) fn record(&self, record: EventFile, logs: RunLogs) {
        let mut inner = self.lock();
        inner.record = Some(record);
        inner.logs = Some(logs);
    }

    /// Tells everybody. A record that cannot be written does not stop what is running; what starts
    /// next does, see [`must_tell`](Self::must_tell).
    pub(super) fn tell(&self, event: RunEvent) {
        // The trouble is kept and told at the end.
        let _ = self.must_tell(event);
    }

    /// Tells everybody, and fails if the record does not have it.
    pub(super) fn must_tell(&self, event: RunEvent) -> Result<()> {
        let event = cleaned(event);
        let mut inner = self.lock();
        let Inner {
            record,
            logs,
            view,
            trouble,
        } = &mut *inner;
        view.event(&event);
        let mut wrong = |error: std::io::Error| {
            let message = format!("the run's record cannot be written: {error}");
            trouble.get_or_insert_with(|| message.clone());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        };
        if let Some(logs) = logs
            && let Err(error) = logs.event(&event)
        {
            // A log is only a view of the record.
            let _ = wrong(error);
        }
        match record {
            Some(record) => record.append(&event).map_err(wrong),
            None => Ok(()),
        }
    }

    /// What was told is on disk from now on; it must be before anything changes.
    pub(super) fn settle(&self) -> Result<()> {
        let Some(record) = &mut self.lock().record else {
            return Ok(());
        };
        record.settle().map_err(|error| {
            let message = format!("the run's record cannot be written: {error}");
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    /// A text for the log only, such as the plan.
    pub(super) fn log(&self, component: &str, text: &str) {
        if let Some(logs) = &mut self.lock().logs {
            let _ = logs.text(component, &nimbus_telemetry::redact(text));
        }
    }

    /// Shows the rest and takes the picture away. Returns what could not be written.
    pub(super) fn close(&self) -> Option<String> {
        let mut inner = self.lock();
        inner.view.end();
        inner.trouble.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(redacted) = nimbus_telemetry::redact(text) {
        *text = redacted;
    }
}

fn cleaned(mut event: RunEvent) -> RunEvent {
    match &mut event {
        RunEvent::Run { message, .. } => message.iter_mut().for_each(clean),
        RunEvent::Unit {
            message, reason, ..
        } => {
            message.iter_mut().for_each(clean);
            reason.iter_mut().for_each(clean);
        }
        RunEvent::Diagnostic { message, .. } => clean(message),
        RunEvent::Check { message, .. } => message.iter_mut().for_each(clean),
        RunEvent::Resource { id, .. } => id.iter_mut().for_each(clean),
        RunEvent::Plan { .. } => {}
    }
    event
}
