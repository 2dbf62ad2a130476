//! Whether a state hangs together, and how to mend it.
//!
//! A state is a list in which everything comes after what it needs. The engine relies on that: it
//! refuses a state that breaks a rule, and it never refuses to *write* one, because a broken record
//! is still the only record. Findings are data; nobody is told anything here.

mod repair;
mod sort;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::package::{ProviderRef, provider_package};
use crate::resource::ResourceState;
use crate::snapshot::{Snapshot, SnapshotManifest};
use crate::urn::Urn;

pub use repair::{Repair, RepairAction, repair};
pub use sort::{CycleError, sort_order};

/// How one resource refers to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceLink {
    Parent,
    Provider,
    Dependency,
    /// A dependency of this property.
    Property(String),
    DeletedWith,
    ReplaceWith,
}

impl fmt::Display for ResourceLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent => f.write_str("parent"),
            Self::Provider => f.write_str("provider"),
            Self::Dependency => f.write_str("dependency"),
            Self::Property(name) => write!(f, "dependency of property {name:?}"),
            Self::DeletedWith => f.write_str("deletedWith resource"),
            Self::ReplaceWith => f.write_str("replaceWith resource"),
        }
    }
}

/// A rule that a state breaks. Indices are positions in the list of resources.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityFinding {
    #[error("the manifest's checksum is {found:?} and should be {expected:?}")]
    Magic { expected: String, found: String },
    #[error("resource {index} ({urn}) has no type")]
    NoType { index: usize, urn: Urn },
    #[error("resource {index} ({urn}) is a component and has an id")]
    ComponentWithId { index: usize, urn: Urn },
    #[error("resource {index} ({urn}) is a provider without an id")]
    ProviderWithoutId { index: usize, urn: Urn },
    #[error("resource {index} ({urn}) names a provider by {reference:?}, which is not a reference")]
    BadProviderReference {
        index: usize,
        urn: Urn,
        reference: String,
    },
    #[error("resource {index} ({urn}) refers to a {link} that does not exist: {target}")]
    Missing {
        index: usize,
        urn: Urn,
        link: ResourceLink,
        target: String,
    },
    #[error("resource {index} ({urn}) comes before its {link} {target}, resource {target_index}")]
    OutOfOrder {
        index: usize,
        urn: Urn,
        link: ResourceLink,
        target: String,
        target_index: usize,
    },
    #[error("resources {first} and {second} are both {urn}, and neither waits for its delete")]
    DuplicateUrn {
        urn: Urn,
        first: usize,
        second: usize,
    },
}

/// Everything that is wrong with a state, in the order of its resources.
pub fn verify(snapshot: &Snapshot) -> Vec<IntegrityFinding> {
    let resources: Vec<_> = snapshot.resources.iter().map(AsRef::as_ref).collect();
    verify_parts(&snapshot.manifest, &resources)
}

pub(crate) fn verify_parts(
    manifest: &SnapshotManifest,
    resources: &[&ResourceState],
) -> Vec<IntegrityFinding> {
    let expected = SnapshotManifest::magic_of(&manifest.version);
    let mut findings = Vec::new();
    if manifest.magic != expected {
        findings.push(IntegrityFinding::Magic {
            expected,
            found: manifest.magic.clone(),
        });
    }
    let mut check = IntegrityCheck {
        resources,
        ..IntegrityCheck::default()
    };
    for (index, resource) in resources.iter().enumerate() {
        check.resource(index, resource, &mut findings);
    }
    findings
}

/// What was seen so far while walking a list.
#[derive(Default)]
struct IntegrityCheck<'a> {
    resources: &'a [&'a ResourceState],
    seen: HashSet<&'a Urn>,
    live: HashMap<&'a Urn, usize>,
    providers: HashSet<(&'a Urn, &'a str)>,
    /// The first position of each URN; made when something is missing.
    positions: Option<HashMap<&'a Urn, usize>>,
    provider_positions: Option<HashMap<(&'a Urn, &'a str), usize>>,
}

impl<'a> IntegrityCheck<'a> {
    fn resource(
        &mut self,
        index: usize,
        resource: &'a ResourceState,
        findings: &mut Vec<IntegrityFinding>,
    ) {
        let urn = || resource.urn.clone();
        if resource.type_.is_empty() {
            findings.push(IntegrityFinding::NoType { index, urn: urn() });
        }
        if !resource.custom && resource.id.is_some() {
            findings.push(IntegrityFinding::ComponentWithId { index, urn: urn() });
        }
        if provider_package(&resource.type_).is_some() {
            match resource.id.as_deref() {
                Some(id) if !id.is_empty() => drop(self.providers.insert((&resource.urn, id))),
                _ => findings.push(IntegrityFinding::ProviderWithoutId { index, urn: urn() }),
            }
        }
        findings.extend(self.provider(index, resource));
        for (link, target) in links(resource) {
            if !self.seen.contains(target) {
                findings.push(self.absent(index, resource, link, target));
            }
        }
        self.seen.insert(&resource.urn);
        if !resource.delete {
            if let Some(&first) = self.live.get(&resource.urn) {
                findings.push(IntegrityFinding::DuplicateUrn {
                    urn: urn(),
                    first,
                    second: index,
                });
            } else {
                self.live.insert(&resource.urn, index);
            }
        }
    }

    /// A resource that was deleted ahead of its replacement may outlive its provider.
    fn provider(&mut self, index: usize, resource: &'a ResourceState) -> Option<IntegrityFinding> {
        if resource.provider.is_empty() {
            return None;
        }
        let Ok(provider) = ProviderRef::parse(&resource.provider) else {
            return Some(IntegrityFinding::BadProviderReference {
                index,
                urn: resource.urn.clone(),
                reference: resource.provider.clone(),
            });
        };
        if self
            .providers
            .contains(&(&provider.urn, provider.id.as_str()))
            || resource.pending_replacement
        {
            return None;
        }
        let positions = self.provider_positions.get_or_insert_with(|| {
            let placed = self.resources.iter().enumerate().rev();
            placed
                .filter_map(|(at, r)| Some(((&r.urn, r.id.as_deref()?), at)))
                .collect()
        });
        let later = positions.get(&(&provider.urn, provider.id.as_str()));
        let (urn, link) = (resource.urn.clone(), ResourceLink::Provider);
        let target = resource.provider.clone();
        Some(match later {
            Some(&target_index) => IntegrityFinding::OutOfOrder {
                index,
                urn,
                link,
                target,
                target_index,
            },
            None => IntegrityFinding::Missing {
                index,
                urn,
                link,
                target,
            },
        })
    }

    fn absent(
        &mut self,
        index: usize,
        resource: &ResourceState,
        link: ResourceLink,
        target: &Urn,
    ) -> IntegrityFinding {
        let positions = self.positions.get_or_insert_with(|| {
            // In reverse, so that the first of several stays.
            self.resources
                .iter()
                .enumerate()
                .rev()
                .map(|(at, r)| (&r.urn, at))
                .collect()
        });
        let (urn, name) = (resource.urn.clone(), target.to_string());
        match positions.get(target) {
            Some(&target_index) => IntegrityFinding::OutOfOrder {
                index,
                urn,
                link,
                target: name,
                target_index,
            },
            None => IntegrityFinding::Missing {
                index,
                urn,
                link,
                target: name,
            },
        }
    }
}

/// Every URN that a resource refers to, its provider apart.
pub(crate) fn links(resource: &ResourceState) -> impl Iterator<Item = (ResourceLink, &Urn)> {
    let by_property = resource
        .property_dependencies
        .iter()
        .flat_map(|(property, urns)| {
            urns.iter()
                .map(move |urn| (ResourceLink::Property(property.clone()), urn))
        });
    resource
        .parent
        .iter()
        .map(|urn| (ResourceLink::Parent, urn))
        .chain(
            resource
                .dependencies
                .iter()
                .map(|urn| (ResourceLink::Dependency, urn)),
        )
        .chain(by_property)
        .chain(
            resource
                .deleted_with
                .iter()
                .map(|urn| (ResourceLink::DeletedWith, urn)),
        )
        .chain(
            resource
                .replace_with
                .iter()
                .map(|urn| (ResourceLink::ReplaceWith, urn)),
        )
}

#[cfg(test)]
mod tests;
