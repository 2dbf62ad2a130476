//! Everything that happens in a run passes here once: before the eyes of whoever watches, into the
//! record and into the logs. Secrets are removed on the way in.
//!
//! Publishing never waits for a disk: engines publish from the middle of a step. A task of its own
//! writes, in order; whoever must know that something is on a disk before it goes on asks for that.

use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::{RunEvent, RunId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::ports::{RunLog, RunStore};

/// So many events are written at once.
const BATCH: usize = 256;

/// Sees every event when it happens. It must not block.
pub trait RunObserver: Send + Sync {
    fn event(&self, event: &RunEvent);
}

/// RFC 3339 with milliseconds.
pub fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Where events of a run are published.
#[derive(Default)]
pub struct EventBus {
    observer: Mutex<Option<Arc<dyn RunObserver>>>,
    recorder: Mutex<Option<EventRecorder>>,
}

struct EventRecorder {
    sender: mpsc::UnboundedSender<RecorderMessage>,
    task: AbortOnDropHandle<Option<String>>,
}

enum RecorderMessage {
    Event(RunEvent),
    /// Everything before it is to be on a disk, and somebody waits for that.
    Settle(oneshot::Sender<Result<()>>),
    Text {
        source: String,
        text: String,
    },
}

impl EventBus {
    /// From now on this one sees what happens; before, nobody did.
    pub fn observe(&self, observer: Arc<dyn RunObserver>) {
        *self.observer.lock() = Some(observer);
    }

    /// From now on events are recorded.
    pub(crate) fn record(&self, store: Arc<dyn RunStore>, run: RunId, log: Box<dyn RunLog>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let task = AbortOnDropHandle::new(tokio::spawn(write(store, run, log, receiver)));
        *self.recorder.lock() = Some(EventRecorder { sender, task });
    }

    /// Tells everybody. What cannot be written does not stop what is running; what starts next is
    /// stopped by [`settle`](Self::settle).
    pub fn publish(&self, event: RunEvent) {
        let event = redacted(event);
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer.event(&event);
        }
        self.send(RecorderMessage::Event(event));
    }

    /// A text for the log only, such as the plan. `source` says what it is.
    pub(crate) fn log(&self, source: &str, text: &str) {
        self.send(RecorderMessage::Text {
            source: source.to_owned(),
            text: nimbus_telemetry::redact(text).into_owned(),
        });
    }

    /// Returns when everything that was published is on a disk, and fails from the first thing on that
    /// could not be written. Nothing may change that the record does not know of, so this comes
    /// before every change.
    pub(crate) async fn settle(&self) -> Result<()> {
        let (sender, settled) = oneshot::channel();
        if !self.send(RecorderMessage::Settle(sender)) {
            return Ok(());
        }
        settled.await.unwrap_or_else(|_| {
            let message = "the run's record is no longer written";
            Err(Error::new(ErrorCode::INTERNAL, message))
        })
    }

    /// Writes what is left and ends. Returns the first thing that could not be written.
    pub(crate) async fn close(&self) -> Option<String> {
        let EventRecorder { sender, task } = self.recorder.lock().take()?;
        drop(sender);
        match task.await {
            Ok(trouble) => trouble,
            Err(error) => Some(format!(
                "the run's record was not written to its end: {error}"
            )),
        }
    }

    /// Whether somebody writes.
    fn send(&self, message: RecorderMessage) -> bool {
        let recorder = self.recorder.lock();
        recorder
            .as_ref()
            .is_some_and(|recorder| recorder.sender.send(message).is_ok())
    }
}

/// Writes until nobody can publish any more.
async fn write(
    store: Arc<dyn RunStore>,
    run: RunId,
    mut log: Box<dyn RunLog>,
    mut receiver: mpsc::UnboundedReceiver<RecorderMessage>,
) -> Option<String> {
    let mut trouble: Option<String> = None;
    // Kept: what was lost is not written by a later batch that works, and whoever asks only then must
    // not be told that everything before is on a disk.
    let mut lost: Option<(ErrorCode, String)> = None;
    let mut messages = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut messages, BATCH).await > 0 {
        let mut events = Vec::with_capacity(messages.len());
        let mut waiting = Vec::new();
        for message in messages.drain(..) {
            let logged = match message {
                RecorderMessage::Event(event) => {
                    let logged = log.event(&event);
                    events.push(event);
                    logged
                }
                RecorderMessage::Text { source, text } => log.text(&source, &text),
                RecorderMessage::Settle(sender) => {
                    waiting.push(sender);
                    Ok(())
                }
            };
            // A log is only a view of the record, so the run goes on without it.
            if let Err(error) = logged {
                trouble.get_or_insert_with(|| format!("the run's log cannot be written: {error}"));
            }
        }
        // What a later attempt goes by must not be lost to a crash. That a unit begins is settled
        // by whoever begins it, and everything else is for people.
        let durable = !waiting.is_empty() || events.iter().any(decides_resumption);
        let written = store.append(run, &events, durable).await;
        if let Err(error) = &written {
            trouble.get_or_insert_with(|| error.message().to_owned());
            lost.get_or_insert_with(|| (error.code(), error.message().to_owned()));
        }
        for sender in waiting {
            let result = match &lost {
                None => Ok(()),
                Some((code, message)) => Err(Error::new(*code, message.clone())),
            };
            // Whoever no longer waits was stopped.
            let _ = sender.send(result);
        }
    }
    trouble
}

fn decides_resumption(event: &RunEvent) -> bool {
    match event {
        RunEvent::Unit { status, .. } => !matches!(status.as_str(), "running" | "skipped"),
        RunEvent::Run { .. } => true,
        RunEvent::Plan { .. }
        | RunEvent::Resource { .. }
        | RunEvent::Check { .. }
        | RunEvent::Diagnostic { .. } => false,
    }
}

fn redact(text: &mut String) {
    if let std::borrow::Cow::Owned(clean) = nimbus_telemetry::redact(text) {
        *text = clean;
    }
}

fn redacted(mut event: RunEvent) -> RunEvent {
    match &mut event {
        RunEvent::Run {
            message, warnings, ..
        } => {
            message.iter_mut().for_each(redact);
            warnings.iter_mut().for_each(redact);
        }
        RunEvent::Unit {
            message, reason, ..
        } => {
            message.iter_mut().for_each(redact);
            reason.iter_mut().for_each(redact);
        }
        RunEvent::Diagnostic { message, .. } => redact(message),
        RunEvent::Check { message, .. } => message.iter_mut().for_each(redact),
        RunEvent::Resource { id, properties, .. } => {
            id.iter_mut().for_each(redact);
            for property in properties {
                property.old.iter_mut().for_each(redact);
                property.new.iter_mut().for_each(redact);
            }
        }
        RunEvent::Plan { .. } => {}
    }
    event
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use nimbus_core::EnvironmentName;
    use tokio::sync::Notify;

    use super::*;
    use crate::record::{RunRecord, RunRequest};

    /// Its first append fails, and somebody hears of it.
    #[derive(Default)]
    struct FailingStore {
        appends: Mutex<usize>,
        failed: Notify,
    }

    fn not_asked<T>() -> Result<T> {
        Err(Error::new(ErrorCode::INTERNAL, "nobody asks for this"))
    }

    #[async_trait]
    impl RunStore for FailingStore {
        async fn begin(&self, _: RunRequest) -> Result<RunRecord> {
            not_asked()
        }

        async fn find(&self, _: RunId) -> Result<RunRecord> {
            not_asked()
        }

        async fn of_environment(&self, _: EnvironmentName) -> Result<Vec<RunRecord>> {
            not_asked()
        }

        async fn events(&self, _: RunId) -> Result<Vec<RunEvent>> {
            not_asked()
        }

        async fn append(&self, _: RunId, _: &[RunEvent], _: bool) -> Result<()> {
            let mut appends = self.appends.lock();
            *appends += 1;
            if *appends == 1 {
                self.failed.notify_one();
                return Err(Error::new(ErrorCode::FILE_UNWRITABLE, "no space"));
            }
            Ok(())
        }

        async fn prune(&self, _: EnvironmentName, _: usize) -> Result<usize> {
            not_asked()
        }
    }

    struct SilentLog;

    impl RunLog for SilentLog {
        fn event(&mut self, _: &RunEvent) -> std::io::Result<()> {
            Ok(())
        }

        fn text(&mut self, _: &str, _: &str) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_was_lost_is_told_to_whoever_asks_later() {
        let store = Arc::new(FailingStore::default());
        let bus = EventBus::default();
        let as_store = Arc::clone(&store) as Arc<dyn RunStore>;
        bus.record(as_store, RunId(1), Box::new(SilentLog));
        let started = RunEvent::run(
            String::new(),
            RunId(1),
            nimbus_orchestrator::RunStatus::Started,
        );
        bus.publish(started);
        // Nobody waits for this batch, and the ones after it work.
        store.failed.notified().await;
        for _ in 0..2 {
            let error = bus.settle().await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::FILE_UNWRITABLE);
            assert_eq!(error.message(), "no space");
        }
        assert_eq!(bus.close().await.as_deref(), Some("no space"));
        assert!(*store.appends.lock() > 1, "later events are still written");
    }
}
