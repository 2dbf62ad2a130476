//! The durable record of a running operation.

use async_trait::async_trait;
use nimbus_engine_model::JournalEntry;

/// Entries are durable when `append` returns. An implementation checks on every append that it
/// still holds the lease under the epoch it started with.
#[async_trait]
pub trait Journal: Send + Sync {
    async fn append(&self, entry: JournalEntry) -> Result<(), JournalError>;

    /// Entries that became ready together; an implementation may make them durable at once. After
    /// an error the caller cannot tell which of them were taken.
    async fn append_all(&self, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        for entry in entries {
            self.append(entry).await?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another writer took over; this one must stop at once.
    #[error("the lease on this stack was lost to {holder}")]
    LeaseLost { holder: String },
    #[error("the journal cannot be written: {message}")]
    Unwritable { message: String },
    /// A defect of the engine: its own entries do not follow from each other.
    #[error("the journal contradicts itself: {message}")]
    Contradictory { message: String },
}
