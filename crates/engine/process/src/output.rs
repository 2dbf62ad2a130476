//! What a child prints, line by line.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer lines are passed on in pieces, so that a child cannot fill our memory with one.
const LONGEST_LINE: usize = 64 * 1024;
/// How much of the last output is kept.
const KEPT: usize = 16 * 1024;

/// Calls `show` for every line until the stream ends.
pub async fn for_each_line(mut stream: impl AsyncBufRead + Unpin, mut show: impl FnMut(String)) {
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

/// Reads a stream beside everything else.
#[derive(Debug)]
pub struct OutputLines {
    /// `None` when everything was read.
    reader: Option<JoinHandle<()>>,
}

impl OutputLines {
    /// Starts to call `show` for every line. Must be called inside the runtime.
    pub fn start(
        stream: impl AsyncBufRead + Send + Unpin + 'static,
        show: impl FnMut(String) + Send + 'static,
    ) -> Self {
        Self {
            reader: Some(tokio::spawn(for_each_line(stream, show))),
        }
    }

    /// Waits for what is still in the pipe of a child that has ended. A process that escaped from
    /// the group may hold the pipe open for ever, hence the limit. May be dropped and called again.
    pub async fn drain(&mut self, limit: Duration) {
        if let Some(reader) = &mut self.reader {
            if timeout(limit, &mut *reader).await.is_err() {
                reader.abort();
            }
            self.reader = None;
        }
    }
}

/// The last lines of an output.
#[derive(Debug, Default)]
pub struct Tail(Mutex<LineBuffer>);

#[derive(Debug, Default)]
struct LineBuffer {
    lines: VecDeque<String>,
    size: usize,
}

impl Tail {
    pub fn push(&self, line: String) {
        let mut kept = self.0.lock();
        kept.size += line.len();
        kept.lines.push_back(line);
        while kept.size > KEPT && kept.lines.len() > 1 {
            kept.size -= kept.lines.pop_front().map_or(0, |line| line.len());
        }
    }

    /// At most this many of the last lines, oldest first.
    pub fn last(&self, most: usize) -> Vec<String> {
        let kept = self.0.lock();
        let skipped = kept.lines.len().saturating_sub(most);
        kept.lines.iter().skip(skipped).cloned().collect()
    }

    /// Everything that is kept, oldest first.
    pub fn text(&self) -> String {
        self.last(usize::MAX).join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for_each_line(bytes, |line| lines.push(line)).await;
        lines
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
    fn only_the_end_of_a_long_output_is_kept() {
        let tail = Tail::default();
        for n in 0..10_000 {
            tail.push(format!("line {n}"));
        }
        assert!(tail.text().len() < 2 * KEPT);
        assert!(tail.text().ends_with("line 9998\nline 9999"));
        assert_eq!(tail.last(2), ["line 9998", "line 9999"]);
    }

    #[test]
    fn one_long_line_is_kept_whole() {
        let tail = Tail::default();
        tail.push("before".to_owned());
        tail.push("x".repeat(2 * KEPT));
        assert_eq!(tail.text().len(), 2 * KEPT);
    }

    #[tokio::test]
    async fn draining_ends_although_somebody_holds_the_pipe_open() {
        let (reader, writer) = tokio::net::unix::pipe::pipe()
            .map(|(sender, receiver)| (receiver, sender))
            .expect("a pipe");
        let mut lines = OutputLines::start(tokio::io::BufReader::new(reader), |_| {});
        lines.drain(Duration::from_millis(1)).await;
        lines.drain(Duration::from_secs(60)).await;
        drop(writer);
    }
}
