//! Mending a state, on a copy.
//!
//! Only what loses nothing is done: order is restored, references to what does not exist are
//! dropped, and a resource that stands twice with the same id is kept once. What cannot be mended
//! without guessing stays, and is reported: two objects under one name, a missing provider, a
//! circle.

use std::collections::HashMap;
use std::sync::Arc;

use super::{IntegrityFinding, ResourceLink, links, sort_order, verify};
use crate::package::ProviderRef;
use crate::resource::ResourceState;
use crate::snapshot::{Snapshot, SnapshotManifest};
use crate::urn::Urn;

/// One thing that was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairAction {
    #[error("the manifest's checksum was computed again")]
    FixedMagic,
    #[error("{urn} stood twice with the same id; resource {index} was removed")]
    RemovedDuplicate { urn: Urn, index: usize },
    #[error("{urn} was moved before {before}")]
    Moved { urn: Urn, before: Urn },
    #[error("{urn} no longer refers to the {link} {target}, which does not exist")]
    DroppedLink {
        urn: Urn,
        link: ResourceLink,
        target: Urn,
    },
    #[error("{old} is now {new}, because its parent is gone or was renamed")]
    Renamed { old: Urn, new: Urn },
}

/// A mended copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    pub snapshot: Snapshot,
    pub actions: Vec<RepairAction>,
    /// What is still wrong and needs a person.
    pub remaining: Vec<IntegrityFinding>,
}

/// Mends what can be mended. A sound state comes back as it was.
pub fn repair(snapshot: &Snapshot) -> Repair {
    let mut mended = snapshot.clone();
    let mut actions = Vec::new();
    fix_magic(&mut mended.manifest, &mut actions);
    remove_duplicates(&mut mended.resources, &mut actions);
    if verify(&mended)
        .iter()
        .any(|finding| matches!(finding, IntegrityFinding::OutOfOrder { .. }))
    {
        sort(&mut mended.resources, &mut actions);
    }
    prune(&mut mended.resources, &mut actions);
    let remaining = verify(&mended);
    if remaining.is_empty() {
        mended.integrity_error = None;
    }
    Repair {
        snapshot: mended,
        actions,
        remaining,
    }
}

fn fix_magic(manifest: &mut SnapshotManifest, actions: &mut Vec<RepairAction>) {
    let expected = SnapshotManifest::magic_of(&manifest.version);
    if manifest.magic != expected {
        manifest.magic = expected;
        actions.push(RepairAction::FixedMagic);
    }
}

/// The first of several is the newest: what an operation does is written before what it found.
fn remove_duplicates(resources: &mut Vec<Arc<ResourceState>>, actions: &mut Vec<RepairAction>) {
    let mut live: HashMap<Urn, (bool, Option<String>)> = HashMap::new();
    let mut index = 0;
    resources.retain(|resource| {
        let here = index;
        index += 1;
        if resource.delete {
            return true;
        }
        let identity = (resource.custom, resource.id.clone());
        match live.get(&resource.urn) {
            Some(kept) if *kept == identity => {
                actions.push(RepairAction::RemovedDuplicate {
                    urn: resource.urn.clone(),
                    index: here,
                });
                false
            }
            Some(_) => true,
            None => {
                live.insert(resource.urn.clone(), identity);
                true
            }
        }
    });
}

fn sort(resources: &mut Vec<Arc<ResourceState>>, actions: &mut Vec<RepairAction>) {
    let Ok(order) = sort_order(resources) else {
        return;
    };
    let mut placed = vec![false; resources.len()];
    let mut next = 0;
    for &at in &order {
        if at != next {
            actions.push(RepairAction::Moved {
                urn: resources[at].urn.clone(),
                before: resources[next].urn.clone(),
            });
        }
        placed[at] = true;
        while placed.get(next) == Some(&true) {
            next += 1;
        }
    }
    *resources = order.iter().map(|&at| Arc::clone(&resources[at])).collect();
}

fn prune(resources: &mut [Arc<ResourceState>], actions: &mut Vec<RepairAction>) {
    // The present name of everything that came so far, by its old name.
    let mut names: HashMap<Urn, Urn> = HashMap::new();
    for resource in resources {
        let old = resource.urn.clone();
        if needs_pruning(resource, &names) {
            prune_one(Arc::make_mut(resource), &names, actions);
        }
        names.insert(old, resource.urn.clone());
    }
}

fn needs_pruning(resource: &ResourceState, names: &HashMap<Urn, Urn>) -> bool {
    let provider = ProviderRef::parse(&resource.provider)
        .ok()
        .map(|provider| provider.urn);
    links(resource).any(|(_, target)| names.get(target) != Some(target))
        || provider.is_some_and(|urn| names.get(&urn).is_some_and(|name| *name != urn))
}

fn prune_one(
    resource: &mut ResourceState,
    names: &HashMap<Urn, Urn>,
    actions: &mut Vec<RepairAction>,
) {
    let urn = resource.urn.clone();
    let mut rename = |link: ResourceLink, target: &Urn| {
        let name = names.get(target).cloned();
        if name.is_none() {
            let (urn, target) = (urn.clone(), target.clone());
            actions.push(RepairAction::DroppedLink { urn, link, target });
        }
        name
    };
    if let Some(parent) = resource.parent.take() {
        resource.parent = rename(ResourceLink::Parent, &parent);
        if resource.parent.as_ref() != Some(&parent) {
            let parent_type = resource.parent.as_ref().map(Urn::qualified_type);
            resource.urn = Urn::new(
                urn.stack(),
                urn.project(),
                parent_type,
                urn.type_(),
                urn.name(),
            );
        }
    }
    let mut rename_all = |link: ResourceLink, urns: &mut Vec<Urn>| {
        *urns = urns
            .iter()
            .filter_map(|target| rename(link.clone(), target))
            .collect();
    };
    rename_all(ResourceLink::Dependency, &mut resource.dependencies);
    for (property, urns) in &mut resource.property_dependencies {
        rename_all(ResourceLink::Property(property.clone()), urns);
    }
    rename_all(ResourceLink::ReplaceWith, &mut resource.replace_with);
    resource.deleted_with = resource
        .deleted_with
        .take()
        .and_then(|target| rename(ResourceLink::DeletedWith, &target));
    if let Ok(mut provider) = ProviderRef::parse(&resource.provider)
        && let Some(name) = names.get(&provider.urn)
    {
        provider.urn = name.clone();
        resource.provider = provider.to_string();
    }
    if resource.urn != urn {
        actions.push(RepairAction::Renamed {
            old: urn,
            new: resource.urn.clone(),
        });
    }
}
