//! One stream of events, several who listen.

use std::sync::Arc;

use nimbus_engine_model::Snapshot;
use nimbus_engine_ports::{EngineEvent, EventSink};

use crate::redact::redacted;
use crate::secrets_seen::SecretsSeen;

/// Hands every event to every sink, without any secret that the process knows or that this operation has seen.
pub struct BroadcastSink {
    sinks: Vec<Arc<dyn EventSink>>,
    seen: SecretsSeen,
}

impl BroadcastSink {
    pub fn new(sinks: Vec<Arc<dyn EventSink>>) -> Self {
        Self {
            sinks,
            seen: SecretsSeen::default(),
        }
    }

    /// What a state marks as secret is told by no message from now on.
    pub(crate) fn hide_state(&self, snapshot: &Snapshot) {
        for resource in &snapshot.resources {
            self.seen.learn(resource);
        }
    }
}

impl EventSink for BroadcastSink {
    fn emit(&self, event: EngineEvent) {
        let event = self.seen.message_without(redacted(event));
        if let Some((last, others)) = self.sinks.split_last() {
            for sink in others {
                sink.emit(event.clone());
            }
            last.emit(event);
        }
    }
}
