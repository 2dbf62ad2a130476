//! Writes the journal: what is about to happen before it happens, and what came of it.
//!
//! One task writes, in the order in which entries were handed over; entries that are ready together
//! go to the journal together. An entry that says nothing of consequence waits for the next that
//! does, so that an operation that changes nothing writes once. After the first refusal nothing is
//! written any more, and everybody who asks is told so: the operation must stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nimbus_engine_model::{
    ActId, JournalChange, JournalEntry, Parameterization, PendingOperation, ResourceState,
};
use nimbus_engine_ports::{Journal, JournalError};
use tokio::sync::{mpsc, oneshot};

pub(crate) struct JournalRecorder {
    last_act: AtomicU64,
    sender: mpsc::UnboundedSender<JournalMessage>,
}

/// What was written, in order.
pub(crate) struct RecordedEntries {
    pub entries: Vec<JournalEntry>,
    pub failure: Option<JournalError>,
}

enum JournalMessage {
    Write(JournalEntry, oneshot::Sender<Result<(), JournalError>>),
    /// May wait for the next write.
    Note(JournalEntry),
    /// Asks for everything that was handed over so far.
    Look(oneshot::Sender<Vec<JournalEntry>>),
    Finish(oneshot::Sender<RecordedEntries>),
}

impl JournalRecorder {
    /// Without a journal, as in previews, entries are only collected.
    pub(crate) fn start(journal: Option<Arc<dyn Journal>>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(JournalWriter::new(journal).run(receiver));
        Self {
            last_act: AtomicU64::new(0),
            sender,
        }
    }

    /// Before an act, which may happen once this has returned: the intent is durable then, and the
    /// lease was still ours.
    pub(crate) async fn begin(&self, operation: PendingOperation) -> Result<ActId, JournalError> {
        let act = self.next_act();
        self.write(JournalEntry::Begin { act, operation }).await?;
        Ok(act)
    }

    pub(crate) async fn success(
        &self,
        act: ActId,
        change: JournalChange,
    ) -> Result<(), JournalError> {
        self.write(JournalEntry::Success { act, change }).await
    }

    pub(crate) async fn failure(
        &self,
        act: ActId,
        change: JournalChange,
    ) -> Result<(), JournalError> {
        self.write(JournalEntry::Failure { act, change }).await
    }

    pub(crate) async fn unknown(&self, act: ActId, message: String) -> Result<(), JournalError> {
        self.write(JournalEntry::Unknown { act, message }).await
    }

    /// A change of the record that is no act.
    pub(crate) async fn change(&self, change: JournalChange) -> Result<ActId, JournalError> {
        let act = self.next_act();
        self.success(act, change).await?;
        Ok(act)
    }

    /// A change of the record that need not be written before something else is.
    pub(crate) fn note(&self, change: JournalChange) -> ActId {
        let act = self.next_act();
        self.send(JournalMessage::Note(JournalEntry::Success { act, change }));
        act
    }

    /// An extension that resources of later entries belong to. It means nothing without them.
    pub(crate) fn extension(&self, extension: Arc<Parameterization>) {
        self.send(JournalMessage::Note(JournalEntry::Extension { extension }));
    }

    pub(crate) async fn rebase(
        &self,
        resources: Vec<Arc<ResourceState>>,
    ) -> Result<(), JournalError> {
        self.write(JournalEntry::Rebase { resources }).await
    }

    pub(crate) async fn clear_pending(&self) -> Result<(), JournalError> {
        self.write(JournalEntry::ClearPending).await
    }

    /// Everything that was recorded so far.
    pub(crate) async fn so_far(&self) -> Result<Vec<JournalEntry>, JournalError> {
        let (sender, receiver) = oneshot::channel();
        self.send(JournalMessage::Look(sender));
        receiver.await.map_err(|_| writer_is_gone())
    }

    /// Writes what still waits and returns everything that was written.
    pub(crate) async fn finish(&self) -> RecordedEntries {
        let (sender, receiver) = oneshot::channel();
        self.send(JournalMessage::Finish(sender));
        receiver.await.unwrap_or_else(|_| RecordedEntries {
            entries: Vec::new(),
            failure: Some(writer_is_gone()),
        })
    }

    fn next_act(&self) -> ActId {
        ActId(self.last_act.fetch_add(1, Ordering::Relaxed) + 1)
    }

    async fn write(&self, entry: JournalEntry) -> Result<(), JournalError> {
        let (sender, receiver) = oneshot::channel();
        self.send(JournalMessage::Write(entry, sender));
        receiver.await.unwrap_or_else(|_| Err(writer_is_gone()))
    }

    fn send(&self, message: JournalMessage) {
        // When the writer is gone, whoever waits for it learns that from its own channel.
        let _ = self.sender.send(message);
    }
}

fn writer_is_gone() -> JournalError {
    JournalError::Unwritable {
        message: "the journal's writer ended".to_owned(),
    }
}

struct JournalWriter {
    journal: Option<Arc<dyn Journal>>,
    recorded: RecordedEntries,
    noted: Vec<JournalEntry>,
}

impl JournalWriter {
    fn new(journal: Option<Arc<dyn Journal>>) -> Self {
        let recorded = RecordedEntries {
            entries: Vec::new(),
            failure: None,
        };
        Self {
            journal,
            recorded,
            noted: Vec::new(),
        }
    }

    async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<JournalMessage>) {
        while let Some(message) = receiver.recv().await {
            let mut waiting = Vec::new();
            let mut finish = self.take(message, &mut waiting);
            while finish.is_none() {
                let Ok(message) = receiver.try_recv() else {
                    break;
                };
                finish = self.take(message, &mut waiting);
            }
            if !waiting.is_empty() || finish.is_some() {
                self.write().await;
            }
            for waiter in waiting {
                // Whoever no longer waits does not need the answer.
                let _ = waiter.send(self.recorded.failure.clone().map_or(Ok(()), Err));
            }
            if let Some(finish) = finish {
                let _ = finish.send(self.recorded);
                return;
            }
        }
    }

    fn take(
        &mut self,
        message: JournalMessage,
        waiting: &mut Vec<oneshot::Sender<Result<(), JournalError>>>,
    ) -> Option<oneshot::Sender<RecordedEntries>> {
        match message {
            JournalMessage::Write(entry, waiter) => {
                self.noted.push(entry);
                waiting.push(waiter);
                None
            }
            JournalMessage::Note(entry) => {
                self.noted.push(entry);
                None
            }
            JournalMessage::Look(sender) => {
                let entries = self.recorded.entries.iter().chain(&self.noted);
                // Whoever no longer waits does not need the answer.
                let _ = sender.send(entries.cloned().collect());
                None
            }
            JournalMessage::Finish(sender) => Some(sender),
        }
    }

    async fn write(&mut self) {
        let entries = std::mem::take(&mut self.noted);
        // After a refusal somebody else may be writing; an entry after a gap would tell a lie.
        if entries.is_empty() || self.recorded.failure.is_some() {
            return;
        }
        let result = match (&self.journal, entries.as_slice()) {
            (None, _) => Ok(()),
            (Some(journal), [one]) => journal.append(one.clone()).await,
            (Some(journal), _) => journal.append_all(entries.clone()).await,
        };
        match result {
            Ok(()) => self.recorded.entries.extend(entries),
            Err(error) => self.recorded.failure = Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use nimbus_engine_model::{OperationKind, Urn};
    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Memory {
        batches: Mutex<Vec<usize>>,
        refuses: bool,
    }

    #[async_trait]
    impl Journal for Memory {
        async fn append(&self, entry: JournalEntry) -> Result<(), JournalError> {
            self.append_all(vec![entry]).await
        }

        async fn append_all(&self, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
            if self.refuses {
                return Err(JournalError::LeaseLost {
                    holder: "other".to_owned(),
                });
            }
            self.batches.lock().push(entries.len());
            Ok(())
        }
    }

    fn creating() -> PendingOperation {
        let resource = Arc::new(ResourceState::new(Urn::root_stack("s", "p"), false));
        PendingOperation {
            kind: OperationKind::Creating,
            resource,
        }
    }

    #[tokio::test]
    async fn what_changes_nothing_waits_for_what_does() {
        let journal = Arc::new(Memory::default());
        let recorder = JournalRecorder::start(Some(Arc::clone(&journal) as _));
        recorder.note(JournalChange::default());
        recorder.note(JournalChange::default());
        assert!(journal.batches.lock().is_empty());
        recorder.begin(creating()).await.unwrap();
        assert_eq!(
            *journal.batches.lock(),
            [3],
            "earlier notes go along, in order"
        );
        recorder.note(JournalChange::default());
        assert_eq!(recorder.so_far().await.unwrap().len(), 4);
        assert_eq!(*journal.batches.lock(), [3], "looking writes nothing");
        let recorded = recorder.finish().await;
        assert_eq!(*journal.batches.lock(), [3, 1]);
        assert_eq!(recorded.entries.len(), 4);
        assert!(matches!(
            recorded.entries[2],
            JournalEntry::Begin { act: ActId(3), .. }
        ));
    }

    #[tokio::test]
    async fn after_a_refusal_nothing_is_written_and_everybody_knows() {
        let journal = Arc::new(Memory {
            refuses: true,
            ..Memory::default()
        });
        let recorder = JournalRecorder::start(Some(journal));
        assert!(recorder.begin(creating()).await.is_err());
        let again = recorder.begin(creating()).await;
        assert!(matches!(again, Err(JournalError::LeaseLost { .. })));
        let recorded = recorder.finish().await;
        assert!(recorded.entries.is_empty());
        assert!(recorded.failure.is_some());
    }
}
