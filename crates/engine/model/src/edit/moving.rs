//! Resources that another stack takes over.
//!
//! Children go with their parent. Providers that the others need are copied. Whatever a resource on
//! one side needs on the other is forgotten, and told: programs of different stacks hand values on
//! through stack references.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{EditError, only};
use crate::ROOT_STACK_TYPE;
use crate::integrity::sort_order;
use crate::package::{ProviderRef, provider_package};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::urn::Urn;

/// What goes where.
#[derive(Clone, Copy, Debug)]
pub struct MoveRequest<'a> {
    pub resources: &'a [Urn],
    /// Parents go too; else children of somebody who stays become children of the stack.
    pub with_parents: bool,
    /// Name and project of the stack that takes them.
    pub to_stack: &'a str,
    pub to_project: &'a str,
}

/// Both states afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedResources {
    pub source: Snapshot,
    pub destination: Snapshot,
    /// Old and new names, in the order of the state.
    pub moved: Vec<(Urn, Urn)>,
    /// Providers that both have now, by their new names.
    pub copied: Vec<Urn>,
    /// Who needed whom across the new border: no longer recorded.
    pub forgotten: Vec<(Urn, Urn)>,
}

pub fn move_resources(
    source: &Snapshot,
    destination: &Snapshot,
    request: MoveRequest<'_>,
) -> Result<MovedResources, EditError> {
    let leaving = chosen(source, request)?;
    let copied = providers(source, &leaving);
    let names = new_names(source, &leaving, &copied, request);
    let taken: HashSet<&Urn> = destination.resources.iter().map(|one| &one.urn).collect();
    let mut forgotten = Vec::new();

    let mut after = destination.clone();
    let root = ensure_root(&mut after, source, request);
    let mut moved = Vec::new();
    let mut copies = Vec::new();
    for resource in &source.resources {
        let Some(new) = names.get(&resource.urn) else {
            continue;
        };
        let is_copy = copied.contains(&resource.urn);
        if taken.contains(new) {
            if is_copy && same_provider(resource, new, destination) {
                continue;
            }
            return Err(match is_copy {
                true => EditError::ProviderDiffers { urn: new.clone() },
                false => EditError::Taken { urn: new.clone() },
            });
        }
        let mut state = ResourceState::clone(resource);
        settle(&mut state, &names, &root, &mut forgotten);
        match is_copy {
            true => copies.push(new.clone()),
            false => moved.push((resource.urn.clone(), new.clone())),
        }
        after.resources.push(Arc::new(state));
    }
    for (reference, extension) in &source.extensions {
        after
            .extensions
            .entry(reference.clone())
            .or_insert_with(|| Arc::clone(extension));
    }
    after.drop_unused_extensions();
    in_order(&mut after);

    let mut before = source.clone();
    before.resources.retain(|one| !leaving.contains(&one.urn));
    for resource in &mut before.resources {
        let gone = |urn: &Urn| leaving.contains(urn);
        if resource.all_dependencies().any(|urn| gone(&urn)) {
            drop_links(Arc::make_mut(resource), gone, &mut forgotten);
        }
    }
    before.drop_unused_extensions();
    forgotten.sort();
    forgotten.dedup();
    Ok(MovedResources {
        source: before,
        destination: after,
        moved,
        copied: copies,
        forgotten,
    })
}

/// What was named, with children and, if they go too, parents.
fn chosen(source: &Snapshot, request: MoveRequest<'_>) -> Result<HashSet<Urn>, EditError> {
    let mut leaving = HashSet::new();
    for urn in request.resources {
        let resource = only(source, urn)?;
        if resource.urn.type_() == ROOT_STACK_TYPE {
            return Err(EditError::Root { urn: urn.clone() });
        }
        leaving.insert(urn.clone());
    }
    for resource in &source.resources {
        let by_parent = resource
            .parent
            .as_ref()
            .is_some_and(|up| leaving.contains(up));
        let by_owner = resource
            .view_of
            .as_ref()
            .is_some_and(|of| leaving.contains(of));
        if by_parent || by_owner {
            leaving.insert(resource.urn.clone());
        }
    }
    if request.with_parents {
        // Children come after their parents, so backwards one walk finds all.
        for resource in source.resources.iter().rev() {
            if let Some(parent) = &resource.parent
                && leaving.contains(&resource.urn)
                && parent.type_() != ROOT_STACK_TYPE
            {
                leaving.insert(parent.clone());
            }
        }
    }
    refuse_needed_providers(source, &leaving)?;
    for resource in &source.resources {
        if let Some(owner) = &resource.view_of
            && leaving.contains(&resource.urn)
            && !leaving.contains(owner)
        {
            return Err(EditError::View {
                urn: resource.urn.clone(),
                owner: owner.clone(),
            });
        }
    }
    Ok(leaving)
}

/// A provider that others need stays with them; those who leave get a copy of it.
fn refuse_needed_providers(source: &Snapshot, leaving: &HashSet<Urn>) -> Result<(), EditError> {
    for resource in &source.resources {
        let provider = ProviderRef::parse(&resource.provider).map(|provider| provider.urn);
        if let Ok(urn) = provider
            && leaving.contains(&urn)
            && !leaving.contains(&resource.urn)
        {
            let dependents = vec![resource.urn.clone()];
            return Err(EditError::Dependents { urn, dependents });
        }
    }
    Ok(())
}

/// Providers of those who leave that stay themselves.
fn providers(source: &Snapshot, leaving: &HashSet<Urn>) -> HashSet<Urn> {
    source
        .resources
        .iter()
        .filter(|resource| leaving.contains(&resource.urn))
        .filter_map(|resource| ProviderRef::parse(&resource.provider).ok())
        .map(|provider| provider.urn)
        .filter(|urn| !leaving.contains(urn))
        .collect()
}

/// A resource's new name has the other stack in it, and no types of parents that stay.
fn new_names(
    source: &Snapshot,
    leaving: &HashSet<Urn>,
    copied: &HashSet<Urn>,
    request: MoveRequest<'_>,
) -> HashMap<Urn, Urn> {
    let mut names: HashMap<Urn, Urn> = HashMap::new();
    for resource in &source.resources {
        let urn = &resource.urn;
        if !leaving.contains(urn) && !copied.contains(urn) {
            continue;
        }
        let parent = resource.parent.as_ref().and_then(|up| names.get(up));
        let parent_type = parent.map(|up| up.qualified_type().to_owned());
        let new = Urn::new(
            request.to_stack,
            request.to_project,
            parent_type.as_deref(),
            urn.type_(),
            urn.name(),
        );
        names.insert(urn.clone(), new);
    }
    names
}

fn same_provider(resource: &ResourceState, new: &Urn, destination: &Snapshot) -> bool {
    provider_package(&resource.type_).is_some()
        && destination
            .resources
            .iter()
            .any(|one| one.urn == *new && one.inputs == resource.inputs && one.id == resource.id)
}

/// The root of the stack that takes them, made if nothing was ever deployed there.
fn ensure_root(after: &mut Snapshot, source: &Snapshot, request: MoveRequest<'_>) -> Urn {
    let urn = Urn::root_stack(request.to_stack, request.to_project);
    if !after.resources.iter().any(|one| one.urn == urn) {
        let root = ResourceState::new(urn.clone(), false);
        after.resources.insert(0, Arc::new(root));
    }
    if after.manifest.version.is_empty() {
        after.manifest = source.manifest.clone();
    }
    urn
}

/// The state under its new name: parents that stay are replaced by the stack, other links that
/// cross the border are dropped.
fn settle(
    state: &mut ResourceState,
    names: &HashMap<Urn, Urn>,
    root: &Urn,
    forgotten: &mut Vec<(Urn, Urn)>,
) {
    let parent_stays = state
        .parent
        .as_ref()
        .is_some_and(|up| !names.contains_key(up));
    if parent_stays {
        state.parent = None;
    }
    drop_links(state, |urn| !names.contains_key(urn), forgotten);
    // Earlier names were of the other stack.
    state.aliases.clear();
    state.each_urn(&mut |urn| {
        if let Some(new) = names.get(urn) {
            *urn = new.clone();
        }
    });
    if parent_stays || state.parent.is_none() {
        state.parent = Some(root.clone());
    }
}

/// Forgets what a resource needs of those that are gone. Its provider is never one of them.
fn drop_links(
    state: &mut ResourceState,
    gone: impl Fn(&Urn) -> bool,
    forgotten: &mut Vec<(Urn, Urn)>,
) {
    let owner = state.urn.clone();
    let mut keep = |urn: &Urn| {
        let stays = !gone(urn);
        if !stays {
            forgotten.push((owner.clone(), urn.clone()));
        }
        stays
    };
    state.dependencies.retain(&mut keep);
    state.replace_with.retain(&mut keep);
    for urns in state.property_dependencies.values_mut() {
        urns.retain(&mut keep);
    }
    if state.deleted_with.as_ref().is_some_and(|urn| !keep(urn)) {
        state.deleted_with = None;
    }
    if state.parent.as_ref().is_some_and(|urn| !keep(urn)) {
        state.parent = None;
    }
}

/// Dependencies before dependants. A state that cannot be ordered is refused when it is checked.
fn in_order(snapshot: &mut Snapshot) {
    let Ok(order) = sort_order(&snapshot.resources) else {
        return;
    };
    let resources = order
        .into_iter()
        .map(|at| Arc::clone(&snapshot.resources[at]));
    snapshot.resources = resources.collect();
}
