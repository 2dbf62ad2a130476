//! One stream of events, several who listen.

use std::sync::Arc;

use nimbus_engine_ports::{EngineEvent, EventSink};

use crate::redact::redacted;

/// Hands every event to every sink, without any known secret.
pub struct BroadcastSink {
    sinks: Vec<Arc<dyn EventSink>>,
}

impl BroadcastSink {
    pub fn new(sinks: Vec<Arc<dyn EventSink>>) -> Self {
        Self { sinks }
    }
}

impl EventSink for BroadcastSink {
    fn emit(&self, event: EngineEvent) {
        let event = redacted(event);
        if let Some((last, others)) = self.sinks.split_last() {
            for sink in others {
                sink.emit(event.clone());
            }
            last.emit(event);
        }
    }
}
