mod codec;
mod replay;

use std::sync::Arc;

use super::*;
use crate::resource::OperationKind;
use crate::snapshot::Snapshot;
use crate::test_support::urn;

fn resource(name: &str, id: &str) -> Arc<ResourceState> {
    let mut resource = ResourceState::new(urn(name), true);
    resource.id = Some(id.to_owned());
    Arc::new(resource)
}

fn base(resources: &[(&str, &str)]) -> Snapshot {
    let resources = resources
        .iter()
        .map(|(name, id)| resource(name, id))
        .collect();
    Snapshot {
        resources,
        ..Snapshot::default()
    }
}

fn begin(act: u64, kind: OperationKind, resource: &Arc<ResourceState>) -> JournalEntry {
    let operation = Operation {
        kind,
        resource: Arc::clone(resource),
    };
    JournalEntry::Begin {
        act: ActId(act),
        operation,
    }
}

fn success(act: u64, change: Change) -> JournalEntry {
    JournalEntry::Success {
        act: ActId(act),
        change,
    }
}

fn record(state: &Arc<ResourceState>) -> Change {
    Change {
        state: Some(Arc::clone(state)),
        ..Change::default()
    }
}

fn supersede(old: StateRef, state: &Arc<ResourceState>) -> Change {
    Change {
        remove: Some(old),
        ..record(state)
    }
}

fn remove(old: StateRef) -> Change {
    Change {
        remove: Some(old),
        ..Change::default()
    }
}

fn new(act: u64) -> StateRef {
    StateRef::New(ActId(act))
}
