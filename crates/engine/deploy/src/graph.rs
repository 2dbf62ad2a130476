//! Who depends on whom, in a list of resources whose dependencies come before their dependants.
//!
//! Resources are named by their position: a URN may occur twice, once for a resource and once for
//! what it replaced. A dependency on a URN means every earlier resource of that name. Whoever
//! depends on a component also depends on the children that it had by then, because remote
//! components do not tell their children to those who use them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nimbus_engine_model::{ProviderRef, ResourceState, Urn};

pub(crate) struct ResourceGraph {
    resources: Vec<Arc<ResourceState>>,
    /// Direct dependencies of each resource, itself excluded.
    dependencies: Vec<BTreeSet<usize>>,
}

impl ResourceGraph {
    pub(crate) fn new(resources: Vec<Arc<ResourceState>>) -> Self {
        let mut positions: HashMap<&Urn, Vec<usize>> = HashMap::new();
        let mut descendants: HashMap<&Urn, Vec<usize>> = HashMap::new();
        let mut dependencies = Vec::with_capacity(resources.len());
        for (index, resource) in resources.iter().enumerate() {
            dependencies.push(direct_dependencies(
                resource,
                &resources,
                &positions,
                &descendants,
            ));
            for ancestor in ancestors(resource, &resources, &positions) {
                descendants.entry(ancestor).or_default().push(index);
            }
            positions.entry(&resource.urn).or_default().push(index);
        }
        Self {
            resources,
            dependencies,
        }
    }

    /// Everything that depends on a resource, directly or not, in order. Resources in `ignored`
    /// neither count nor lead further. With `children`, a child depends on its parent.
    pub(crate) fn dependents_of(
        &self,
        root: usize,
        ignored: &HashSet<Urn>,
        children: bool,
    ) -> Vec<usize> {
        let mut reached: HashSet<&Urn> = HashSet::from([&self.resources[root].urn]);
        let mut dependents = Vec::new();
        for (index, candidate) in self.resources.iter().enumerate().skip(root + 1) {
            let depends = !ignored.contains(&candidate.urn)
                && (needs_any(candidate, &reached)
                    || (children
                        && candidate
                            .parent
                            .as_ref()
                            .is_some_and(|p| reached.contains(p))));
            if depends {
                dependents.push(index);
                reached.insert(&candidate.urn);
            }
        }
        dependents
    }

    /// What a resource depends on, directly.
    pub(crate) fn dependencies_of(&self, index: usize) -> &BTreeSet<usize> {
        &self.dependencies[index]
    }

    /// What a resource depends on, directly or not.
    pub(crate) fn all_dependencies_of(&self, index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut frontier = vec![index];
        while let Some(next) = frontier.pop() {
            for dependency in &self.dependencies[next] {
                if found.insert(*dependency) {
                    frontier.push(*dependency);
                }
            }
        }
        found
    }

    /// Groups of resources to delete, one group after the other: within a group none depends on
    /// another, and nothing is deleted before everything that depends on it. The newest come first
    /// in each group, so that the order is the same every time.
    pub(crate) fn deletion_order(&self, condemned: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let mut depth: HashMap<usize, usize> = HashMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in condemned {
            let level = self.dependencies[*index]
                .iter()
                .filter_map(|dependency| depth.get(dependency))
                .map(|level| level + 1)
                .max()
                .unwrap_or(0);
            depth.insert(*index, level);
            if groups.len() <= level {
                groups.resize_with(level + 1, Vec::new);
            }
            groups[level].push(*index);
        }
        groups.reverse();
        for group in &mut groups {
            group.reverse();
        }
        groups
    }
}

fn direct_dependencies(
    resource: &ResourceState,
    resources: &[Arc<ResourceState>],
    positions: &HashMap<&Urn, Vec<usize>>,
    descendants: &HashMap<&Urn, Vec<usize>>,
) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    if let Some(parent) = &resource.parent {
        found.extend(positions.get(parent).into_iter().flatten());
    }
    for urn in needs(resource) {
        for position in positions.get(&urn).into_iter().flatten() {
            found.insert(*position);
            if !resources[*position].custom {
                found.extend(descendants.get(&urn).into_iter().flatten());
            }
        }
    }
    found
}

/// The parent, its parent, and so on.
fn ancestors<'a>(
    resource: &'a ResourceState,
    resources: &'a [Arc<ResourceState>],
    positions: &HashMap<&Urn, Vec<usize>>,
) -> Vec<&'a Urn> {
    let mut found = Vec::new();
    let mut next = resource.parent.as_ref();
    while let Some(parent) = next {
        found.push(parent);
        next = positions
            .get(parent)
            .and_then(|at| at.last())
            .and_then(|at| resources[*at].parent.as_ref());
    }
    found
}

/// Every URN that the resource uses, its parent excluded.
fn needs(resource: &ResourceState) -> impl Iterator<Item = Urn> + '_ {
    let provider = ProviderRef::parse(&resource.provider).ok();
    resource
        .dependencies
        .iter()
        .chain(resource.property_dependencies.values().flatten())
        .chain(&resource.deleted_with)
        .chain(&resource.replace_with)
        .cloned()
        .chain(provider.map(|provider| provider.urn))
}

fn needs_any(resource: &ResourceState, urns: &HashSet<&Urn>) -> bool {
    needs(resource).any(|urn| urns.contains(&urn))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn urn(name: &str) -> Urn {
        Urn::new("s", "p", None, "t:m:T", name)
    }

    fn resource(name: &str, dependencies: &[&str]) -> ResourceState {
        let mut state = ResourceState::new(urn(name), true);
        state.id = Some(format!("{name}-id"));
        state.dependencies = dependencies.iter().map(|name| urn(name)).collect();
        state
    }

    fn graph(resources: impl IntoIterator<Item = ResourceState>) -> ResourceGraph {
        ResourceGraph::new(resources.into_iter().map(Arc::new).collect())
    }

    #[test]
    fn dependants_are_found_through_every_kind_of_edge() {
        let mut by_property = resource("property", &[]);
        by_property
            .property_dependencies
            .insert("x".to_owned(), vec![urn("a")]);
        let mut deleted_with = resource("deleted", &[]);
        deleted_with.deleted_with = Some(urn("property"));
        let mut replaced_with = resource("replaced", &[]);
        replaced_with.replace_with = vec![urn("a")];
        let mut provided = resource("provided", &[]);
        provided.provider = format!("{}::id", urn("a"));
        let other = resource("other", &[]);
        let graph = graph([
            resource("a", &[]),
            by_property,
            deleted_with,
            replaced_with,
            provided,
            other,
        ]);
        assert_eq!(graph.dependents_of(0, &HashSet::new(), false), [1, 2, 3, 4]);
        let ignored = HashSet::from([urn("property")]);
        assert_eq!(
            graph.dependents_of(0, &ignored, false),
            [3, 4],
            "what is ignored leads nowhere"
        );
    }

    #[test]
    fn children_count_as_dependants_only_when_asked() {
        let mut child = resource("child", &[]);
        child.parent = Some(urn("a"));
        let graph = graph([resource("a", &[]), child]);
        assert!(graph.dependents_of(0, &HashSet::new(), false).is_empty());
        assert_eq!(graph.dependents_of(0, &HashSet::new(), true), [1]);
    }

    #[test]
    fn whoever_uses_a_component_uses_the_children_it_had() {
        let component = ResourceState::new(urn("comp"), false);
        let mut before = resource("before", &[]);
        before.parent = Some(urn("comp"));
        let mut grandchild = resource("grandchild", &[]);
        grandchild.parent = Some(urn("before"));
        let user = resource("user", &["comp"]);
        let mut after = resource("after", &[]);
        after.parent = Some(urn("comp"));
        let graph = graph([component, before, grandchild, user, after]);
        assert_eq!(*graph.dependencies_of(3), BTreeSet::from([0, 1, 2]));
    }

    #[test]
    fn deletes_go_from_the_leaves_to_the_roots() {
        let graph = graph([
            resource("a", &[]),
            resource("b", &["a"]),
            resource("c", &["b"]),
            resource("d", &["a"]),
            resource("e", &[]),
        ]);
        let all = BTreeSet::from([0, 1, 2, 3, 4]);
        assert_eq!(
            graph.deletion_order(&all),
            [vec![2], vec![3, 1], vec![4, 0]]
        );
        let some = BTreeSet::from([0, 2]);
        assert_eq!(
            graph.deletion_order(&some),
            [vec![2, 0]],
            "what stays separates nothing"
        );
    }

    #[test]
    fn transitive_dependencies_go_all_the_way_down() {
        let graph = graph([
            resource("a", &[]),
            resource("b", &["a"]),
            resource("c", &["b"]),
            resource("x", &[]),
        ]);
        assert_eq!(graph.all_dependencies_of(2), BTreeSet::from([0, 1]));
    }

    #[test]
    fn two_resources_of_one_name_are_told_apart() {
        let mut replaced = resource("a", &[]);
        replaced.delete = true;
        let graph = graph([replaced, resource("a", &[]), resource("b", &["a"])]);
        assert_eq!(*graph.dependencies_of(2), BTreeSet::from([0, 1]));
        assert_eq!(
            graph.deletion_order(&BTreeSet::from([0, 2])),
            [vec![2], vec![0]]
        );
    }

    /// Resources that depend on any earlier ones, and some of them condemned.
    fn cases() -> impl Strategy<Value = (Vec<Vec<usize>>, BTreeSet<usize>)> {
        let resources =
            proptest::collection::vec(proptest::collection::vec(0..30_usize, 0..4), 1..30);
        resources.prop_flat_map(|resources| {
            let condemned = proptest::collection::btree_set(0..resources.len(), 0..30);
            (Just(resources), condemned)
        })
    }

    proptest! {
        #[test]
        fn whatever_depends_on_whom_nothing_is_deleted_before_its_dependants(
            (edges, condemned) in cases()
        ) {
            let names: Vec<String> = (0..edges.len()).map(|i| format!("r{i}")).collect();
            let graph = graph(edges.iter().enumerate().map(|(index, on)| {
                let earlier = on.iter().filter(|on| **on < index);
                let on: Vec<&str> = earlier.map(|on| names[*on].as_str()).collect();
                resource(&names[index], &on)
            }));
            let groups = graph.deletion_order(&condemned);
            let order: Vec<usize> = groups.iter().flatten().copied().collect();
            let deleted: BTreeSet<usize> = order.iter().copied().collect();
            prop_assert_eq!(&deleted, &condemned);
            prop_assert_eq!(order.len(), condemned.len());
            let group_of = |index: usize| groups.iter().position(|group| group.contains(&index));
            for index in &condemned {
                for dependency in graph.dependencies_of(*index) {
                    if condemned.contains(dependency) {
                        prop_assert!(group_of(*index) < group_of(*dependency));
                    }
                }
            }
        }
    }
}
