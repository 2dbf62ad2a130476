//! Which resources exist yet, for invokes that depend on some of them.
//!
//! An invoke that depends on a resource whose create was only planned must not be asked: its
//! answer would be about something that is not there. A component stands for everything below it
//! that is reached through components alone, as SDKs have it; while something is being registered
//! there, the answer has to wait.

use std::collections::{BTreeSet, HashMap};

use nimbus_engine_model::Urn;
use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Tracker {
    state: Mutex<TrackedResources>,
    changed: Notify,
}

#[derive(Default)]
struct TrackedResources {
    seen: HashMap<Urn, Existence>,
    children: HashMap<Urn, Vec<Urn>>,
    in_flight: HashMap<Urn, usize>,
}

/// What is known of a registered resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existence {
    Component,
    Exists,
    Planned,
}

/// A registration under way; it counts for its parent until it is dropped.
pub(crate) struct InFlight<'a> {
    tracker: &'a Tracker,
    parent: Option<Urn>,
}

impl Tracker {
    pub(crate) fn begin(&self, parent: Option<&Urn>) -> InFlight<'_> {
        if let Some(parent) = parent {
            *self
                .state
                .lock()
                .in_flight
                .entry(parent.clone())
                .or_default() += 1;
        }
        InFlight {
            tracker: self,
            parent: parent.cloned(),
        }
    }

    pub(crate) fn record(&self, urn: &Urn, parent: Option<&Urn>, existence: Existence) {
        let mut state = self.state.lock();
        let first = state.seen.insert(urn.clone(), existence).is_none();
        if let (true, Some(parent)) = (first, parent) {
            state
                .children
                .entry(parent.clone())
                .or_default()
                .push(urn.clone());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Whether any resource that `roots` stand for is only planned.
    pub(crate) async fn any_planned(&self, roots: &[Urn]) -> bool {
        loop {
            // Asked for before looking, so that no change between looking and waiting is missed.
            let changed = self.changed.notified();
            match self.state.lock().look(roots) {
                Look::Planned => return true,
                Look::AllExist => return false,
                Look::Unsettled => {}
            }
            changed.await;
        }
    }
}

enum Look {
    Planned,
    AllExist,
    Unsettled,
}

impl TrackedResources {
    fn look(&self, roots: &[Urn]) -> Look {
        let mut components = BTreeSet::new();
        let mut frontier = roots.to_vec();
        while let Some(urn) = frontier.pop() {
            match self.seen.get(&urn) {
                Some(Existence::Planned) => return Look::Planned,
                Some(Existence::Component) if components.insert(urn.clone()) => {
                    frontier.extend(self.children.get(&urn).into_iter().flatten().cloned());
                }
                // Not of this run, or known to exist, or visited before.
                Some(Existence::Component | Existence::Exists) | None => {}
            }
        }
        if components
            .iter()
            .any(|urn| self.in_flight.contains_key(urn))
        {
            Look::Unsettled
        } else {
            Look::AllExist
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Some(parent) = &self.parent else { return };
        let mut state = self.tracker.state.lock();
        if let Some(count) = state.in_flight.get_mut(parent) {
            *count -= 1;
            if *count == 0 {
                state.in_flight.remove(parent);
            }
        }
        drop(state);
        self.tracker.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn urn(name: &str) -> Urn {
        Urn::new("dev", "shop", None, "a:b:C", name)
    }

    #[tokio::test]
    async fn a_component_stands_for_what_is_below_it_up_to_the_first_custom_resource() {
        let tracker = Tracker::default();
        tracker.record(&urn("outer"), None, Existence::Component);
        tracker.record(&urn("inner"), Some(&urn("outer")), Existence::Component);
        tracker.record(&urn("made"), Some(&urn("inner")), Existence::Exists);
        tracker.record(&urn("below made"), Some(&urn("made")), Existence::Planned);
        assert!(!tracker.any_planned(&[urn("outer")]).await);

        tracker.record(&urn("planned"), Some(&urn("inner")), Existence::Planned);
        assert!(tracker.any_planned(&[urn("outer")]).await);
        assert!(!tracker.any_planned(&[urn("made"), urn("never seen")]).await);
    }

    #[tokio::test]
    async fn a_registration_under_way_below_a_component_is_waited_for() {
        let tracker = Arc::new(Tracker::default());
        tracker.record(&urn("c"), None, Existence::Component);
        let in_flight = tracker.begin(Some(&urn("c")));

        let asked = tokio::spawn({
            let tracker = Arc::clone(&tracker);
            async move { tracker.any_planned(&[urn("c")]).await }
        });
        tokio::task::yield_now().await;
        assert!(!asked.is_finished());

        tracker.record(&urn("child"), Some(&urn("c")), Existence::Planned);
        drop(in_flight);
        assert!(asked.await.expect("the task does not panic"));
    }
}
