//! The order in which everything comes after what it needs.

use std::collections::HashMap;

use super::links;
use crate::package::ProviderRef;
use crate::resource::ResourceState;
use crate::urn::Urn;

/// Resources that need each other. No order satisfies them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these resources depend on each other in a circle: {}", show(urns))]
pub struct CycleError {
    pub urns: Vec<Urn>,
}

fn show(urns: &[Urn]) -> String {
    urns.iter().map(Urn::as_str).collect::<Vec<_>>().join(" → ")
}

/// Positions in the order in which the resources should stand. A list that is in order already
/// stays as it is.
pub fn sort_order<R: AsRef<ResourceState>>(resources: &[R]) -> Result<Vec<usize>, CycleError> {
    let index = Index::new(resources);
    let mut order = Vec::with_capacity(resources.len());
    let mut marks = vec![SortMark::New; resources.len()];
    // A path of open resources instead of recursion: chains can be as long as the state.
    let mut path: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    for root in 0..resources.len() {
        visit(root, &index, resources, &mut marks, &mut path);
        while let Some((at, needs)) = path.last_mut() {
            let at = *at;
            match needs.next() {
                Some(need) if marks[need] == SortMark::Open => {
                    return Err(cycle(&path, need, resources));
                }
                Some(need) => visit(need, &index, resources, &mut marks, &mut path),
                None => {
                    path.pop();
                    marks[at] = SortMark::Done;
                    order.push(at);
                }
            }
        }
    }
    Ok(order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortMark {
    New,
    Open,
    Done,
}

fn visit<R: AsRef<ResourceState>>(
    at: usize,
    index: &Index<'_>,
    resources: &[R],
    marks: &mut [SortMark],
    path: &mut Vec<(usize, std::vec::IntoIter<usize>)>,
) {
    if marks[at] == SortMark::New {
        marks[at] = SortMark::Open;
        path.push((at, index.needs(resources[at].as_ref()).into_iter()));
    }
}

fn cycle<R: AsRef<ResourceState>>(
    path: &[(usize, std::vec::IntoIter<usize>)],
    again: usize,
    resources: &[R],
) -> CycleError {
    let circle = path.iter().map(|(at, _)| *at).skip_while(|at| *at != again);
    let urns = circle
        .chain([again])
        .map(|at| resources[at].as_ref().urn.clone())
        .collect();
    CycleError { urns }
}

/// Where each URN stands. A resource that is being replaced stands twice: what waits for its
/// delete knew only the old one, and everything else means the new one.
struct Index<'a> {
    live: HashMap<&'a Urn, usize>,
    deleted: HashMap<&'a Urn, usize>,
}

impl<'a> Index<'a> {
    fn new<R: AsRef<ResourceState>>(resources: &'a [R]) -> Self {
        let mut index = Self {
            live: HashMap::new(),
            deleted: HashMap::new(),
        };
        for (at, resource) in resources.iter().map(AsRef::as_ref).enumerate() {
            let positions = if resource.delete {
                &mut index.deleted
            } else {
                &mut index.live
            };
            // The first of several is enough: whoever needs the URN finds it there.
            positions.entry(&resource.urn).or_insert(at);
        }
        index
    }

    fn find(&self, urn: &Urn, for_deleted: bool) -> Option<usize> {
        let (first, second) = if for_deleted {
            (&self.deleted, &self.live)
        } else {
            (&self.live, &self.deleted)
        };
        first.get(urn).or_else(|| second.get(urn)).copied()
    }

    /// Positions that must come before this resource, each once, in their present order.
    fn needs(&self, resource: &ResourceState) -> Vec<usize> {
        let provider = ProviderRef::parse(&resource.provider).ok();
        let mut needs: Vec<_> = links(resource)
            .map(|(_, urn)| urn)
            .chain(provider.as_ref().map(|provider| &provider.urn))
            .filter_map(|urn| self.find(urn, resource.delete))
            .collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }
}
