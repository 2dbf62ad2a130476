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
    let operation = PendingOperation {
        kind,
        resource: Arc::clone(resource),
    };
    JournalEntry::Begin {
        act: ActId(act),
        operation,
    }
}

fn success(act: u64, change: JournalChange) -> JournalEntry {
    JournalEntry::Success {
        act: ActId(act),
        change,
    }
}

fn record(state: &Arc<ResourceState>) -> JournalChange {
    JournalChange {
        state: Some(Arc::clone(state)),
        ..JournalChange::default()
    }
}

fn supersede(old: StateRef, state: &Arc<ResourceState>) -> JournalChange {
    JournalChange {
        remove: Some(old),
        ..record(state)
    }
}

fn remove(old: StateRef) -> JournalChange {
    JournalChange {
        remove: Some(old),
        ..JournalChange::default()
    }
}

fn extension(name: &str) -> Parameterization {
    Parameterization {
        name: name.to_owned(),
        version: semver::Version::new(1, 0, 0),
        value: vec![0xff],
    }
}

fn new(act: u64) -> StateRef {
    StateRef::New(ActId(act))
}
