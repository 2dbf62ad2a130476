//! What a plugin prints: passed on line by line, and the end of it kept for when the plugin dies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// A longer line is passed on in pieces.
const MAX_LINE: u64 = 64 * 1024;
/// How much of the last output is kept.
const KEPT: usize = 16 * 1024;

static NEXT_STREAM: AtomicI32 = AtomicI32::new(1);

/// Where the lines of one plugin go.
pub(crate) struct Output {
    events: Arc<dyn EventSink>,
    severity: Severity,
    tail: Mutex<Tail>,
}

#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    size: usize,
}

impl Output {
    pub(crate) fn new(events: Arc<dyn EventSink>, severity: Severity) -> Self {
        Self {
            events,
            severity,
            tail: Mutex::default(),
        }
    }

    /// Passes on everything until the stream ends.
    pub(crate) async fn forward(&self, mut stream: impl AsyncBufRead + Unpin) {
        let stream_id = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut stream)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line)
                .await
            {
                Ok(0) | Err(_) => return,
                Ok(_) => self.line(&String::from_utf8_lossy(&line), stream_id),
            }
        }
    }

    fn line(&self, line: &str, stream_id: i32) {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            return;
        }
        self.tail.lock().push(line.to_owned());
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: self.severity,
            urn: None,
            message: line.to_owned(),
            stream_id,
            ephemeral: false,
        }));
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self) -> String {
        self.tail
            .lock()
            .lines
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n")
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

impl Tail {
    fn push(&mut self, line: String) {
        self.size += line.len();
        self.lines.push_back(line);
        while self.size > KEPT && self.lines.len() > 1 {
            self.size -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

#[cfg(test)]
mod tests {
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
    async fn lines_are_passed_on_without_their_ends_and_blank_ones_are_dropped() {
        let lines = Arc::new(Lines::default());
        let output = Output::new(lines.clone(), Severity::Debug);
        output
            .forward(&b"one\r\n\n  \ntw\xff\nlast without end"[..])
            .await;
        let expected = ["one", "tw\u{fffd}", "last without end"];
        assert_eq!(*lines.0.lock(), expected);
        assert_eq!(output.tail(), expected.join("\n"));
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_output_is_kept() {
        let output = Output::new(Arc::new(Lines::default()), Severity::Debug);
        let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        output.forward(text.as_bytes()).await;
        assert!(output.tail().len() < 2 * KEPT);
        assert!(output.tail().ends_with("line 9999"));
    }
}
