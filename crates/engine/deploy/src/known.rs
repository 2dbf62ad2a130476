//! Resources of the running operation: which one it is, and what is known of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use nimbus_engine_model::{ProviderRef, ResourceState, StateRef, Urn};

use crate::error::DeployError;
use crate::graph::ResourceGraph;

/// A recorded resource. Two may share a URN; the key tells them apart.
#[derive(Clone, Debug)]
pub(crate) struct RecordedResource {
    pub key: StateRef,
    pub state: Arc<ResourceState>,
}

/// What was recorded when the operation started, or after it refreshed.
pub(crate) struct Base {
    pub resources: Vec<Arc<ResourceState>>,
    pub graph: ResourceGraph,
    /// Those that are not waiting for their delete.
    live: HashMap<Urn, usize>,
    all: BTreeSet<Urn>,
}

impl Base {
    pub(crate) fn new(resources: Vec<Arc<ResourceState>>) -> Result<Self, DeployError> {
        let mut live = HashMap::new();
        for (index, resource) in resources.iter().enumerate() {
            if resource.delete {
                continue;
            }
            if live.insert(resource.urn.clone(), index).is_some() {
                return Err(DeployError::BadState {
                    message: format!("{} is recorded twice", resource.urn),
                });
            }
        }
        Ok(Self {
            graph: ResourceGraph::new(resources.clone()),
            all: resources
                .iter()
                .map(|resource| resource.urn.clone())
                .collect(),
            resources,
            live,
        })
    }

    pub(crate) fn at(&self, index: usize) -> RecordedResource {
        RecordedResource {
            key: StateRef::Base(index),
            state: Arc::clone(&self.resources[index]),
        }
    }

    /// The resource of this name, if it is not waiting for its delete.
    pub(crate) fn live(&self, urn: &Urn) -> Option<RecordedResource> {
        self.live.get(urn).map(|index| self.at(*index))
    }

    /// Whether anything of this name is recorded, even if it is waiting for its delete.
    pub(crate) fn has(&self, urn: &Urn) -> bool {
        self.all.contains(urn)
    }

    /// The provider that a reference names, id included.
    pub(crate) fn provider(&self, reference: &ProviderRef) -> Option<&Arc<ResourceState>> {
        self.resources.iter().find(|resource| {
            resource.urn == reference.urn && resource.id.as_deref() == Some(&reference.id)
        })
    }
}
