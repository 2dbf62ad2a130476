//! One run over many units, as a pure state machine.
//!
//! It is told what happened and answers what to do next; the scheduler of `crates/runs` drives it, on
//! a machine of one's own and in a server alike. A unit starts when everything it needs is done, so there are no layers
//! to wait for. After a failure, what depends on it is not started, what does not is finished, and
//! then the policy decides. The cost of an event does not grow with the number of units: what is
//! ready is kept, not searched for.
//!
//! What always holds, and what the random runs in the tests check: a unit starts only when all that
//! come before it are done, and at most once in an attempt; while something is being undone, nothing
//! else runs; and every run ends, whatever is reported in whatever order.

mod resumed;
mod state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::ComponentName;

pub use state::{
    EarlierAttempt, OnFailure, RollbackTrigger, RunDirection, RunResult, UnitOutcome, UnitState,
};

use crate::graph::UnitGraph;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunCommand {
    Start(ComponentName),
    RollBack(ComponentName),
    /// Everything is deployed: find out whether it works.
    Check,
    Finish(RunResult),
}

#[derive(Clone, Debug)]
pub struct Run {
    graph: UnitGraph,
    direction: RunDirection,
    on_failure: OnFailure,
    parallel: usize,
    units: BTreeMap<ComponentName, UnitState>,
    /// How many of those that must come before a unit are not done yet; by place in the graph.
    open: Vec<usize>,
    /// Places of units that may start, best first.
    ready: BTreeSet<usize>,
    running: usize,
    /// Units that changed something, in the order in which they ended. A unit ends after everything
    /// it needs, so from the back this is an order in which all of them can be undone.
    changed: Vec<ComponentName>,
    /// Units that an earlier attempt had begun and not recorded as done.
    touched: BTreeSet<ComponentName>,
    /// Places of units that are started although nothing new is: an earlier attempt was late, and
    /// they had begun before it was.
    begun: BTreeSet<usize>,
    /// Units that something which could not be undone may still use, and what that is.
    blocked: BTreeMap<ComponentName, ComponentName>,
    /// Changes that nobody was told of yet, in order. They are kept until the driver asks, because
    /// one event changes several units: told from the middle of it, a listener would see a follower
    /// run before what it waited for had ended, and the machine would call out while it is
    /// inconsistent.
    news: Vec<(ComponentName, UnitState)>,
    trigger: Option<RollbackTrigger>,
    cancelled: bool,
    /// Whether what was deployed is checked before the run counts as successful.
    checks: bool,
    phase: RunPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    Going,
    /// Nothing new starts, and what runs is let finish: a unit that is stopped half way leaves
    /// resources that no state knows of, and only when all have ended is it known what there is to
    /// undo.
    Draining,
    /// Everything is done, and somebody looks whether it works.
    Checking,
    /// What was changed is undone, one unit at a time.
    Undoing,
    Ended(RunResult),
}

impl Run {
    /// `parallel` of zero means one.
    pub fn new(
        graph: UnitGraph,
        direction: RunDirection,
        on_failure: OnFailure,
        parallel: usize,
    ) -> Self {
        let units: BTreeMap<ComponentName, UnitState> = graph
            .names()
            .map(|name| (name.to_owned(), UnitState::Waiting))
            .collect();
        let mut run = Self {
            direction,
            on_failure,
            parallel: parallel.max(1),
            units,
            open: Vec::new(),
            ready: BTreeSet::new(),
            running: 0,
            changed: Vec::new(),
            touched: BTreeSet::new(),
            begun: BTreeSet::new(),
            blocked: BTreeMap::new(),
            news: Vec::new(),
            trigger: None,
            cancelled: false,
            checks: false,
            phase: RunPhase::Going,
            graph,
        };
        run.count_open();
        run
    }

    /// Has what was deployed checked at the end: a run whose checks fail has failed.
    pub fn checking(mut self, checks: bool) -> Self {
        self.checks = checks;
        self
    }

    pub fn units(&self) -> &BTreeMap<ComponentName, UnitState> {
        &self.units
    }

    /// Changes since the last call: what ended comes before what started because of it.
    pub fn take_news(&mut self) -> Vec<(ComponentName, UnitState)> {
        std::mem::take(&mut self.news)
    }

    /// What made this run undo its work, if something did.
    pub fn trigger(&self) -> Option<RollbackTrigger> {
        self.trigger
    }

    pub fn result(&self) -> Option<RunResult> {
        match self.phase {
            RunPhase::Ended(result) => Some(result),
            RunPhase::Going | RunPhase::Draining | RunPhase::Checking | RunPhase::Undoing => None,
        }
    }

    /// What to do first. A run that goes on may have nothing to start and still something to undo, to
    /// check or to end.
    pub fn begin(&mut self) -> Vec<RunCommand> {
        self.next()
    }

    /// A started unit ended. Reports about units that are not running are ignored: a message that
    /// arrives twice must not count twice.
    pub fn unit_ended(&mut self, name: &ComponentName, outcome: UnitOutcome) -> Vec<RunCommand> {
        if !self.is_in(name, &UnitState::Running) {
            return Vec::new();
        }
        self.running -= 1;
        match outcome {
            UnitOutcome::Succeeded => {
                self.changed.push(name.to_owned());
                self.set(name, UnitState::Succeeded);
                self.free_followers(name);
            }
            // An earlier attempt of this run did its work, so it is this run's to undo.
            UnitOutcome::Skipped if self.touched.contains(name) => {
                self.changed.push(name.to_owned());
                self.set(name, UnitState::Succeeded);
                self.free_followers(name);
            }
            UnitOutcome::Skipped => {
                self.set(name, UnitState::Skipped);
                self.free_followers(name);
            }
            UnitOutcome::Failed { message, trigger } => {
                // It may have done part of its work, so it is among those to restore.
                self.changed.push(name.to_owned());
                self.set(name, UnitState::Failed { message });
                self.give_up_after(name);
                self.trigger = self.trigger.or(trigger);
                if self.on_failure != OnFailure::Continue && self.phase == RunPhase::Going {
                    self.phase = RunPhase::Draining;
                }
            }
        }
        self.next()
    }

    /// A rollback ended.
    pub fn rolled_back(
        &mut self,
        name: &ComponentName,
        result: Result<(), String>,
    ) -> Vec<RunCommand> {
        if !self.is_in(name, &UnitState::RollingBack) {
            return Vec::new();
        }
        match result {
            Ok(()) => self.set(name, UnitState::RolledBack),
            // Nobody knows whether it would have worked; going on with the run will tell.
            Err(message) if self.cancelled => self.set(name, UnitState::Failed { message }),
            Err(message) => {
                self.set(name, UnitState::Stuck { message });
                self.block_needs_of(name);
            }
        }
        self.next()
    }

    /// The checks ended. When they failed, only a run that was told so undoes its work: whether the
    /// check or the deployment is wrong is for people to say.
    pub fn checked(&mut self, passed: bool) -> Vec<RunCommand> {
        if self.phase != RunPhase::Checking {
            return Vec::new();
        }
        if self.cancelled {
            return self.end(RunResult::Interrupted);
        }
        match (passed, self.on_failure) {
            (true, _) => self.end(RunResult::Succeeded),
            (false, OnFailure::Rollback) => {
                self.phase = RunPhase::Undoing;
                self.undo()
            }
            // A failed check is no trigger, so a run that decides for itself holds.
            (false, OnFailure::Automatic | OnFailure::Hold | OnFailure::Continue) => {
                self.end(RunResult::Failed)
            }
        }
    }

    /// Somebody asked to stop: what runs finishes, nothing starts, nothing more is undone.
    pub fn cancel(&mut self) -> Vec<RunCommand> {
        match self.phase {
            RunPhase::Going | RunPhase::Draining => {
                self.cancelled = true;
                self.phase = RunPhase::Draining;
                self.next()
            }
            RunPhase::Checking | RunPhase::Undoing => {
                self.cancelled = true;
                Vec::new()
            }
            RunPhase::Ended(_) => Vec::new(),
        }
    }

    /// The run takes twice as long as planned: nothing more starts, and what was done is undone. A run that
    /// is already checking or undoing is let finish, because everything it was asked for is done or going
    /// away; one that holds or continues remembers that it was late and goes on, because whoever chose
    /// that wants to see what it comes to.
    pub fn overtime(&mut self) -> Vec<RunCommand> {
        if self.phase != RunPhase::Going && self.phase != RunPhase::Draining {
            return Vec::new();
        }
        // The first trigger is the cause; what comes after may well be its effect.
        self.trigger = self.trigger.or(Some(RollbackTrigger::Overtime));
        if self.on_failure == OnFailure::Hold || self.on_failure == OnFailure::Continue {
            return Vec::new();
        }
        self.phase = RunPhase::Draining;
        self.next()
    }

    /// Whether it is a unit of this run and in that state.
    fn is_in(&self, name: &ComponentName, state: &UnitState) -> bool {
        self.units.get(name) == Some(state)
    }

    fn set(&mut self, name: &ComponentName, state: UnitState) {
        self.news.push((name.to_owned(), state.clone()));
        self.units.insert(name.to_owned(), state);
    }

    fn next(&mut self) -> Vec<RunCommand> {
        match self.phase {
            RunPhase::Going => {
                let started = self.start_ready();
                if started.is_empty() && self.running == 0 {
                    self.settle()
                } else {
                    started
                }
            }
            RunPhase::Draining => {
                let mut begun = std::mem::take(&mut self.begun);
                let started = self.start(&mut begun);
                self.begun = begun;
                if started.is_empty() && self.running == 0 {
                    self.settle()
                } else {
                    started
                }
            }
            RunPhase::Checking | RunPhase::Ended(_) => Vec::new(),
            RunPhase::Undoing => self.undo(),
        }
    }

    fn start_ready(&mut self) -> Vec<RunCommand> {
        let mut ready = std::mem::take(&mut self.ready);
        let started = self.start(&mut ready);
        self.ready = ready;
        started
    }

    /// Starts as many of these as may run at once, best first.
    fn start(&mut self, places: &mut BTreeSet<usize>) -> Vec<RunCommand> {
        let mut started = Vec::new();
        while self.running < self.parallel {
            let Some(place) = places.pop_first() else {
                break;
            };
            let name = self.graph.name_at(place).to_owned();
            self.set(&name, UnitState::Running);
            self.running += 1;
            started.push(RunCommand::Start(name));
        }
        started
    }

    /// Counts anew what every waiting unit still waits for.
    fn count_open(&mut self) {
        self.open = vec![0; self.graph.len()];
        self.ready.clear();
        for place in 0..self.graph.len() {
            if self.units[self.graph.name_at(place)] != UnitState::Waiting {
                continue;
            }
            let before = self.direction.before(&self.graph, place);
            let open = before
                .iter()
                .filter(|&&need| !self.units[self.graph.name_at(need)].is_done())
                .count();
            self.open[place] = open;
            if open == 0 {
                self.ready.insert(place);
            }
        }
    }

    /// A unit is done: those that waited for nothing else may start.
    fn free_followers(&mut self, name: &ComponentName) {
        let Some(place) = self.graph.place_of(name) else {
            return;
        };
        for &follower in self.direction.after(&self.graph, place) {
            self.open[follower] = self.open[follower].saturating_sub(1);
            let waiting = self.units[self.graph.name_at(follower)] == UnitState::Waiting;
            if self.open[follower] == 0 && waiting {
                self.ready.insert(follower);
            }
        }
    }

    /// Everything that waits for `name`, directly or not, will never start.
    fn give_up_after(&mut self, name: &ComponentName) {
        let mut open: Vec<usize> = self.graph.place_of(name).into_iter().collect();
        while let Some(place) = open.pop() {
            for follower in self.direction.after(&self.graph, place).to_vec() {
                let next = self.graph.name_at(follower).to_owned();
                if self.units[&next] == UnitState::Waiting {
                    let because = format!("{name} failed");
                    self.set(&next, UnitState::NotStarted { because });
                    open.push(follower);
                }
            }
        }
    }

    /// Nothing runs any more and nothing will start.
    fn settle(&mut self) -> Vec<RunCommand> {
        let because = if self.cancelled {
            "the run was interrupted"
        } else {
            "the run stopped"
        };
        let waiting = |(name, state): (&ComponentName, &UnitState)| {
            (*state == UnitState::Waiting).then(|| name.clone())
        };
        let left: Vec<ComponentName> = self.units.iter().filter_map(waiting).collect();
        let unfinished = !left.is_empty();
        for name in left {
            let because = because.to_owned();
            self.set(&name, UnitState::NotStarted { because });
        }
        let failed = self
            .units
            .values()
            .any(|state| matches!(state, UnitState::Failed { .. }));
        let undoes = match self.on_failure {
            OnFailure::Rollback => failed || self.trigger.is_some(),
            OnFailure::Automatic => self.trigger.is_some(),
            OnFailure::Hold | OnFailure::Continue => false,
        };
        // Before the undo: whoever stops a run wants no more changes, and can go on with it later.
        if self.cancelled {
            return self.end(RunResult::Interrupted);
        }
        // A run that was only late has everything it was asked for; undoing that would help nobody.
        if undoes && (failed || unfinished) {
            self.phase = RunPhase::Undoing;
            return self.undo();
        }
        if failed {
            return self.end(RunResult::Failed);
        }
        if self.checks && !unfinished {
            self.phase = RunPhase::Checking;
            return vec![RunCommand::Check];
        }
        self.end(RunResult::Succeeded)
    }

    /// One after the other, the last to change first: whoever changed later may use what changed
    /// before, and only when a rollback has ended is it known whether what it needs may go. After one
    /// that cannot be undone, the ones that it needs are left alone: it may still use them.
    fn undo(&mut self) -> Vec<RunCommand> {
        if self
            .changed
            .last()
            .is_some_and(|name| self.units[name] == UnitState::RollingBack)
        {
            return Vec::new();
        }
        if self.cancelled {
            return self.end(RunResult::Interrupted);
        }
        while let Some(name) = self.changed.last().cloned() {
            if matches!(
                self.units[&name],
                UnitState::RolledBack | UnitState::Stuck { .. }
            ) {
                self.changed.pop();
                continue;
            }
            if let Some(dependant) = self.blocked.get(&name) {
                let message = format!("left as it is: {dependant} could not be rolled back");
                self.set(&name, UnitState::Stuck { message });
                continue;
            }
            self.set(&name, UnitState::RollingBack);
            return vec![RunCommand::RollBack(name)];
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

    /// What `name` needs, directly or not, must stay. Who blocks is remembered, because whoever looks
    /// at the units left behind has to begin with that one; the first to block is the cause.
    fn block_needs_of(&mut self, name: &ComponentName) {
        let mut open: Vec<ComponentName> = vec![name.to_owned()];
        while let Some(at) = open.pop() {
            let needs: Vec<ComponentName> = self.graph.needs(&at).cloned().collect();
            for need in needs {
                if !self.blocked.contains_key(&need) {
                    self.blocked.insert(need.clone(), name.to_owned());
                    open.push(need);
                }
            }
        }
    }

    fn end(&mut self, result: RunResult) -> Vec<RunCommand> {
        self.phase = RunPhase::Ended(result);
        vec![RunCommand::Finish(result)]
    }
}
