//! The durable record of a running operation, and what is found of it after a crash.
//!
//! The cost of an append is that of its own entry: nothing of the state is read or written. How an
//! entry becomes text is the model's business; this module knows lines, batches and files.

mod file;
mod frame;
mod group;
mod header;
mod housekeeping;
mod keyless;
mod left_over;
mod objects;

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::JournalEntry;
use nimbus_engine_ports::{Journal, JournalError};
use parking_lot::Mutex;

use self::file::FileSink;
pub use self::frame::Damaged;
use self::frame::FrameKind;
use self::group::{FrameContent, GroupCommit, Ticket};
use self::header::Closed;
pub(crate) use self::header::{FORMAT, JournalHeader, JournalSeal, JournalSecrets};
pub(crate) use self::housekeeping::{discard, put_away, seal_abandoned, sweep};
use self::keyless::without_secret_outputs;
pub(crate) use self::left_over::LeftOver;
use self::objects::ObjectSink;
use crate::digest::Digest;
use crate::layout::StackKeys;
use crate::lease::{Lease, LeaseError};
use crate::location::BackendLocation;
use crate::secrets::StackSecrets;
use crate::store::StorageError;

/// The journal of one operation.
pub(crate) struct StackJournal {
    group: GroupCommit,
    secrets: Arc<StackSecrets>,
    /// Whether the journal says how its secrets are encrypted. Held while an entry is encoded and
    /// handed in, so that no entry comes before what opens it.
    says_how: Mutex<bool>,
}

impl StackJournal {
    /// Writes nothing until the first entry.
    pub(crate) fn start(
        place: &BackendLocation,
        lease: &Lease,
        header: &JournalHeader,
        secrets: Arc<StackSecrets>,
    ) -> Self {
        let keys = StackKeys::new(lease.stack());
        let says_how = Mutex::new(header.secrets.is_some());
        let header = serde_json::to_string(header).expect("a header has only text keys");
        let group = match place {
            BackendLocation::Local(storage) => {
                let sink = FileSink::new(storage.clone(), keys.journal_file(), lease.clone());
                GroupCommit::start(sink, header)
            }
            BackendLocation::Remote(storage) => {
                let storage = Arc::clone(storage);
                let sink = ObjectSink::new(storage, keys.journal_folder(), lease.clone());
                GroupCommit::start(sink, header)
            }
        };
        Self {
            group,
            secrets,
            says_how,
        }
    }

    /// Says that the checkpoint with this digest holds everything; to be called before that
    /// checkpoint is written.
    pub(crate) async fn close(&self, checkpoint: Digest) -> Result<(), JournalError> {
        let line = (FrameKind::Closed, closed(checkpoint));
        self.group.submit(vec![line]).durable().await
    }

    /// Hands entries in; they share one write and one sync.
    fn submit(&self, entries: &[JournalEntry]) -> Result<Ticket, JournalError> {
        let mut says_how = self.says_how.lock();
        let entries = entries.iter().map(|entry| self.encode(entry));
        let mut lines = entries.collect::<Result<Vec<FrameContent>, _>>()?;
        if let (false, Some(provider)) = (*says_how, self.secrets.provider()) {
            let how = serde_json::to_string(&JournalSecrets::from(provider));
            let how = how.map_err(|error| unwritable(error.to_string()))?;
            lines.insert(0, (FrameKind::Secrets, how));
            *says_how = true;
        }
        Ok(self.group.submit(lines))
    }

    fn encode(&self, entry: &JournalEntry) -> Result<FrameContent, JournalError> {
        let encoded = |entry: &JournalEntry| {
            nimbus_engine_model::journal::encode(entry, self.secrets.as_ref())
                .map_err(|error| unwritable(error.to_string()))
        };
        let text = encoded(entry).or_else(|error| {
            let remaining = without_secret_outputs(entry).ok_or(error)?;
            encoded(&remaining)
        })?;
        // A line break would end the line early. JSON never needs one.
        if text.contains(['\n', '\r']) {
            return Err(unwritable(
                "an entry was encoded with a line break".to_owned(),
            ));
        }
        Ok((FrameKind::Entry, text))
    }
}

#[async_trait]
impl Journal for StackJournal {
    async fn append(&self, entry: JournalEntry) -> Result<(), JournalError> {
        self.append_all(vec![entry]).await
    }

    async fn append_all(&self, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        if entries.is_empty() {
            return Ok(());
        }
        let ticket = self.submit(&entries)?;
        ticket.durable().await
    }
}

#[derive(Debug, thiserror::Error)]
pub enum JournalReadError {
    #[error("the journal {key} is damaged")]
    Damaged {
        key: String,
        #[source]
        source: Damaged,
    },
    #[error(
        "the journal {key} does not start with a header that this version understands: {reason}"
    )]
    Header { key: String, reason: String },
    #[error(transparent)]
    Store(#[from] StorageError),
}

fn closed(checkpoint: Digest) -> String {
    serde_json::to_string(&Closed { checkpoint }).expect("this has only text keys")
}

fn lease_problem(error: LeaseError) -> JournalError {
    match error {
        LeaseError::Lost { holder, .. } => JournalError::LeaseLost { holder },
        other => unwritable(nimbus_core::with_causes(&other)),
    }
}

fn unwritable(message: String) -> JournalError {
    JournalError::Unwritable { message }
}

fn store_problem(error: StorageError) -> JournalError {
    // The port's error is text, so causes go into it.
    unwritable(nimbus_core::with_causes(&error))
}
