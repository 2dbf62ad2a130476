//! Which unit needs which, and in what order they can run.
//!
//! Edges are the union of what templates declare and what placeholders imply. Execution uses a
//! ready queue; layers are computed for plans and pictures only. Everything is linear in the size
//! of the graph, so that ten thousand units plan in milliseconds.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::ComponentName;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitGraph {
    nodes: Vec<UnitNode>,
    index: BTreeMap<ComponentName, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct UnitNode {
    name: ComponentName,
    priority: i64,
    /// Sorted, without repeats.
    needs: Vec<usize>,
    needed_by: Vec<usize>,
}

/// One unit as it is given: its name, its hint for order, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphUnit {
    pub name: ComponentName,
    /// Smaller runs first among units that are ready.
    pub priority: i64,
    pub needs: BTreeSet<ComponentName>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The path begins and ends with the same unit.
    #[error("Circular dependency detected\n  {}", path.join(" → "))]
    Cycle { path: Vec<ComponentName> },
    #[error(
        "Missing dependency\n  Stack '{unit}' depends on '{needs}' but '{needs}' is not enabled"
    )]
    Missing {
        unit: ComponentName,
        needs: ComponentName,
    },
}

impl UnitGraph {
    /// Refuses missing units first, then cycles.
    pub fn new(units: impl IntoIterator<Item = GraphUnit>) -> Result<Self, GraphError> {
        let mut units: Vec<GraphUnit> = units.into_iter().collect();
        // From here on a unit's place is its rank: a sorted set of places is a ready queue, and the
        // same manifest gives the same order on every machine.
        units.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let index: BTreeMap<ComponentName, usize> = units
            .iter()
            .enumerate()
            .map(|(at, unit)| (unit.name.clone(), at))
            .collect();
        let mut nodes = Vec::with_capacity(units.len());
        for unit in units {
            let mut needs = Vec::with_capacity(unit.needs.len());
            for name in &unit.needs {
                let Some(&at) = index.get(name) else {
                    return Err(GraphError::Missing {
                        unit: unit.name,
                        needs: name.clone(),
                    });
                };
                needs.push(at);
            }
            needs.sort_unstable();
            nodes.push(UnitNode {
                name: unit.name,
                priority: unit.priority,
                needs,
                needed_by: Vec::new(),
            });
        }
        for at in 0..nodes.len() {
            for need in nodes[at].needs.clone() {
                nodes[need].needed_by.push(at);
            }
        }
        let graph = Self { nodes, index };
        match graph.cycle() {
            Some(path) => Err(GraphError::Cycle { path }),
            None => Ok(graph),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Names in order of priority, then alphabet.
    pub fn names(&self) -> impl Iterator<Item = &ComponentName> {
        self.nodes.iter().map(|node| &node.name)
    }

    /// Place of a unit in [`names`](Self::names).
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(crate) fn name_at(&self, place: usize) -> &ComponentName {
        work::count(0);
        &self.nodes[place].name
    }

    pub(crate) fn needs_at(&self, place: usize) -> &[usize] {
        work::count(self.nodes[place].needs.len());
        &self.nodes[place].needs
    }

    pub(crate) fn needed_by_at(&self, place: usize) -> &[usize] {
        work::count(self.nodes[place].needed_by.len());
        &self.nodes[place].needed_by
    }

    pub fn needs(&self, name: &str) -> impl Iterator<Item = &ComponentName> {
        self.neighbours(name, |node| &node.needs)
    }

    pub fn needed_by(&self, name: &str) -> impl Iterator<Item = &ComponentName> {
        self.neighbours(name, |node| &node.needed_by)
    }

    pub fn priority(&self, name: &str) -> Option<i64> {
        self.index.get(name).map(|&at| self.nodes[at].priority)
    }

    /// Everything that directly or indirectly needs `name`, without itself.
    pub fn dependants(&self, name: &str) -> BTreeSet<&ComponentName> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = self.index.get(name).copied().into_iter().collect();
        while let Some(at) = open.pop() {
            for &next in &self.nodes[at].needed_by {
                if found.insert(&self.nodes[next].name) {
                    open.push(next);
                }
            }
        }
        found
    }

    /// All units without open needs, then all that need only those, and so on. Within a layer in
    /// order of priority.
    pub fn layers(&self) -> Vec<Vec<&ComponentName>> {
        let mut open: Vec<usize> = self.nodes.iter().map(|node| node.needs.len()).collect();
        let mut layer: Vec<usize> = (0..self.len()).filter(|&at| open[at] == 0).collect();
        let mut layers = Vec::new();
        while !layer.is_empty() {
            let mut next = Vec::new();
            for &at in &layer {
                work::count(self.nodes[at].needed_by.len());
                for &dependant in &self.nodes[at].needed_by {
                    open[dependant] -= 1;
                    if open[dependant] == 0 {
                        next.push(dependant);
                    }
                }
            }
            // Indices follow priority and name.
            next.sort_unstable();
            layers.push(layer.iter().map(|&at| &self.nodes[at].name).collect());
            layer = next;
        }
        layers
    }

    fn neighbours<'a>(
        &'a self,
        name: &str,
        pick: impl Fn(&'a UnitNode) -> &'a Vec<usize>,
    ) -> impl Iterator<Item = &'a ComponentName> {
        let found = self.index.get(name).map(|&at| pick(&self.nodes[at]));
        work::count(found.map_or(0, Vec::len));
        found.into_iter().flatten().map(|&at| &self.nodes[at].name)
    }

    /// Depth first, without recursion: a deployment may be a chain of thousands.
    fn cycle(&self) -> Option<Vec<ComponentName>> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitMark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![VisitMark::New; self.len()];
        for root in 0..self.len() {
            if marks[root] != VisitMark::New {
                continue;
            }
            let mut path = vec![(root, 0)];
            marks[root] = VisitMark::Open;
            while let Some((at, next)) = path.last_mut() {
                work::count(0);
                let Some(&need) = self.nodes[*at].needs.get(*next) else {
                    marks[*at] = VisitMark::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match marks[need] {
                    VisitMark::Done => {}
                    VisitMark::New => {
                        marks[need] = VisitMark::Open;
                        path.push((need, 0));
                    }
                    VisitMark::Open => {
                        let open = path.iter().map(|(at, _)| *at).skip_while(|at| *at != need);
                        let names = open.chain([need]).map(|at| self.nodes[at].name.clone());
                        return Some(names.collect());
                    }
                }
            }
        }
        None
    }
}

/// Counts how many units and edges are looked at, so that tests can tell how work grows without
/// measuring time. Outside of tests it is nothing.
mod work {
    #[cfg(test)]
    thread_local! {
        static DONE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// One unit and so many of its edges.
    #[cfg_attr(not(test), allow(unused_variables, reason = "only tests count"))]
    pub(super) fn count(edges: usize) {
        #[cfg(test)]
        DONE.set(DONE.get() + 1 + edges);
    }

    /// What `act` looked at.
    #[cfg(test)]
    pub(crate) fn of(act: impl FnOnce()) -> usize {
        let before = DONE.get();
        act();
        DONE.get() - before
    }
}

#[cfg(test)]
pub(crate) use work::of as work_of;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(name: &str, priority: i64, needs: &[&str]) -> GraphUnit {
        GraphUnit {
            name: name.parse().unwrap(),
            priority,
            needs: needs.iter().map(|need| (*need).parse().unwrap()).collect(),
        }
    }

    #[test]
    fn layers_follow_needs_and_priority_orders_within_one() {
        let graph = UnitGraph::new([
            unit(
                "monitoring",
                120,
                &["dns", "network", "security", "secrets", "database-rds"],
            ),
            unit("network", 20, &[]),
            unit("dns", 10, &[]),
            unit("database-rds", 70, &["network", "security", "secrets"]),
            unit("secrets", 40, &["security"]),
            unit("security", 30, &["network"]),
        ])
        .unwrap();
        assert_eq!(
            graph.layers(),
            [
                vec!["dns", "network"],
                vec!["security"],
                vec!["secrets"],
                vec!["database-rds"],
                vec!["monitoring"],
            ]
        );
        assert_eq!(
            graph.dependants("security").into_iter().collect::<Vec<_>>(),
            ["database-rds", "monitoring", "secrets"]
        );
    }

    #[test]
    fn a_cycle_is_reported_with_its_path() {
        let error = UnitGraph::new([
            unit("compute-ec2", 0, &["security"]),
            unit("network", 0, &["compute-ec2"]),
            unit("security", 0, &["network"]),
        ])
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Circular dependency detected\n  compute-ec2 → security → network → compute-ec2"
        );
    }

    #[test]
    fn a_unit_that_needs_itself_is_a_cycle() {
        let error = UnitGraph::new([unit("a", 0, &["a"])]).unwrap_err();
        assert_eq!(
            error,
            GraphError::Cycle {
                path: vec!["a".parse().unwrap(), "a".parse().unwrap()]
            }
        );
    }

    #[test]
    fn a_missing_unit_is_named_with_who_needs_it() {
        let error = UnitGraph::new([unit("compute-ec2", 0, &["network"])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Missing dependency\n  Stack 'compute-ec2' depends on 'network' but 'network' is not enabled"
        );
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let units = (0..50_000).map(|i| GraphUnit {
            name: format!("u{i:05}").parse().unwrap(),
            priority: 0,
            needs: (i > 0)
                .then(|| format!("u{:05}", i - 1).parse().unwrap())
                .into_iter()
                .collect(),
        });
        assert_eq!(UnitGraph::new(units).unwrap().layers().len(), 50_000);
    }

    proptest! {
        /// Edges only to smaller numbers can make no cycle; then every unit is in exactly one
        /// layer, after everything it needs.
        #[test]
        fn every_unit_comes_after_what_it_needs(edges in proptest::collection::vec((0..30_usize, 0..30_usize), 0..120)) {
            let mut needs = vec![BTreeSet::new(); 30];
            for (a, b) in edges {
                if a != b {
                    needs[a.max(b)].insert(format!("u{:02}", a.min(b)).parse().unwrap());
                }
            }
            let units = needs.iter().enumerate().map(|(i, needs)| GraphUnit {
                name: format!("u{i:02}").parse().unwrap(), priority: (i % 3) as i64, needs: needs.clone(),
            });
            let graph = UnitGraph::new(units).unwrap();
            let layers = graph.layers();
            let place: BTreeMap<&ComponentName, usize> = layers.iter().enumerate()
                .flat_map(|(layer, names)| names.iter().map(move |name| (*name, layer))).collect();
            prop_assert_eq!(place.len(), 30);
            for name in graph.names() {
                for need in graph.needs(name) {
                    prop_assert!(place[need] < place[name]);
                }
            }
        }
    }
}
