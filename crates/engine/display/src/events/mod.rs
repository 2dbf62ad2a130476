//! The public form of engine events: one JSON object per line.
//!
//! Field names and their order, what is left out when empty and what is `null` are a format that
//! other tools read; nothing here may change without them. Secrets are replaced before anything is
//! written, so the stream can be stored.

mod convert;
mod schema;
mod values;

use jiff::Timestamp;
use nimbus_engine_ports::EngineEvent;

use schema::{Payload, PublicEvent};

/// Numbers events and writes them down.
#[derive(Debug, Default)]
pub struct EventLog {
    next: u64,
    cancelled: bool,
}

impl EventLog {
    pub fn new() -> Self {
        Self::default()
    }

    /// The event's line without its line end, or `None` for events that are not public.
    pub fn line(&mut self, event: &EngineEvent, at: Timestamp) -> Option<String> {
        let mut payload = convert::payload(event)?;
        self.cancelled |= matches!(event, EngineEvent::Cancelled);
        if let Payload::Summary(summary) = &mut payload
            && self.cancelled
            && summary.result == schema::FAILED
        {
            summary.result = schema::CANCELED;
        }
        let event = PublicEvent {
            sequence: self.next,
            timestamp: at.as_second(),
            payload,
        };
        self.next += 1;
        let line = serde_json::to_string(&event);
        Some(line.expect("public events have text keys and JSON values only"))
    }
}
