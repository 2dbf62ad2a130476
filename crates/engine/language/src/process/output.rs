//! What a program prints, as diagnostics.
//!
//! Both streams are information: plenty of programs and their libraries write harmless notes to
//! standard error. The last lines from there are kept, because when a program ends badly without a
//! word to the engine they are the only explanation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer lines are passed on in pieces, so that a program cannot fill our memory with one.
const LONGEST_LINE: usize = 64 * 1024;
const KEPT_LINES: usize = 20;

/// Far from the numbers that SDKs choose for their own streams.
static NEXT_STREAM: AtomicI32 = AtomicI32::new(1_000_000);

pub(super) struct Output {
    readers: Vec<JoinHandle<()>>,
    last_errors: Arc<Mutex<VecDeque<String>>>,
}

impl Output {
    pub(super) fn forward(
        stdout: Option<impl AsyncRead + Send + Unpin + 'static>,
        stderr: Option<impl AsyncRead + Send + Unpin + 'static>,
        events: &Arc<dyn EventSink>,
    ) -> Self {
        let last_errors = Arc::<Mutex<VecDeque<String>>>::default();
        let mut readers = Vec::new();
        if let Some(stdout) = stdout {
            let show = shower(events);
            readers.push(tokio::spawn(read_lines(stdout, show)));
        }
        if let Some(stderr) = stderr {
            let show = shower(events);
            let kept = Arc::clone(&last_errors);
            let show_and_keep = move |line: String| {
                keep(&mut kept.lock(), line.clone());
                show(line);
            };
            readers.push(tokio::spawn(read_lines(stderr, show_and_keep)));
        }
        Self {
            readers,
            last_errors,
        }
    }

    /// Passes on what is still in the pipes. A process that escaped may hold them open for ever.
    pub(super) async fn drain(&mut self, limit: Duration) {
        for mut reader in self.readers.drain(..) {
            if timeout(limit, &mut reader).await.is_err() {
                reader.abort();
            }
        }
    }

    pub(super) fn last_errors(&self) -> Vec<String> {
        self.last_errors.lock().iter().cloned().collect()
    }
}

fn shower(events: &Arc<dyn EventSink>) -> impl Fn(String) + Send + use<> {
    let events = Arc::clone(events);
    let stream_id = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
    move |message| {
        events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message,
            stream_id,
            ephemeral: false,
        }));
    }
}

fn keep(kept: &mut VecDeque<String>, line: String) {
    if kept.len() == KEPT_LINES {
        kept.pop_front();
    }
    kept.push_back(line);
}

async fn read_lines(stream: impl AsyncRead + Unpin, show: impl Fn(String)) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let available = match stream.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(available) => available,
        };
        let room = LONGEST_LINE - line.len();
        let newline = available.iter().take(room).position(|byte| *byte == b'\n');
        let taken = newline.map_or_else(|| available.len().min(room), |at| at + 1);
        line.extend_from_slice(&available[..taken]);
        stream.consume(taken);
        if newline.is_some() || line.len() == LONGEST_LINE {
            show(text(&line));
            line.clear();
        }
    }
    if !line.is_empty() {
        show(text(&line));
    }
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(bytes: &[u8]) -> Vec<String> {
        let lines = Mutex::new(Vec::new());
        read_lines(bytes, |line| lines.lock().push(line)).await;
        lines.into_inner()
    }

    #[tokio::test]
    async fn lines_come_as_they_were_written() {
        assert_eq!(lines_of(b"a\n\nb\r\nlast").await, ["a", "", "b", "last"]);
        assert_eq!(lines_of(b"\xff\n").await, ["\u{fffd}"]);
        assert!(lines_of(b"").await.is_empty());
    }

    #[tokio::test]
    async fn an_endless_line_comes_in_pieces() {
        let long = vec![b'x'; 2 * LONGEST_LINE + 1];
        let lengths: Vec<_> = lines_of(&long).await.iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST_LINE, LONGEST_LINE, 1]);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut kept = VecDeque::new();
        for n in 0..KEPT_LINES + 5 {
            keep(&mut kept, n.to_string());
        }
        assert_eq!(kept.len(), KEPT_LINES);
        assert_eq!(kept.front().map(String::as_str), Some("5"));
    }
}
