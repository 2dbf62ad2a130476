//! One stream of events, several who listen.

use std::sync::Arc;

use nimbus_engine_ports::{EngineEvent, EventSink};

use crate::redact::Redactor;

/// Hands every event to every sink, without the secrets that it knows.
pub struct EventFan {
    redactor: Redactor,
    sinks: Vec<Arc<dyn EventSink>>,
}

impl EventFan {
    pub fn new(redactor: Redactor, sinks: Vec<Arc<dyn EventSink>>) -> Self {
        Self { redactor, sinks }
    }
}

impl EventSink for EventFan {
    fn emit(&self, event: EngineEvent) {
        let event = self.redactor.event(event);
        if let Some((last, others)) = self.sinks.split_last() {
            for sink in others {
                sink.emit(event.clone());
            }
            last.emit(event);
        }
    }
}
