//! A journal in memory that can stop answering at a chosen entry, as a killed process does.

use async_trait::async_trait;
use nimbus_engine_model::JournalEntry;
use nimbus_engine_ports::{Journal, JournalError};
use parking_lot::Mutex;

#[derive(Default)]
pub struct MemoryJournal {
    entries: Mutex<Vec<JournalEntry>>,
    dies_after: Option<usize>,
}

impl MemoryJournal {
    /// Takes `entries` entries and refuses all later ones.
    pub fn dying_after(entries: usize) -> Self {
        Self {
            entries: Mutex::default(),
            dies_after: Some(entries),
        }
    }

    pub fn entries(&self) -> Vec<JournalEntry> {
        self.entries.lock().clone()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn append(&self, entry: JournalEntry) -> Result<(), JournalError> {
        let mut entries = self.entries.lock();
        if self.dies_after.is_some_and(|limit| entries.len() >= limit) {
            return Err(JournalError::Unwritable {
                message: "the journal died".to_owned(),
            });
        }
        entries.push(entry);
        Ok(())
    }
}
