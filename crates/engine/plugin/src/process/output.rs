//! What a plugin prints: passed on line by line, and the end of it kept for when the plugin dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_process::Tail;

static NEXT_STREAM: AtomicI32 = AtomicI32::new(1);

/// Where the lines of one plugin go.
pub(crate) struct PluginOutput {
    events: Arc<dyn EventSink>,
    severity: Severity,
    tail: Tail,
    /// How much is still passed on.
    room: AtomicU64,
}

impl PluginOutput {
    pub(crate) fn new(events: Arc<dyn EventSink>, severity: Severity) -> Self {
        Self {
            events,
            severity,
            tail: Tail::default(),
            room: AtomicU64::new(u64::MAX),
        }
    }

    /// Passes on so many bytes, and then says that there were more.
    pub(crate) fn up_to(self, most: u64) -> Self {
        Self {
            room: AtomicU64::new(most),
            ..self
        }
    }

    /// Passes on the lines of one stream.
    pub(crate) fn shower(self: Arc<Self>) -> impl FnMut(String) + Send + use<> {
        let stream_id = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
        move |line| self.line(line, stream_id)
    }

    fn line(&self, line: String, stream_id: i32) {
        if line.trim().is_empty() {
            return;
        }
        self.tail.push(line.clone());
        let size = line.len() as u64 + 1;
        let take = |room: u64| Some(room.saturating_sub(size));
        let room = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match room.unwrap_or(0) {
            0 => return,
            room if room <= size => {
                let message = "it prints too much; what follows is not shown, and the limit is set \
                               by engine.sandbox_output_mib";
                return self.say(Severity::Warning, message.to_owned());
            }
            _ => {}
        }
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: self.severity,
            urn: None,
            message: line,
            stream_id,
            ephemeral: false,
        }));
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self) -> String {
        self.tail.text()
    }

    /// Tells the audience something about the plugin itself.
    pub(crate) fn say(&self, severity: Severity, message: String) {
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity,
            urn: None,
            message,
            stream_id: 0,
            ephemeral: false,
        }));
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_process::for_each_line;
    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl EventSink for Lines {
        fn emit(&self, event: EngineEvent) {
            if let EngineEvent::Diagnostic(diagnostic) = event {
                self.0.lock().push(diagnostic.message);
            }
        }
    }

    #[tokio::test]
    async fn lines_are_passed_on_and_kept_except_blank_ones() {
        let lines = Arc::new(Lines::default());
        let output = Arc::new(PluginOutput::new(lines.clone(), Severity::Debug));
        let printed = &b"one\r\n\n  \ntwo\nlast without end"[..];
        for_each_line(printed, output.clone().shower()).await;
        let expected = ["one", "two", "last without end"];
        assert_eq!(*lines.0.lock(), expected);
        assert_eq!(output.tail(), expected.join("\n"));
    }
}
