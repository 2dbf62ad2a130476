//! A trace in a file that Perfetto and Chrome open: one event for each span that ended.
//!
//! Both draw events of one track as nested when their times are. Spans of one parent that run at once
//! would look nested without being so, therefore each gets a track of its own: a child shares its
//! parent's as long as it is alone there. Everything passes the redactor.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::layer::SpanFields;
use crate::redact::redact;

/// Writes spans as they end.
pub(crate) struct TraceFileLayer {
    file: Arc<TraceFile>,
    began: Instant,
}

/// The file itself, so that it can be closed when the command ends.
pub(crate) struct TraceFile(Mutex<TraceFileState>);

struct TraceFileState {
    writer: Box<dyn Write + Send>,
    /// Whether an event was written.
    begun: bool,
    /// Whether the list was closed; what ends later is not part of it.
    closed: bool,
    /// Tracks that some span has.
    tracks: BTreeSet<u64>,
}

/// What is known of a span until it ends.
struct OpenSpan {
    began: Instant,
    track: u64,
    /// Whether the track is free when it ends.
    owns_track: bool,
    /// Children that share the track now: none or one.
    shared: bool,
    fields: SpanFields,
}

impl TraceFile {
    pub(crate) fn new(writer: Box<dyn Write + Send>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(TraceFileState {
            writer,
            begun: false,
            closed: false,
            tracks: BTreeSet::new(),
        })))
    }

    /// Ends the list. A file without this end is still read by Perfetto and Chrome.
    pub(crate) fn close(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Ok(());
        }
        state.closed = true;
        let end: &[u8] = if state.begun { b"\n]\n" } else { b"[]\n" };
        state.writer.write_all(end)?;
        state.writer.flush()
    }

    fn take_track(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = 1;
        while !state.tracks.insert(free) {
            free += 1;
        }
        free
    }

    fn leave_track(&self, track: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.tracks.remove(&track);
    }

    fn write(&self, event: &Value) {
        let text = event.to_string();
        let clean = redact(&text);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return;
        }
        let before: &[u8] = if state.begun { b",\n" } else { b"[\n" };
        state.begun = true;
        let TraceFileState { writer, .. } = &mut *state;
        // A trace that cannot be written fails no run; closing it tells.
        let _ = writer
            .write_all(before)
            .and_then(|()| writer.write_all(clean.as_bytes()));
    }
}

impl TraceFileLayer {
    pub(crate) fn new(file: Arc<TraceFile>) -> Self {
        Self {
            file,
            began: Instant::now(),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for TraceFileLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let shared = span.parent().and_then(|parent| {
            let mut extensions = parent.extensions_mut();
            let above = extensions.get_mut::<OpenSpan>()?;
            if above.shared {
                return None;
            }
            above.shared = true;
            Some(above.track)
        });
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(OpenSpan {
            began: Instant::now(),
            track: shared.unwrap_or_else(|| self.file.take_track()),
            owns_track: shared.is_none(),
            shared: false,
            fields,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        let parent = span.parent();
        if open.owns_track {
            self.file.leave_track(open.track);
        } else if let Some(parent) = &parent
            && let Some(above) = parent.extensions_mut().get_mut::<OpenSpan>()
        {
            above.shared = false;
        }
        let mut arguments: Map<String, Value> = open.fields.into_map();
        arguments.insert("span".to_owned(), id.into_u64().into());
        if let Some(parent) = parent {
            arguments.insert("parent".to_owned(), parent.id().into_u64().into());
        }
        let microseconds =
            |from: Instant, to: Instant| to.saturating_duration_since(from).as_micros() as u64;
        self.file.write(&json!({
            "name": span.name(),
            "cat": "nimbus",
            "ph": "X",
            "ts": microseconds(self.began, open.began),
            "dur": microseconds(open.began, Instant::now()),
            "pid": std::process::id(),
            "tid": open.track,
            "args": arguments,
        }));
    }
}
