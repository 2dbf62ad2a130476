//! Resources that were renamed.
//!
//! A resource that took over an earlier one under another name lists that name as an alias.
//! Everything that still refers to the old name is made to refer to the new one, and then the
//! alias has served its purpose and is not recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::package::ProviderRef;
use crate::resource::ResourceState;
use crate::urn::{ROOT_STACK_TYPE, Urn};

/// Rewrites references to old names. Names in `fresh` were given in this very operation: an alias
/// that names one of them is nobody's old name.
pub(super) fn settle(resources: &mut [Arc<ResourceState>], fresh: &HashSet<Urn>) {
    let names = renamed(resources, fresh);
    for resource in resources {
        if refers_to_old_name(resource, &names) {
            rewrite(Arc::make_mut(resource), &names);
        }
    }
}

fn renamed(resources: &[Arc<ResourceState>], fresh: &HashSet<Urn>) -> HashMap<Urn, Urn> {
    let mut names: HashMap<Urn, Urn> = HashMap::new();
    for resource in resources {
        for alias in resource
            .aliases
            .iter()
            .filter(|alias| !fresh.contains(alias))
        {
            names
                .entry(alias.clone())
                .or_insert_with(|| resource.urn.clone());
        }
        // A child's name contains its parent's type, so it changes with it.
        let parent = resource
            .parent
            .as_ref()
            .and_then(|parent| names.get(parent));
        if let Some(parent) = parent.filter(|urn| urn.qualified_type() != ROOT_STACK_TYPE) {
            let (urn, parent_type) = (&resource.urn, Some(parent.qualified_type()));
            let new = Urn::new(
                urn.stack(),
                urn.project(),
                parent_type,
                urn.type_(),
                urn.name(),
            );
            names.insert(urn.clone(), new);
        }
    }
    names
}

fn refers_to_old_name(resource: &ResourceState, names: &HashMap<Urn, Urn>) -> bool {
    !resource.aliases.is_empty()
        || names.contains_key(&resource.urn)
        || resource
            .view_of
            .as_ref()
            .is_some_and(|urn| names.contains_key(urn))
        || resource
            .all_dependencies()
            .any(|urn| names.contains_key(&urn))
}

fn rewrite(resource: &mut ResourceState, names: &HashMap<Urn, Urn>) {
    let rename = |urn: &mut Urn| {
        if let Some(new) = names.get(urn) {
            *urn = new.clone();
        }
    };
    rename(&mut resource.urn);
    resource
        .parent
        .iter_mut()
        .chain(&mut resource.dependencies)
        .chain(resource.property_dependencies.values_mut().flatten())
        .chain(&mut resource.deleted_with)
        .chain(&mut resource.replace_with)
        .chain(&mut resource.view_of)
        .for_each(rename);
    if let Ok(mut provider) = ProviderRef::parse(&resource.provider) {
        rename(&mut provider.urn);
        resource.provider = provider.to_string();
    }
    resource.aliases.clear();
}
