//! Edits of a recorded state that a person asks for: forget a resource, give it another name, let it
//! be deleted, or hand it to another stack.
//!
//! Each is a function from a state to a state, and refuses what would leave one that contradicts
//! itself. Nothing in the cloud changes; whoever writes the result keeps the state before it.

mod moving;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::urn::Urn;

pub use moving::{MoveRequest, MovedResources, move_resources};

/// Why an edit is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the state has no resource {urn}")]
    Unknown { urn: Urn },
    #[error("the state has {count} resources {urn}: old ones wait for their delete")]
    Ambiguous { urn: Urn, count: usize },
    #[error("{urn} is protected")]
    Protected { urn: Urn },
    #[error("{} depend on {urn}: {}", counted(.dependents), listed(.dependents))]
    Dependents { urn: Urn, dependents: Vec<Urn> },
    #[error("the state has a resource {urn} already")]
    Taken { urn: Urn },
    #[error("{urn} stands for the stack itself")]
    Root { urn: Urn },
    #[error("{name:?} cannot be the name of a resource")]
    Name { name: String },
    #[error("both stacks have a provider {urn}, and they are configured differently")]
    ProviderDiffers { urn: Urn },
    #[error("{urn} is a view of {owner}, and moves only with it")]
    View { urn: Urn, owner: Urn },
}

fn counted(urns: &[Urn]) -> String {
    match urns.len() {
        1 => "1 resource".to_owned(),
        count => format!("{count} resources"),
    }
}

fn listed(urns: &[Urn]) -> String {
    let names: Vec<&str> = urns.iter().map(Urn::as_str).collect();
    names.join(", ")
}

/// How far a delete may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRules {
    /// Whatever depends on it is forgotten too.
    pub with_dependents: bool,
    /// Protection does not count.
    pub protected: bool,
}

/// The state without a resource. Dependants stop it, unless they go too.
pub fn delete_resource(
    snapshot: &Snapshot,
    urn: &Urn,
    rules: DeleteRules,
) -> Result<Snapshot, EditError> {
    only(snapshot, urn)?;
    let dependents = dependents(snapshot, urn);
    if !rules.with_dependents && !dependents.is_empty() {
        return Err(EditError::Dependents {
            urn: urn.clone(),
            dependents,
        });
    }
    let gone: HashSet<&Urn> = dependents.iter().chain([urn]).collect();
    let leaving = |resource: &&Arc<ResourceState>| gone.contains(&resource.urn);
    if !rules.protected {
        let mut leaving = snapshot.resources.iter().filter(leaving);
        if let Some(kept) = leaving.find(|resource| resource.protect) {
            return Err(EditError::Protected {
                urn: kept.urn.clone(),
            });
        }
    }
    let mut edited = snapshot.clone();
    edited
        .resources
        .retain(|resource| !gone.contains(&resource.urn));
    Ok(edited)
}

/// The state with another name for a resource, and for everything that refers to it.
pub fn rename_resource(snapshot: &Snapshot, urn: &Urn, name: &str) -> Result<Snapshot, EditError> {
    let resource = only(snapshot, urn)?;
    if resource.urn.type_() == crate::ROOT_STACK_TYPE {
        return Err(EditError::Root { urn: urn.clone() });
    }
    if name.is_empty() || !Urn::is_recordable(name) {
        let name = name.to_owned();
        return Err(EditError::Name { name });
    }
    let (parents, own) = match urn.qualified_type().rsplit_once('$') {
        Some((parents, own)) => (Some(parents), own),
        None => (None, urn.qualified_type()),
    };
    let renamed = Urn::new(urn.stack(), urn.project(), parents, own, name);
    if snapshot.resources.iter().any(|one| one.urn == renamed) {
        return Err(EditError::Taken { urn: renamed });
    }
    let mut edited = snapshot.clone();
    rewrite(&mut edited, &mut |one: &mut Urn| {
        if one == urn {
            *one = renamed.clone();
        }
    });
    Ok(edited)
}

/// The state in which a resource, or all of them, may be deleted again.
pub fn unprotect(snapshot: &Snapshot, urn: Option<&Urn>) -> Result<Snapshot, EditError> {
    if let Some(urn) = urn
        && !snapshot.resources.iter().any(|one| one.urn == *urn)
    {
        return Err(EditError::Unknown { urn: urn.clone() });
    }
    let mut edited = snapshot.clone();
    for resource in &mut edited.resources {
        let meant = urn.is_none_or(|urn| resource.urn == *urn);
        if meant && resource.protect {
            Arc::make_mut(resource).protect = false;
        }
    }
    Ok(edited)
}

/// The one resource of this name.
fn only<'a>(snapshot: &'a Snapshot, urn: &Urn) -> Result<&'a ResourceState, EditError> {
    let mut found = snapshot.resources.iter().filter(|one| one.urn == *urn);
    let Some(first) = found.next() else {
        return Err(EditError::Unknown { urn: urn.clone() });
    };
    match found.count() {
        0 => Ok(first),
        more => Err(EditError::Ambiguous {
            urn: urn.clone(),
            count: more + 1,
        }),
    }
}

/// Everything that cannot be without it, directly or not, in the order of the state.
fn dependents(snapshot: &Snapshot, urn: &Urn) -> Vec<Urn> {
    let mut gone: HashSet<Urn> = HashSet::from([urn.clone()]);
    let mut found = Vec::new();
    // Dependencies come before dependants, so one walk finds all.
    for resource in &snapshot.resources {
        let needs = resource.all_dependencies().any(|need| gone.contains(&need))
            || resource
                .view_of
                .as_ref()
                .is_some_and(|of| gone.contains(of));
        if needs && gone.insert(resource.urn.clone()) {
            found.push(resource.urn.clone());
        }
    }
    found
}

fn rewrite(snapshot: &mut Snapshot, change: &mut dyn FnMut(&mut Urn)) {
    for resource in &mut snapshot.resources {
        Arc::make_mut(resource).each_urn(change);
    }
    for pending in &mut snapshot.pending_operations {
        Arc::make_mut(&mut pending.resource).each_urn(change);
    }
}
