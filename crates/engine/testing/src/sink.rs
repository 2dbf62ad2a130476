//! An event sink that remembers, for every rig.

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use parking_lot::Mutex;

/// An audience that remembers.
#[derive(Default)]
pub struct RecordingSink {
    events: Mutex<Vec<EngineEvent>>,
}

impl RecordingSink {
    /// Everything since the last time.
    pub fn take(&self) -> Vec<EngineEvent> {
        std::mem::take(&mut *self.events.lock())
    }

    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let events = self.events.lock();
        let diagnostics = events.iter().filter_map(|event| match event {
            EngineEvent::Diagnostic(diagnostic) => Some(diagnostic.clone()),
            _ => None,
        });
        diagnostics.collect()
    }

    /// Messages of one severity.
    pub fn messages(&self, severity: Severity) -> Vec<String> {
        let diagnostics = self.diagnostics().into_iter();
        diagnostics
            .filter(|diagnostic| diagnostic.severity == severity)
            .map(|diagnostic| diagnostic.message)
            .collect()
    }
}

impl EventSink for RecordingSink {
    fn emit(&self, event: EngineEvent) {
        self.events.lock().push(event);
    }
}
