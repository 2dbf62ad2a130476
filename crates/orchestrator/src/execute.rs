//! Carries a run out: starts what the state machine says, tells it what happened, until it ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::graph::Name;
use crate::run::{Command, Run, RunResult, UnitOutcome, UnitState};

/// Does the work of one unit. Calls for different units run at once.
#[async_trait]
pub trait Worker: Send + Sync {
    async fn start(&self, unit: &str) -> UnitOutcome;
    /// Returns a unit to the state that it had before this run.
    async fn roll_back(&self, unit: &str) -> Result<(), String>;
}

/// Hears of every change, in order. It must not block.
pub trait RunSink: Send + Sync {
    fn unit_changed(&self, unit: &str, state: &UnitState);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    pub result: RunResult,
    pub units: BTreeMap<Name, UnitState>,
}

enum Done {
    Started(UnitOutcome),
    RolledBack(Result<(), String>),
}

/// Running work, and whose it is.
#[derive(Default)]
struct Tasks {
    set: JoinSet<Done>,
    units: HashMap<Id, Name>,
}

/// `cancel` stops new units; what runs is finished by its worker, which may listen to the same
/// token.
pub async fn execute(
    mut run: Run,
    worker: Arc<dyn Worker>,
    sink: &dyn RunSink,
    cancel: &CancellationToken,
) -> RunReport {
    let mut tasks = Tasks::default();
    let mut seen: BTreeMap<Name, UnitState> = run.units().clone();
    let mut commands = run.begin();
    let mut cancelled = false;
    let result = loop {
        announce(&run, &mut seen, sink);
        if let Some(result) = tasks.carry_out(commands, &worker) {
            break result;
        }
        commands = tokio::select! {
            // When both are ready, nothing more may start.
            biased;
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                run.cancel()
            }
            Some((unit, done)) = tasks.next() => {
                let done = outcome_of(&run, &unit, done);
                announce_failure(&unit, &done, &mut seen, sink);
                report(&mut run, &unit, done)
            }
        };
    };
    announce(&run, &mut seen, sink);
    RunReport {
        result,
        units: run.units().clone(),
    }
}

impl Tasks {
    fn carry_out(&mut self, commands: Vec<Command>, worker: &Arc<dyn Worker>) -> Option<RunResult> {
        for command in commands {
            let worker = Arc::clone(worker);
            let (unit, handle) = match command {
                Command::Start(unit) => {
                    let name = unit.clone();
                    let work = async move { Done::Started(worker.start(&name).await) };
                    (unit, self.set.spawn(work))
                }
                Command::RollBack(unit) => {
                    let name = unit.clone();
                    let work = async move { Done::RolledBack(worker.roll_back(&name).await) };
                    (unit, self.set.spawn(work))
                }
                Command::Finish(result) => return Some(result),
            };
            self.units.insert(handle.id(), unit);
        }
        None
    }

    /// The next unit whose work ended; an error when its worker panicked.
    async fn next(&mut self) -> Option<(Name, Result<Done, String>)> {
        let (id, done) = match self.set.join_next_with_id().await? {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        let unit = self.units.remove(&id).unwrap_or_default();
        Some((unit, done))
    }
}

/// A worker that panicked has failed at what it was doing.
fn outcome_of(run: &Run, unit: &str, done: Result<Done, String>) -> Done {
    match done {
        Ok(done) => done,
        Err(message) if run.units().get(unit) == Some(&UnitState::RollingBack) => {
            Done::RolledBack(Err(message))
        }
        Err(message) => Done::Started(UnitOutcome::Failed { message }),
    }
}

/// The state machine may go on to undo the unit at once; that it failed must be told before.
fn announce_failure(
    unit: &str,
    done: &Done,
    seen: &mut BTreeMap<Name, UnitState>,
    sink: &dyn RunSink,
) {
    if let Done::Started(UnitOutcome::Failed { message }) = done {
        let failed = UnitState::Failed {
            message: message.clone(),
        };
        sink.unit_changed(unit, &failed);
        seen.insert(unit.to_owned(), failed);
    }
}

fn report(run: &mut Run, unit: &str, done: Done) -> Vec<Command> {
    match done {
        Done::Started(outcome) => run.unit_ended(unit, outcome),
        Done::RolledBack(result) => run.rolled_back(unit, result),
    }
}

/// What ended comes before what started because of it.
fn announce(run: &Run, seen: &mut BTreeMap<Name, UnitState>, sink: &dyn RunSink) {
    let changed = |(name, state): &(&Name, &UnitState)| seen.get(*name) != Some(*state);
    let mut news: Vec<_> = run.units().iter().filter(changed).collect();
    news.sort_by_key(|(_, state)| matches!(state, UnitState::Running | UnitState::RollingBack));
    for (name, state) in news {
        sink.unit_changed(name, state);
        seen.insert(name.clone(), state.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;
    use crate::graph::{Graph, Unit};
    use crate::run::{Direction, OnFailure};

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl RunSink for Log {
        fn unit_changed(&self, unit: &str, state: &UnitState) {
            self.0.lock().unwrap().push(format!("{unit} {state:?}"));
        }
    }

    struct Scripted {
        fails: BTreeSet<&'static str>,
        panics: BTreeSet<&'static str>,
        cancels: Option<(&'static str, CancellationToken)>,
    }

    #[async_trait]
    impl Worker for Scripted {
        async fn start(&self, unit: &str) -> UnitOutcome {
            assert!(!self.panics.contains(unit), "by design");
            if let Some((at, token)) = &self.cancels
                && *at == unit
            {
                token.cancel();
            }
            if self.fails.contains(unit) {
                UnitOutcome::Failed {
                    message: "no".to_owned(),
                }
            } else {
                UnitOutcome::Succeeded
            }
        }

        async fn roll_back(&self, _: &str) -> Result<(), String> {
            Ok(())
        }
    }

    fn chain() -> Graph {
        let unit = |name: &str, needs: &[&str]| Unit {
            name: name.to_owned(),
            priority: 0,
            needs: needs.iter().map(|n| (*n).to_owned()).collect(),
        };
        Graph::new([unit("a", &[]), unit("b", &["a"]), unit("c", &["b"])]).unwrap()
    }

    async fn run(worker: Scripted, cancel: CancellationToken) -> (RunReport, Vec<String>) {
        let log = Log::default();
        let run = Run::new(chain(), Direction::Forward, OnFailure::Rollback, 4);
        let report = execute(run, Arc::new(worker), &log, &cancel).await;
        (report, log.0.into_inner().unwrap())
    }

    fn scripted() -> Scripted {
        Scripted {
            fails: BTreeSet::new(),
            panics: BTreeSet::new(),
            cancels: None,
        }
    }

    #[tokio::test]
    async fn every_change_is_announced_in_order() {
        let (report, log) = run(scripted(), CancellationToken::new()).await;
        assert_eq!(report.result, RunResult::Succeeded);
        assert_eq!(
            log,
            [
                "a Running",
                "a Succeeded",
                "b Running",
                "b Succeeded",
                "c Running",
                "c Succeeded"
            ]
        );
    }

    #[tokio::test]
    async fn a_failure_rolls_back_what_was_done() {
        let worker = Scripted {
            fails: BTreeSet::from(["b"]),
            ..scripted()
        };
        let (report, log) = run(worker, CancellationToken::new()).await;
        assert_eq!(report.result, RunResult::RolledBack);
        assert!(
            log.iter().any(|line| line.starts_with("b Failed")),
            "{log:?}"
        );
        assert_eq!(report.units["a"], UnitState::RolledBack);
        assert_eq!(
            report.units["c"],
            UnitState::NotStarted {
                because: "b failed".to_owned()
            }
        );
    }

    #[tokio::test]
    async fn a_worker_that_panics_fails_its_unit_and_the_run_still_ends() {
        let worker = Scripted {
            panics: BTreeSet::from(["b"]),
            ..scripted()
        };
        let (report, _) = run(worker, CancellationToken::new()).await;
        assert_eq!(report.result, RunResult::RolledBack);
    }

    #[tokio::test]
    async fn cancelling_lets_the_running_unit_finish_and_starts_no_other() {
        let token = CancellationToken::new();
        let worker = Scripted {
            cancels: Some(("a", token.clone())),
            ..scripted()
        };
        let (report, _) = run(worker, token).await;
        assert_eq!(report.result, RunResult::Cancelled);
        assert_eq!(report.units["a"], UnitState::Succeeded);
        assert!(matches!(report.units["b"], UnitState::NotStarted { .. }));
    }
}
