//! What the operation has made so far.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nimbus_engine_model::{JournalChange, ResourceState, StepOp, Urn};
use parking_lot::Mutex;

use crate::generator::Marks;
use crate::known::RecordedResource;

#[derive(Default)]
pub(crate) struct ResourceStates {
    inner: Mutex<ResourceStatesInner>,
}

#[derive(Default)]
struct ResourceStatesInner {
    /// Managed resources as they are now.
    managed: BTreeMap<Urn, RecordedResource>,
    /// Objects that were read.
    read: HashMap<Urn, RecordedResource>,
    marks: Marks,
    /// Registered, and may still register outputs.
    registered: HashMap<Urn, AwaitedOutputs>,
}

/// A registration that is done, waiting for its outputs.
#[derive(Clone, Debug)]
pub(crate) enum AwaitedOutputs {
    /// Recorded by the step of this kind; `old` is what was there before.
    Made {
        op: StepOp,
        known: RecordedResource,
        old: Option<Arc<ResourceState>>,
    },
    /// Left out: outputs have nowhere to go.
    Skipped,
}

impl ResourceStates {
    pub(crate) fn apply(&self, change: &JournalChange) {
        let mut inner = self.inner.lock();
        if let Some(key) = change.mark_delete {
            inner.marks.pending_delete.insert(key);
        }
        if let Some(key) = change.mark_pending_replacement {
            inner.marks.pending_replacement.insert(key);
        }
    }

    /// What was marked is marked in the record itself from now on.
    pub(crate) fn forget_marks(&self) {
        self.inner.lock().marks = Marks::default();
    }

    pub(crate) fn marks(&self) -> Marks {
        self.inner.lock().marks.clone()
    }

    pub(crate) fn put(&self, known: RecordedResource) {
        let mut inner = self.inner.lock();
        let urn = known.state.urn.clone();
        if known.state.external {
            inner.read.insert(urn, known);
        } else {
            inner.managed.insert(urn, known);
        }
    }

    pub(crate) fn get(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        let inner = self.inner.lock();
        let known = inner.managed.get(urn).or_else(|| inner.read.get(urn));
        known.map(|known| Arc::clone(&known.state))
    }

    pub(crate) fn managed(&self) -> Vec<Arc<ResourceState>> {
        self.inner
            .lock()
            .managed
            .values()
            .map(|known| Arc::clone(&known.state))
            .collect()
    }

    pub(crate) fn registered(&self, urn: Urn, registered: AwaitedOutputs) {
        self.inner.lock().registered.insert(urn, registered);
    }

    pub(crate) fn take_registered(&self, urn: &Urn) -> Option<AwaitedOutputs> {
        self.inner.lock().registered.remove(urn)
    }
}
