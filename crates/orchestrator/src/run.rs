//! One run over many units, as a pure state machine.
//!
//! It is told what happened and answers what to do next; the local executor and the durable
//! workflow both drive it. A unit starts when everything it needs is done, so there are no layers
//! to wait for. After a failure, what depends on it is not started, what does not is finished, and
//! then the policy decides.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Graph, Name};

/// What a failed run does once nothing is running any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Return every unit that this run changed to its last good state, in reverse order.
    Rollback,
    /// Stop and leave everything as it is.
    Hold,
    /// Also run what does not depend on the failure, then stop.
    Continue,
}

/// Which way the graph is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What is needed comes first: deploy, preview, refresh.
    Forward,
    /// What needs comes first: destroy.
    Reverse,
}

/// Where a unit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitState {
    Waiting,
    Running,
    Succeeded,
    Skipped,
    Failed {
        message: String,
    },
    /// Never started: something it needs failed, or the run was stopped.
    NotStarted {
        because: String,
    },
    RollingBack,
    RolledBack,
    /// Its last good state could not be restored.
    Stuck {
        message: String,
    },
}

/// How a unit's work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitOutcome {
    Succeeded,
    /// Nothing had changed, so nothing was done.
    Skipped,
    Failed {
        message: String,
    },
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Start(Name),
    RollBack(Name),
    Finish(RunResult),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    Succeeded,
    Failed,
    Cancelled,
    RolledBack,
    /// Something could not be undone; a person must look.
    NeedsAttention,
}

#[derive(Clone, Debug)]
pub struct Run {
    graph: Graph,
    direction: Direction,
    on_failure: OnFailure,
    parallel: usize,
    units: BTreeMap<Name, UnitState>,
    /// Units that changed something, in the order in which they ended.
    changed: Vec<Name>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Going,
    /// Nothing new starts.
    Draining {
        cancelled: bool,
    },
    Undoing,
    Ended(RunResult),
}

impl Run {
    /// `parallel` of zero means one.
    pub fn new(graph: Graph, direction: Direction, on_failure: OnFailure, parallel: usize) -> Self {
        let units = graph
            .names()
            .map(|name| (name.to_owned(), UnitState::Waiting))
            .collect();
        let (changed, phase) = (Vec::new(), Phase::Going);
        Self {
            graph,
            direction,
            on_failure,
            parallel: parallel.max(1),
            units,
            changed,
            phase,
        }
    }

    pub fn units(&self) -> &BTreeMap<Name, UnitState> {
        &self.units
    }

    pub fn result(&self) -> Option<RunResult> {
        match self.phase {
            Phase::Ended(result) => Some(result),
            Phase::Going | Phase::Draining { .. } | Phase::Undoing => None,
        }
    }

    /// What to do first.
    pub fn begin(&mut self) -> Vec<Command> {
        self.next()
    }

    /// A started unit ended. Reports about units that are not running are ignored: a message that
    /// arrives twice must not count twice.
    pub fn unit_ended(&mut self, name: &str, outcome: UnitOutcome) -> Vec<Command> {
        if self.units.get(name) != Some(&UnitState::Running) {
            return Vec::new();
        }
        let state = match outcome {
            UnitOutcome::Succeeded => {
                self.changed.push(name.to_owned());
                UnitState::Succeeded
            }
            UnitOutcome::Skipped => UnitState::Skipped,
            UnitOutcome::Failed { message } => {
                // It may have done part of its work, so it is among those to restore.
                self.changed.push(name.to_owned());
                self.give_up_after(name);
                if self.on_failure != OnFailure::Continue && self.phase == Phase::Going {
                    self.phase = Phase::Draining { cancelled: false };
                }
                UnitState::Failed { message }
            }
        };
        self.units.insert(name.to_owned(), state);
        self.next()
    }

    /// A rollback ended.
    pub fn rolled_back(&mut self, name: &str, result: Result<(), String>) -> Vec<Command> {
        if self.units.get(name) != Some(&UnitState::RollingBack) {
            return Vec::new();
        }
        let state = match result {
            Ok(()) => UnitState::RolledBack,
            Err(message) => UnitState::Stuck { message },
        };
        self.units.insert(name.to_owned(), state);
        self.next()
    }

    /// Somebody asked to stop: what runs finishes, nothing starts, nothing is undone.
    pub fn cancel(&mut self) -> Vec<Command> {
        match self.phase {
            Phase::Going | Phase::Draining { .. } => {
                self.phase = Phase::Draining { cancelled: true };
                self.next()
            }
            Phase::Undoing | Phase::Ended(_) => Vec::new(),
        }
    }

    fn next(&mut self) -> Vec<Command> {
        match self.phase {
            Phase::Going => {
                let started = self.start_ready();
                if started.is_empty() && self.running() == 0 {
                    self.settle()
                } else {
                    started
                }
            }
            Phase::Draining { .. } if self.running() == 0 => self.settle(),
            Phase::Draining { .. } | Phase::Ended(_) => Vec::new(),
            Phase::Undoing => self.undo(),
        }
    }

    fn start_ready(&mut self) -> Vec<Command> {
        let free = self.parallel.saturating_sub(self.running());
        let ready: Vec<Name> = self
            .graph
            .names()
            .filter(|name| self.units[*name] == UnitState::Waiting && self.may_start(name))
            .take(free)
            .map(str::to_owned)
            .collect();
        for name in &ready {
            self.units.insert(name.clone(), UnitState::Running);
        }
        ready.into_iter().map(Command::Start).collect()
    }

    fn may_start(&self, name: &str) -> bool {
        self.before(name)
            .iter()
            .all(|need| matches!(self.units[*need], UnitState::Succeeded | UnitState::Skipped))
    }

    fn before(&self, name: &str) -> Vec<&str> {
        match self.direction {
            Direction::Forward => self.graph.needs(name).collect(),
            Direction::Reverse => self.graph.needed_by(name).collect(),
        }
    }

    /// Everything that waits for `name`, directly or not, will never start.
    fn give_up_after(&mut self, name: &str) {
        let mut open: BTreeSet<Name> = BTreeSet::from([name.to_owned()]);
        while let Some(at) = open.pop_first() {
            let waiting: Vec<Name> = match self.direction {
                Direction::Forward => self.graph.needed_by(&at).map(str::to_owned).collect(),
                Direction::Reverse => self.graph.needs(&at).map(str::to_owned).collect(),
            };
            for next in waiting {
                if self.units[&next] == UnitState::Waiting {
                    let because = format!("{name} failed");
                    self.units
                        .insert(next.clone(), UnitState::NotStarted { because });
                    open.insert(next);
                }
            }
        }
    }

    /// Nothing runs any more and nothing will start.
    fn settle(&mut self) -> Vec<Command> {
        let cancelled = matches!(self.phase, Phase::Draining { cancelled: true });
        for state in self.units.values_mut() {
            if *state == UnitState::Waiting {
                let because = if cancelled {
                    "the run was cancelled"
                } else {
                    "the run stopped"
                };
                *state = UnitState::NotStarted {
                    because: because.to_owned(),
                };
            }
        }
        let failed = self
            .units
            .values()
            .any(|s| matches!(s, UnitState::Failed { .. }));
        match (cancelled, failed, self.on_failure) {
            (true, _, _) => self.end(RunResult::Cancelled),
            (false, false, _) => self.end(RunResult::Succeeded),
            (false, true, OnFailure::Rollback) => {
                self.phase = Phase::Undoing;
                self.undo()
            }
            (false, true, OnFailure::Hold | OnFailure::Continue) => self.end(RunResult::Failed),
        }
    }

    /// One after the other, the last to change first. After one that cannot be undone, the ones
    /// that it needs are left alone: it may still use them.
    fn undo(&mut self) -> Vec<Command> {
        if self
            .units
            .values()
            .any(|state| *state == UnitState::RollingBack)
        {
            return Vec::new();
        }
        while let Some(name) = self.changed.pop() {
            let blocked = self
                .graph
                .dependants(&name)
                .into_iter()
                .find(|dependant| matches!(self.units[*dependant], UnitState::Stuck { .. }));
            if let Some(dependant) = blocked {
                let message = format!("left as it is: {dependant} could not be rolled back");
                self.units.insert(name, UnitState::Stuck { message });
                continue;
            }
            self.units.insert(name.clone(), UnitState::RollingBack);
            return vec![Command::RollBack(name)];
        }
        let stuck = self
            .units
            .values()
            .any(|state| matches!(state, UnitState::Stuck { .. }));
        self.end(if stuck {
            RunResult::NeedsAttention
        } else {
            RunResult::RolledBack
        })
    }

    fn end(&mut self, result: RunResult) -> Vec<Command> {
        self.phase = Phase::Ended(result);
        vec![Command::Finish(result)]
    }

    fn running(&self) -> usize {
        self.units
            .values()
            .filter(|state| **state == UnitState::Running)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::Unit;

    fn graph(units: &[(&str, &[&str])]) -> Graph {
        Graph::new(units.iter().map(|(name, needs)| Unit {
            name: (*name).to_owned(),
            priority: 0,
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        }))
        .unwrap()
    }

    fn diamond() -> Graph {
        graph(&[
            ("a", &[]),
            ("b", &["a"]),
            ("c", &["a"]),
            ("d", &["b", "c"]),
            ("x", &[]),
        ])
    }

    fn run(on_failure: OnFailure, parallel: usize) -> Run {
        Run::new(diamond(), Direction::Forward, on_failure, parallel)
    }

    fn start(names: &[&str]) -> Vec<Command> {
        names
            .iter()
            .map(|name| Command::Start((*name).to_owned()))
            .collect()
    }

    fn failed() -> UnitOutcome {
        UnitOutcome::Failed {
            message: "no".to_owned(),
        }
    }

    #[test]
    fn a_unit_starts_as_soon_as_what_it_needs_is_done() {
        let mut run = run(OnFailure::Hold, 10);
        assert_eq!(run.begin(), start(&["a", "x"]));
        assert_eq!(
            run.unit_ended("a", UnitOutcome::Succeeded),
            start(&["b", "c"]),
            "x still runs"
        );
        assert_eq!(run.unit_ended("b", UnitOutcome::Skipped), []);
        assert_eq!(run.unit_ended("c", UnitOutcome::Succeeded), start(&["d"]));
        assert_eq!(run.unit_ended("x", UnitOutcome::Succeeded), []);
        assert_eq!(
            run.unit_ended("d", UnitOutcome::Succeeded),
            [Command::Finish(RunResult::Succeeded)]
        );
    }

    #[test]
    fn no_more_than_the_limit_run_at_once() {
        let mut run = run(OnFailure::Hold, 1);
        assert_eq!(run.begin(), start(&["a"]));
        assert_eq!(run.unit_ended("a", UnitOutcome::Succeeded), start(&["b"]));
    }

    #[test]
    fn destroying_walks_the_other_way() {
        let mut run = Run::new(diamond(), Direction::Reverse, OnFailure::Hold, 10);
        assert_eq!(run.begin(), start(&["d", "x"]));
        assert_eq!(
            run.unit_ended("d", UnitOutcome::Succeeded),
            start(&["b", "c"])
        );
    }

    #[test]
    fn after_a_failure_running_units_finish_and_then_all_changed_ones_are_rolled_back() {
        let mut run = run(OnFailure::Rollback, 10);
        run.begin();
        run.unit_ended("a", UnitOutcome::Succeeded);
        assert_eq!(run.unit_ended("b", failed()), []);
        assert_eq!(
            run.units()["d"],
            UnitState::NotStarted {
                because: "b failed".to_owned()
            }
        );
        run.unit_ended("x", UnitOutcome::Skipped);
        let mut undone = run.unit_ended("c", UnitOutcome::Succeeded);
        let mut order = Vec::new();
        while let [Command::RollBack(name)] = undone.as_slice() {
            order.push(name.clone());
            undone = run.rolled_back(&order[order.len() - 1], Ok(()));
        }
        assert_eq!(order, ["c", "b", "a"], "x changed nothing");
        assert_eq!(undone, [Command::Finish(RunResult::RolledBack)]);
    }

    #[test]
    fn a_rollback_that_fails_stops_at_what_it_needs() {
        let mut run = run(OnFailure::Rollback, 10);
        run.begin();
        run.unit_ended("x", UnitOutcome::Succeeded);
        run.unit_ended("a", UnitOutcome::Succeeded);
        run.unit_ended("c", UnitOutcome::Succeeded);
        assert_eq!(
            run.unit_ended("b", failed()),
            [Command::RollBack("b".to_owned())]
        );
        assert_eq!(
            run.rolled_back("b", Err("gone".to_owned())),
            [Command::RollBack("c".to_owned())]
        );
        let next = run.rolled_back("c", Ok(()));
        assert_eq!(
            next,
            [Command::RollBack("x".to_owned())],
            "a is still used by b"
        );
        assert_eq!(
            run.rolled_back("x", Ok(())),
            [Command::Finish(RunResult::NeedsAttention)]
        );
    }

    #[test]
    fn continue_runs_what_does_not_depend_on_the_failure() {
        let mut run = run(OnFailure::Continue, 1);
        run.begin();
        run.unit_ended("a", UnitOutcome::Succeeded);
        assert_eq!(run.unit_ended("b", failed()), start(&["c"]));
        assert_eq!(run.unit_ended("c", UnitOutcome::Succeeded), start(&["x"]));
        assert_eq!(
            run.unit_ended("x", UnitOutcome::Succeeded),
            [Command::Finish(RunResult::Failed)]
        );
    }

    #[test]
    fn hold_stops_and_undoes_nothing() {
        let mut run = run(OnFailure::Hold, 1);
        run.begin();
        assert_eq!(
            run.unit_ended("a", failed()),
            [Command::Finish(RunResult::Failed)]
        );
    }

    #[test]
    fn cancelling_starts_nothing_more_and_undoes_nothing() {
        let mut run = run(OnFailure::Rollback, 1);
        run.begin();
        assert_eq!(run.cancel(), []);
        assert_eq!(
            run.unit_ended("a", UnitOutcome::Succeeded),
            [Command::Finish(RunResult::Cancelled)]
        );
    }

    #[test]
    fn a_report_that_comes_twice_counts_once() {
        let mut run = run(OnFailure::Hold, 10);
        run.begin();
        run.unit_ended("a", UnitOutcome::Succeeded);
        assert_eq!(run.unit_ended("a", failed()), []);
        assert_eq!(run.units()["a"], UnitState::Succeeded);
        assert_eq!(run.unit_ended("nobody", failed()), []);
    }

    #[test]
    fn an_empty_run_is_over_at_once() {
        let mut run = Run::new(graph(&[]), Direction::Forward, OnFailure::Rollback, 4);
        assert_eq!(run.begin(), [Command::Finish(RunResult::Succeeded)]);
    }

    proptest! {
        /// Random graphs, outcomes and cancellations: every run ends, no unit starts twice or too
        /// early, and the limit holds.
        #[test]
        fn every_run_ends_and_no_unit_starts_early_or_twice(
            edges in proptest::collection::vec((0..12_usize, 0..12_usize), 0..30),
            outcomes in proptest::collection::vec(0..8_u8, 64),
            parallel in 1..5_usize,
            policy in 0..3_u8,
        ) {
            let names: Vec<String> = (0..12).map(|i| format!("u{i:02}")).collect();
            let mut needs = vec![BTreeSet::new(); 12];
            for (a, b) in edges {
                if a != b {
                    needs[a.max(b)].insert(names[a.min(b)].clone());
                }
            }
            let graph = Graph::new(names.iter().zip(&needs).map(|(name, needs)| Unit {
                name: name.clone(), priority: 0, needs: needs.clone(),
            })).unwrap();
            let on_failure = [OnFailure::Rollback, OnFailure::Hold, OnFailure::Continue][usize::from(policy)];
            let mut run = Run::new(graph, Direction::Forward, on_failure, parallel);
            let mut open = run.begin();
            let mut started = BTreeSet::new();
            let mut done = BTreeSet::new();
            let mut running: Vec<Name> = Vec::new();
            for outcome in outcomes.iter().cycle().take(500) {
                for command in std::mem::take(&mut open) {
                    match command {
                        Command::Start(name) => {
                            prop_assert!(started.insert(name.clone()), "{} twice", name);
                            let at = names.iter().position(|n| *n == name).unwrap();
                            prop_assert!(needs[at].iter().all(|need| done.contains(need)));
                            running.push(name);
                            prop_assert!(running.len() <= parallel);
                        }
                        Command::RollBack(name) => {
                            prop_assert!(running.is_empty());
                            let result = if *outcome == 0 { Err("no".to_owned()) } else { Ok(()) };
                            open.extend(run.rolled_back(&name, result));
                        }
                        Command::Finish(_) => prop_assert!(running.is_empty()),
                    }
                }
                if !open.is_empty() {
                    continue;
                }
                if running.is_empty() {
                    break;
                }
                let name = running.remove(0);
                open = match outcome {
                    0 => run.unit_ended(&name, failed()),
                    1 => { done.insert(name.clone()); run.unit_ended(&name, UnitOutcome::Skipped) }
                    2 if started.len() > 6 => { running.insert(0, name); run.cancel() }
                    _ => { done.insert(name.clone()); run.unit_ended(&name, UnitOutcome::Succeeded) }
                };
            }
            prop_assert!(run.result().is_some(), "{:?}", run.units());
        }
    }
}
