//! What a running operation records, entry by entry, and how a snapshot is rebuilt from it.
//!
//! Every external act is written down before it happens ([`JournalEntry::Begin`]) and again when
//! its outcome is known. An act that has a beginning and no outcome is unknown, and stays so in
//! the rebuilt snapshot as a pending operation: nobody guesses.

mod aliases;
mod codec;
mod replay;

use std::sync::Arc;

use crate::package::Parameterization;
use crate::resource::{PendingOperation, ResourceState};

pub use codec::{decode, encode};
pub use replay::{ReplayError, ReplayProblem, replay};

/// Numbers the acts of one operation, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActId(pub u64);

/// Names a resource of the running operation. A URN cannot: a replaced resource and its
/// replacement share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateRef {
    /// Position in the snapshot that the operation started from.
    Base(usize),
    /// The resource that this act recorded.
    New(ActId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum JournalEntry {
    /// An act is about to happen.
    Begin {
        act: ActId,
        operation: PendingOperation,
    },
    /// The act succeeded, or was only book-keeping and has no beginning.
    Success { act: ActId, change: JournalChange },
    /// The act failed and is known to have changed nothing but what `change` says.
    Failure { act: ActId, change: JournalChange },
    /// Nobody can tell whether the act happened; it stays pending.
    Unknown { act: ActId, message: String },
    /// All resources were rewritten at once, as after a refresh. Later entries refer to this as
    /// their base.
    Rebase { resources: Vec<Arc<ResourceState>> },
    /// Pending operations of the base were looked up and are settled.
    ClearPending,
    /// Resources of later entries belong to this extension of a package. The state keeps it as long
    /// as one of them is there.
    Extension { extension: Arc<Parameterization> },
}

/// What one outcome means for the list of resources.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JournalChange {
    /// Gone, or superseded by `state`.
    pub remove: Option<StateRef>,
    /// Superseded by a replacement and still to be deleted (`delete: true`).
    pub mark_delete: Option<StateRef>,
    /// Deleted ahead of its replacement (`pendingReplacement: true`).
    pub mark_pending_replacement: Option<StateRef>,
    /// The resource as it is now.
    pub state: Option<Arc<ResourceState>>,
}

#[cfg(test)]
mod tests;
