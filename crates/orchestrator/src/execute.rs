//! Carries a run out: starts what the state machine says, tells it what happened, until it ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::graph::Name;
use crate::run::{Command, Run, RunResult, Trigger, UnitOutcome, UnitState};

/// Does the work of one unit. Calls for different units run at once.
#[async_trait]
pub trait Worker: Send + Sync {
    async fn start(&self, unit: &str) -> UnitOutcome;
    /// Returns a unit to the state that it had before this run.
    async fn roll_back(&self, unit: &str) -> Result<(), String>;
    /// Whether what was deployed works. Asked once, after the last unit, of runs that are checked.
    async fn check(&self) -> bool {
        true
    }
}

/// Hears of every change, in order. It must not block.
pub trait RunSink: Send + Sync {
    fn unit_changed(&self, unit: &str, state: &UnitState);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    pub result: RunResult,
    /// What made it undo its work, if something did.
    pub trigger: Option<Trigger>,
    pub units: BTreeMap<Name, UnitState>,
}

/// Stands for the checks where a unit is named; no unit can be called so.
const CHECKS: &str = "(checks)";

enum Done {
    Started(UnitOutcome),
    RolledBack(Result<(), String>),
    Checked(bool),
}

/// Running work, and whose it is.
#[derive(Default)]
struct Tasks {
    set: JoinSet<Done>,
    units: HashMap<Id, Name>,
}

/// What can end a run from outside.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Stops new units; what runs is finished by its worker, which may listen to the same token.
    pub cancel: CancellationToken,
    /// After so long nothing more is started and what was done is undone.
    pub overtime: Option<Duration>,
}

/// Drives a run to its end.
pub async fn execute(
    mut run: Run,
    worker: Arc<dyn Worker>,
    sink: &dyn RunSink,
    limits: &Limits,
) -> RunReport {
    let mut tasks = Tasks::default();
    let mut commands = run.begin();
    let (mut cancelled, mut late) = (false, false);
    let overtime = tokio::time::sleep(limits.overtime.unwrap_or(Duration::MAX / 4));
    let mut overtime = std::pin::pin!(overtime);
    let result = loop {
        for (unit, state) in run.take_news() {
            sink.unit_changed(&unit, &state);
        }
        if let Some(result) = tasks.carry_out(commands, &worker) {
            break result;
        }
        commands = tokio::select! {
            // When several are ready, nothing more may start.
            biased;
            () = limits.cancel.cancelled(), if !cancelled => {
                cancelled = true;
                run.cancel()
            }
            () = &mut overtime, if limits.overtime.is_some() && !late => {
                late = true;
                run.overtime()
            }
            Some((unit, done)) = tasks.next() => {
                let done = outcome_of(&run, &unit, done);
                report(&mut run, &unit, done)
            }
        };
    };
    for (unit, state) in run.take_news() {
        sink.unit_changed(&unit, &state);
    }
    RunReport {
        result,
        trigger: run.trigger(),
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
                Command::Check => {
                    let work = async move { Done::Checked(worker.check().await) };
                    (CHECKS.to_owned(), self.set.spawn(work))
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
        Err(_) if unit == CHECKS => Done::Checked(false),
        Err(message) if run.units().get(unit) == Some(&UnitState::RollingBack) => {
            Done::RolledBack(Err(message))
        }
        Err(message) => Done::Started(UnitOutcome::Failed {
            message,
            trigger: None,
        }),
    }
}

fn report(run: &mut Run, unit: &str, done: Done) -> Vec<Command> {
    match done {
        Done::Started(outcome) => run.unit_ended(unit, outcome),
        Done::RolledBack(result) => run.rolled_back(unit, result),
        Done::Checked(passed) => run.checked(passed),
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
                    trigger: None,
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
        let limits = Limits {
            cancel,
            overtime: None,
        };
        let report = execute(run, Arc::new(worker), &log, &limits).await;
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
        assert_eq!(report.result, RunResult::Interrupted);
        assert_eq!(report.units["a"], UnitState::Succeeded);
        assert!(matches!(report.units["b"], UnitState::NotStarted { .. }));
    }
}
