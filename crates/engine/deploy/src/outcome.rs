//! What comes back from an operation.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_engine_model::{ActId, JournalEntry, PendingOperation, Snapshot, StepOp, replay};

use crate::error::DeployError;
use crate::plan::DeploymentPlan;

#[derive(Debug)]
pub struct DeploymentOutcome {
    pub result: Result<(), DeployError>,
    /// How many steps of each kind ended well, as users count them.
    pub changes: BTreeMap<StepOp, usize>,
    /// The state as replaying the journal on the base gives it. After a preview: as it would be.
    pub snapshot: Snapshot,
    /// When one was asked for and the operation went well.
    pub plan: Option<DeploymentPlan>,
    /// Acts of this operation whose outcome nobody knows.
    pub unknown: Vec<PendingOperation>,
}

/// The state that these entries make of a base, and the acts among them that stay open.
pub(crate) fn replayed(
    base: &Snapshot,
    entries: &[JournalEntry],
) -> (Result<Snapshot, String>, Vec<PendingOperation>) {
    let snapshot = replay(base, entries).map_err(|error| error.to_string());
    let mut open: BTreeMap<ActId, &PendingOperation> = BTreeMap::new();
    let mut closed: BTreeSet<ActId> = BTreeSet::new();
    for entry in entries {
        match entry {
            JournalEntry::Begin { act, operation } => drop(open.insert(*act, operation)),
            JournalEntry::Success { act, .. } | JournalEntry::Failure { act, .. } => {
                closed.insert(*act);
            }
            JournalEntry::Unknown { .. }
            | JournalEntry::Rebase { .. }
            | JournalEntry::ClearPending
            | JournalEntry::Extension { .. } => {}
        }
    }
    open.retain(|act, _| !closed.contains(act));
    (snapshot, open.into_values().cloned().collect())
}
