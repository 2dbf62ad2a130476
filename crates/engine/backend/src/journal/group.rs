//! Group commit: entries that arrive while others are being made durable share the next sync.
//!
//! One task owns the sink. An `append` that is cancelled while it waits changes nothing about what
//! is written, and the order in which entries were handed in is the order on disk.

use async_trait::async_trait;
use nimbus_engine_ports::JournalError;
use tokio::sync::{mpsc, oneshot};

use super::frame::{self, FrameKind};

/// A batch larger than this is not made larger; one entry may still be.
const BATCH_BYTES: usize = 1 << 20;

/// Makes a batch of lines durable: all of them when it returns `Ok`, and on an error nobody is
/// told that any of them is.
#[async_trait]
pub(super) trait Sink: Send + 'static {
    async fn commit(&mut self, lines: String) -> Result<(), JournalError>;

    /// Whether a journal in which nothing happened must be closed too.
    fn closes_when_empty(&self) -> bool;
}

/// A line to be: what it is for, and its content.
pub(super) type FrameContent = (FrameKind, String);

struct PendingWrite {
    /// Written together.
    lines: Vec<FrameContent>,
    done: oneshot::Sender<Result<(), JournalError>>,
}

impl PendingWrite {
    fn bytes(&self) -> usize {
        self.lines.iter().map(|(_, text)| text.len()).sum()
    }

    fn only_closes(&self) -> bool {
        self.lines
            .iter()
            .all(|(kind, _)| *kind == FrameKind::Closed)
    }
}

/// Tells when the lines are durable, or why they are not.
pub(super) struct Ticket(oneshot::Receiver<Result<(), JournalError>>);

impl Ticket {
    pub(super) async fn durable(self) -> Result<(), JournalError> {
        self.0.await.map_err(|_| ended())?
    }
}

/// Hands lines to the task that owns the sink.
pub(super) struct GroupCommit {
    sender: mpsc::UnboundedSender<PendingWrite>,
}

impl GroupCommit {
    /// `header` becomes the first line, together with the first entry: a journal in which nothing
    /// happened is never written.
    pub(super) fn start(sink: impl Sink, header: String) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let worker = Worker {
            sink,
            receiver,
            next: 0,
            header: Some(header),
        };
        tokio::spawn(worker.run());
        Self { sender }
    }

    /// Takes lines in. What was taken in first comes first.
    pub(super) fn submit(&self, lines: Vec<FrameContent>) -> Ticket {
        let (done, answer) = oneshot::channel();
        // Without a worker the sender is dropped with its message, and the ticket says so.
        let _ = self.sender.send(PendingWrite { lines, done });
        Ticket(answer)
    }
}

struct Worker<S> {
    sink: S,
    receiver: mpsc::UnboundedReceiver<PendingWrite>,
    next: u64,
    /// Until it is written.
    header: Option<String>,
}

impl<S: Sink> Worker<S> {
    async fn run(mut self) {
        while let Some(first) = self.receiver.recv().await {
            if first.only_closes() && self.is_empty() && !self.sink.closes_when_empty() {
                let _ = first.done.send(Ok(()));
                continue;
            }
            let batch = self.collect(first);
            let (lines, numbers) = self.lines(&batch);
            let result = self.sink.commit(lines).await;
            // Lines that were refused leave no trace, so their numbers are free.
            if result.is_ok() {
                self.next += numbers;
                self.header = None;
            }
            for pending in batch {
                // Whoever has stopped waiting does not want to know.
                let _ = pending.done.send(result.clone());
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.header.is_some()
    }

    fn collect(&mut self, first: PendingWrite) -> Vec<PendingWrite> {
        let mut bytes = first.bytes();
        let mut batch = vec![first];
        while bytes < BATCH_BYTES {
            let Ok(pending) = self.receiver.try_recv() else {
                break;
            };
            bytes += pending.bytes();
            batch.push(pending);
        }
        batch
    }

    fn lines(&self, batch: &[PendingWrite]) -> (String, u64) {
        let header = self.header.iter().map(|text| (FrameKind::Header, text));
        let taken_in = batch.iter().flat_map(|pending| &pending.lines);
        let entries = taken_in.map(|(kind, text)| (*kind, text));
        let mut lines = String::new();
        let mut number = self.next;
        for (kind, text) in header.chain(entries) {
            frame::write(&mut lines, number, self.next, kind, text);
            number += 1;
        }
        (lines, number - self.next)
    }
}

fn ended() -> JournalError {
    JournalError::Unwritable {
        message: "its writer has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::sync::Semaphore;

    use super::*;

    #[derive(Clone)]
    struct Recorder {
        batches: Arc<Mutex<Vec<String>>>,
        gate: Arc<Semaphore>,
        refuse: Arc<Mutex<bool>>,
    }

    impl Recorder {
        fn new() -> Self {
            Self {
                batches: Arc::default(),
                gate: Arc::new(Semaphore::new(0)),
                refuse: Arc::default(),
            }
        }
    }

    #[async_trait]
    impl Sink for Recorder {
        async fn commit(&mut self, lines: String) -> Result<(), JournalError> {
            self.gate.acquire().await.unwrap().forget();
            if *self.refuse.lock() {
                return Err(JournalError::Unwritable {
                    message: "full".into(),
                });
            }
            self.batches.lock().push(lines);
            Ok(())
        }

        fn closes_when_empty(&self) -> bool {
            false
        }
    }

    async fn append(group: &GroupCommit, kind: FrameKind, text: &str) -> Result<(), JournalError> {
        group.submit(vec![(kind, text.to_owned())]).durable().await
    }

    #[tokio::test]
    async fn what_arrives_meanwhile_shares_one_commit() {
        let sink = Recorder::new();
        let group = Arc::new(GroupCommit::start(sink.clone(), "{}".into()));
        let append = |n: u32| {
            let group = Arc::clone(&group);
            tokio::spawn(async move { append(&group, FrameKind::Entry, &n.to_string()).await })
        };
        let mut appended = vec![append(0)];
        // The first commit is under way when the others are handed in.
        tokio::task::yield_now().await;
        appended.extend((1..50).map(append));
        tokio::task::yield_now().await;
        sink.gate.add_permits(50);
        for task in appended {
            task.await.unwrap().unwrap();
        }
        let batches = sink.batches.lock();
        assert!(
            batches.len() < 10,
            "{} commits for 50 entries",
            batches.len()
        );
        let all = batches.concat();
        let read = frame::read(all.as_bytes(), 0).unwrap();
        assert_eq!(read.frames.len(), 51);
        assert_eq!(read.frames[0].kind, FrameKind::Header);
    }

    #[tokio::test]
    async fn a_journal_in_which_nothing_happened_is_never_written() {
        let sink = Recorder::new();
        let group = GroupCommit::start(sink.clone(), "{}".into());
        append(&group, FrameKind::Closed, "{}").await.unwrap();
        assert_eq!(sink.batches.lock().len(), 0);
    }

    #[tokio::test]
    async fn a_refused_batch_leaves_no_gap() {
        let sink = Recorder::new();
        sink.gate.add_permits(10);
        let group = GroupCommit::start(sink.clone(), "{}".into());
        *sink.refuse.lock() = true;
        assert!(append(&group, FrameKind::Entry, "1").await.is_err());
        *sink.refuse.lock() = false;
        append(&group, FrameKind::Entry, "2").await.unwrap();
        let all = sink.batches.lock().concat();
        let read = frame::read(all.as_bytes(), 0).unwrap();
        let texts: Vec<_> = read.frames.iter().map(|frame| frame.text).collect();
        assert_eq!(texts, ["{}", "2"]);
    }
}
