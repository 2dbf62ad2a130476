//! Rebuilding a snapshot from what an operation recorded.
//!
//! Resources that acts recorded come first, in the order in which their acts ended: an act starts
//! only when everything it needs is done. Then come those resources of the base that no act
//! touched, in their old order. A resource that is recorded again keeps its place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{ActId, JournalChange, JournalEntry, StateRef, aliases};
use crate::integrity::{IntegrityFinding, sort_order, verify};
use crate::package::Parameterization;
use crate::resource::{OperationKind, PendingOperation, ResourceState};
use crate::snapshot::Snapshot;
use crate::urn::Urn;

/// The entry that does not fit, by its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry} of the journal does not fit: {problem}")]
pub struct ReplayError {
    pub entry: usize,
    pub problem: ReplayProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayProblem {
    #[error("it names resource {index} of a state that has {resources}")]
    NoSuchResource { index: usize, resources: usize },
    #[error("it names a resource that act {} should have recorded", act.0)]
    NoSuchAct { act: ActId },
    #[error("act {} has recorded a resource already", act.0)]
    RecordedTwice { act: ActId },
    #[error("act {} was never begun", act.0)]
    NeverBegun { act: ActId },
}

impl From<ReplayError> for nimbus_core::Error {
    fn from(error: ReplayError) -> Self {
        Self::new(nimbus_core::ErrorCode::JOURNAL_BASE, error.to_string())
    }
}

/// The state that `entries` make of `base`. Any prefix of a journal can be replayed: whatever was
/// begun and has no outcome in it is pending in the result.
///
/// The manifest is the base's. Whoever writes the result says so in a new one.
pub fn replay(base: &Snapshot, entries: &[JournalEntry]) -> Result<Snapshot, ReplayError> {
    let mut replayer = Replayer::new(base);
    for (position, entry) in entries.iter().enumerate() {
        let located = |problem| ReplayError {
            entry: position,
            problem,
        };
        replayer.apply(entry).map_err(located)?;
    }
    Ok(replayer.finish(base))
}

struct Replayer {
    base: Vec<Option<Arc<ResourceState>>>,
    recorded: Vec<Option<Arc<ResourceState>>>,
    /// Where each act's resource stands among the recorded.
    slots: HashMap<ActId, usize>,
    open: BTreeMap<ActId, PendingOperation>,
    /// Pending in the base, and nobody knows better yet.
    inherited: Vec<PendingOperation>,
    /// Of packages; those that nothing belongs to in the end are left out.
    extensions: BTreeMap<String, Arc<Parameterization>>,
}

impl Replayer {
    fn new(base: &Snapshot) -> Self {
        Self {
            base: base.resources.iter().cloned().map(Some).collect(),
            recorded: Vec::new(),
            slots: HashMap::new(),
            open: BTreeMap::new(),
            inherited: base.pending_operations.clone(),
            extensions: base.extensions.clone(),
        }
    }

    fn apply(&mut self, entry: &JournalEntry) -> Result<(), ReplayProblem> {
        match entry {
            JournalEntry::Begin { act, operation } => {
                self.open.insert(*act, operation.clone());
            }
            JournalEntry::Success { act, change } => {
                if let Some(done) = self.open.remove(act) {
                    self.settle(&done);
                }
                self.change(*act, change)?;
            }
            JournalEntry::Failure { act, change } => {
                self.open.remove(act);
                self.change(*act, change)?;
            }
            JournalEntry::Unknown { act, .. } => {
                if !self.open.contains_key(act) {
                    return Err(ReplayProblem::NeverBegun { act: *act });
                }
            }
            JournalEntry::Rebase { resources } => {
                self.base = resources.iter().cloned().map(Some).collect();
                self.recorded.clear();
                self.slots.clear();
            }
            JournalEntry::ClearPending => self.inherited.clear(),
            JournalEntry::Extension { extension } => {
                let reference = extension.reference();
                self.extensions.insert(reference, Arc::clone(extension));
            }
        }
        Ok(())
    }

    /// A finished act answers what an earlier one on the same resource left open. It does not
    /// answer for a create, which may have made an object that nothing else will ever find, unless
    /// it is an import: then somebody found the object.
    fn settle(&mut self, done: &PendingOperation) {
        self.inherited.retain(|earlier| {
            let answers =
                earlier.kind != OperationKind::Creating || done.kind == OperationKind::Importing;
            earlier.resource.urn != done.resource.urn || !answers
        });
    }

    fn change(&mut self, act: ActId, change: &JournalChange) -> Result<(), ReplayProblem> {
        if let Some(marked) = change.mark_delete {
            self.mark(marked, |resource| resource.delete = true)?;
        }
        if let Some(marked) = change.mark_pending_replacement {
            self.mark(marked, |resource| resource.pending_replacement = true)?;
        }
        if change.state.is_some() && self.slots.contains_key(&act) {
            return Err(ReplayProblem::RecordedTwice { act });
        }
        let mut place = None;
        if let Some(removed) = change.remove {
            *self.slot(removed)? = None;
            if let StateRef::New(earlier) = removed {
                place = self.slots.get(&earlier).copied();
            }
        }
        if let Some(state) = &change.state {
            let place = place.unwrap_or_else(|| {
                self.recorded.push(None);
                self.recorded.len() - 1
            });
            self.recorded[place] = Some(Arc::clone(state));
            self.slots.insert(act, place);
        }
        Ok(())
    }

    fn mark(
        &mut self,
        marked: StateRef,
        change: impl FnOnce(&mut ResourceState),
    ) -> Result<(), ReplayProblem> {
        if let Some(resource) = self.slot(marked)? {
            change(Arc::make_mut(resource));
        }
        Ok(())
    }

    fn slot(&mut self, at: StateRef) -> Result<&mut Option<Arc<ResourceState>>, ReplayProblem> {
        match at {
            StateRef::Base(index) => {
                let resources = self.base.len();
                let missing = ReplayProblem::NoSuchResource { index, resources };
                self.base.get_mut(index).ok_or(missing)
            }
            StateRef::New(act) => {
                let slot = self
                    .slots
                    .get(&act)
                    .and_then(|slot| self.recorded.get_mut(*slot));
                slot.ok_or(ReplayProblem::NoSuchAct { act })
            }
        }
    }

    fn finish(self, base: &Snapshot) -> Snapshot {
        let recorded: Vec<_> = self.recorded.into_iter().flatten().collect();
        let fresh: HashSet<Urn> = recorded
            .iter()
            .map(|resource| resource.urn.clone())
            .collect();
        let mut resources = recorded;
        resources.extend(self.base.into_iter().flatten());
        aliases::settle(&mut resources, &fresh);
        let mut pending_operations: Vec<_> = self.open.into_values().collect();
        pending_operations.extend(self.inherited);
        let mut snapshot = Snapshot {
            manifest: base.manifest.clone(),
            secrets_provider: base.secrets_provider.clone(),
            resources,
            pending_operations,
            extensions: self.extensions,
            integrity_error: base.integrity_error.clone(),
            extra: base.extra.clone(),
        };
        snapshot.drop_unused_extensions();
        restore_order(&mut snapshot);
        snapshot
    }
}

/// An act may depend on a resource of the base that no act has touched, which stands later.
fn restore_order(snapshot: &mut Snapshot) {
    let findings = verify(snapshot);
    if !findings
        .iter()
        .any(|finding| matches!(finding, IntegrityFinding::OutOfOrder { .. }))
    {
        return;
    }
    if let Ok(order) = sort_order(&snapshot.resources) {
        let resources = &snapshot.resources;
        snapshot.resources = order
            .into_iter()
            .map(|at| Arc::clone(&resources[at]))
            .collect();
    }
}
