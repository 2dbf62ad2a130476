//! A journal for operations that change nothing.

use async_trait::async_trait;
use nimbus_engine_model::JournalEntry;
use nimbus_engine_ports::{Journal, JournalError};

/// Forgets everything: a preview is not recorded.
pub(crate) struct NoJournal;

#[async_trait]
impl Journal for NoJournal {
    async fn append(&self, _: JournalEntry) -> Result<(), JournalError> {
        Ok(())
    }
}
