//! Who waited for whom among the calls of one operation, as the engine orders them.
//!
//! A resource comes after what it depends on, and a deletion after the deletions of what depends on
//! it. What nobody wants any more is deleted at the end, group after group. A refresh is over
//! before anything changes.

use std::collections::{BTreeMap, BTreeSet};

use super::observer::{CallKind, CallSeen, ResourceNeeds};

/// For every call, the calls that it comes after.
pub(super) fn order(calls: &[&CallSeen], resources: &ResourceNeeds) -> Vec<Vec<usize>> {
    let groups = deletion_groups(calls, resources);
    let chart = Chart {
        calls,
        resources,
        groups,
    };
    (0..calls.len()).map(|at| chart.before(at)).collect()
}

struct Chart<'a> {
    calls: &'a [&'a CallSeen],
    resources: &'a ResourceNeeds,
    groups: BTreeMap<&'a str, usize>,
}

impl Chart<'_> {
    fn before(&self, at: usize) -> Vec<usize> {
        let call = self.calls[at];
        let mut found = self.earlier(at, |other| other.urn == call.urn);
        match call.kind {
            CallKind::Look => {}
            CallKind::Make => {
                let needed = self.needed(&call.urn);
                found.extend(self.earlier(at, |other| {
                    other.kind == CallKind::Look
                        || other.kind == CallKind::Make && needed.contains(other.urn.as_str())
                }));
            }
            CallKind::Delete if self.is_made_again(at) => {
                let group = self.groups.get(call.urn.as_str());
                found.extend(self.earlier(at, |other| {
                    other.kind == CallKind::Look
                        || other.kind == CallKind::Delete
                            && self.groups.get(other.urn.as_str()) < group
                            && self.depends(&other.urn, &call.urn)
                }));
            }
            CallKind::Delete => {
                let group = self.groups.get(call.urn.as_str());
                found.extend(self.earlier(at, |other| {
                    other.kind != CallKind::Delete || self.groups.get(other.urn.as_str()) < group
                }));
            }
        }
        found
    }

    fn earlier(&self, at: usize, fits: impl Fn(&CallSeen) -> bool) -> Vec<usize> {
        let began = self.calls[at].began;
        let is_over = |other: &usize| *other != at && self.calls[*other].ended <= began;
        (0..self.calls.len())
            .filter(is_over)
            .filter(|other| fits(self.calls[*other]))
            .collect()
    }

    /// Deleted first because its replacement cannot be beside it.
    fn is_made_again(&self, at: usize) -> bool {
        let gone = self.calls[at];
        let mut calls = self.calls.iter();
        calls.any(|call| {
            call.kind == CallKind::Make && call.urn == gone.urn && call.began >= gone.ended
        })
    }

    /// Whether the first needs the second, directly or not.
    fn depends(&self, urn: &str, on: &str) -> bool {
        self.needed(urn).contains(on)
    }

    fn needed(&self, urn: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut frontier: Vec<&str> = self.needs(urn).collect();
        while let Some(next) = frontier.pop() {
            if found.insert(next) {
                frontier.extend(self.needs(next));
            }
        }
        found
    }

    fn needs(&self, urn: &str) -> impl Iterator<Item = &str> {
        let needs = self.resources.get(urn).into_iter().flatten();
        needs.map(String::as_str)
    }
}

/// The group in which each resource is deleted: after every one that needs it.
fn deletion_groups<'a>(
    calls: &'a [&CallSeen],
    resources: &ResourceNeeds,
) -> BTreeMap<&'a str, usize> {
    let gone = calls.iter().filter(|call| call.kind == CallKind::Delete);
    let mut groups: BTreeMap<&str, usize> = gone.map(|call| (call.urn.as_str(), 0)).collect();
    let urns: Vec<&str> = groups.keys().copied().collect();
    // As many rounds as the longest chain; more would be a circle, which no state has.
    for _ in 0..urns.len() {
        let mut moved = false;
        for urn in &urns {
            let own = groups.get(urn).copied().unwrap_or_default();
            for needed in resources.get(*urn).into_iter().flatten() {
                if let Some(group) = groups.get_mut(needed.as_str())
                    && *group <= own
                {
                    *group = own + 1;
                    moved = true;
                }
            }
        }
        if !moved {
            break;
        }
    }
    groups
}
