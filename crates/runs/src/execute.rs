//! The scheduler: starts what the state machine says, tells it what happened, until it ends.
//!
//! It decides nothing. Whoever listens hears of every change before anything starts because of it,
//! so that a record never lacks the reason of what it goes on to tell.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{RollbackTrigger, Run, RunCommand, RunResult, UnitOutcome, UnitState};

/// Does the work of one unit. Calls for different units run at once.
#[async_trait]
pub trait UnitWorker: Send + Sync {
    async fn start(&self, component: &ComponentName) -> UnitOutcome;
    /// Returns a unit to the state that it had before this run.
    async fn roll_back(&self, component: &ComponentName) -> Result<(), String>;
    /// Whether what the run deployed works, in this attempt or in an earlier one. Asked once, after the
    /// last unit, of runs that are checked.
    async fn check(&self, _deployed: &[ComponentName]) -> bool {
        true
    }
}

/// Hears of every change, in order.
#[async_trait]
pub trait RunListener: Send + Sync {
    async fn unit_changed(&self, component: &ComponentName, state: &UnitState);
    /// The run takes too long. Told before anything happens because of it.
    async fn late(&self) {}
}

/// How a run went, unit by unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionReport {
    pub result: RunResult,
    /// What made it undo its work, if something did.
    pub trigger: Option<RollbackTrigger>,
    pub units: BTreeMap<ComponentName, UnitState>,
}

/// Whose work a task does.
#[derive(Clone, Debug)]
enum TaskOwner {
    Unit(ComponentName),
    Checks,
}

/// How a task ended.
enum TaskOutcome {
    Started(UnitOutcome),
    RolledBack(Result<(), String>),
    Checked(bool),
}

/// Running work, and whose it is.
#[derive(Default)]
struct RunningTasks {
    set: JoinSet<TaskOutcome>,
    owners: HashMap<Id, TaskOwner>,
}

/// What can end a run from outside.
#[derive(Clone, Debug, Default)]
pub struct RunLimits {
    /// Stops new units; what runs is finished by its worker, which may listen to the same token.
    pub cancel: CancellationToken,
    /// After so long nothing more is started and what was done is undone.
    pub overtime: Option<Duration>,
}

/// Drives a run to its end.
pub async fn execute(
    mut run: Run,
    worker: Arc<dyn UnitWorker>,
    listener: &dyn RunListener,
    limits: &RunLimits,
) -> ExecutionReport {
    let mut tasks = RunningTasks::default();
    let mut commands = run.begin();
    let (mut cancelled, mut late) = (false, false);
    let overtime = tokio::time::sleep(limits.overtime.unwrap_or(Duration::MAX / 4));
    let mut overtime = std::pin::pin!(overtime);
    let result = loop {
        for (unit, state) in run.take_news() {
            listener.unit_changed(&unit, &state).await;
        }
        if let Some(result) = tasks.carry_out(commands, &run, &worker) {
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
                let commands = run.overtime();
                if run.trigger() == Some(RollbackTrigger::Overtime) {
                    listener.late().await;
                }
                commands
            }
            Some((owner, done)) = tasks.next() => report(&mut run, &owner, done),
        };
    };
    for (unit, state) in run.take_news() {
        listener.unit_changed(&unit, &state).await;
    }
    ExecutionReport {
        result,
        trigger: run.trigger(),
        units: run.units().clone(),
    }
}

impl RunningTasks {
    fn carry_out(
        &mut self,
        commands: Vec<RunCommand>,
        run: &Run,
        worker: &Arc<dyn UnitWorker>,
    ) -> Option<RunResult> {
        for command in commands {
            let worker = Arc::clone(worker);
            let (owner, handle) = match command {
                RunCommand::Start(component) => {
                    let owner = TaskOwner::Unit(component.clone());
                    let work = async move { TaskOutcome::Started(worker.start(&component).await) };
                    (owner, self.set.spawn(work.in_current_span()))
                }
                RunCommand::RollBack(component) => {
                    let owner = TaskOwner::Unit(component.clone());
                    let work =
                        async move { TaskOutcome::RolledBack(worker.roll_back(&component).await) };
                    (owner, self.set.spawn(work.in_current_span()))
                }
                RunCommand::Check => {
                    let deployed = deployed_units(run);
                    let work = async move { TaskOutcome::Checked(worker.check(&deployed).await) };
                    (TaskOwner::Checks, self.set.spawn(work.in_current_span()))
                }
                RunCommand::Finish(result) => return Some(result),
            };
            self.owners.insert(handle.id(), owner);
        }
        None
    }

    /// The next task that ended; an error when its worker panicked.
    async fn next(&mut self) -> Option<(TaskOwner, Result<TaskOutcome, String>)> {
        let (id, done) = match self.set.join_next_with_id().await? {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        let owner = self.owners.remove(&id).unwrap_or(TaskOwner::Checks);
        Some((owner, done))
    }
}

/// What the run deployed. Taken from the state machine and not from what the worker did: a run that was
/// interrupted looks at the units of its first attempt too.
fn deployed_units(run: &Run) -> Vec<ComponentName> {
    let units = run.units().iter();
    let deployed = units.filter(|(_, state)| **state == UnitState::Succeeded);
    deployed.map(|(name, _)| name.clone()).collect()
}

/// Tells the state machine. A worker that panicked has failed at what it was doing: the run still
/// ends, and what was done is still undone.
fn report(run: &mut Run, owner: &TaskOwner, done: Result<TaskOutcome, String>) -> Vec<RunCommand> {
    let component = match owner {
        TaskOwner::Unit(component) => component,
        TaskOwner::Checks => return run.checked(matches!(done, Ok(TaskOutcome::Checked(true)))),
    };
    match done {
        Ok(TaskOutcome::Started(outcome)) => run.unit_ended(component, outcome),
        Ok(TaskOutcome::RolledBack(result)) => run.rolled_back(component, result),
        Ok(TaskOutcome::Checked(passed)) => run.checked(passed),
        Err(message) if run.units().get(component) == Some(&UnitState::RollingBack) => {
            run.rolled_back(component, Err(message))
        }
        Err(message) => {
            let trigger = None;
            run.unit_ended(component, UnitOutcome::Failed { message, trigger })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;
    use nimbus_orchestrator::{GraphUnit, UnitGraph};
    use nimbus_orchestrator::{OnFailure, RunDirection};

    #[derive(Default)]
    struct ChangeLog(Mutex<Vec<String>>);

    #[async_trait]
    impl RunListener for ChangeLog {
        async fn unit_changed(&self, unit: &ComponentName, state: &UnitState) {
            self.0.lock().unwrap().push(format!("{unit} {state:?}"));
        }
    }

    struct ScriptedWorker {
        fails: BTreeSet<&'static str>,
        panics: BTreeSet<&'static str>,
        cancels: Option<(&'static str, CancellationToken)>,
    }

    #[async_trait]
    impl UnitWorker for ScriptedWorker {
        async fn start(&self, unit: &ComponentName) -> UnitOutcome {
            assert!(!self.panics.contains(unit.as_str()), "by design");
            if let Some((at, token)) = &self.cancels
                && unit == at
            {
                token.cancel();
            }
            if self.fails.contains(unit.as_str()) {
                UnitOutcome::Failed {
                    message: "no".to_owned(),
                    trigger: None,
                }
            } else {
                UnitOutcome::Succeeded
            }
        }

        async fn roll_back(&self, _: &ComponentName) -> Result<(), String> {
            Ok(())
        }
    }

    fn chain() -> UnitGraph {
        let unit = |name: &str, needs: &[&str]| GraphUnit {
            name: name.parse().unwrap(),
            priority: 0,
            needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
        };
        UnitGraph::new([unit("a", &[]), unit("b", &["a"]), unit("c", &["b"])]).unwrap()
    }

    async fn run(
        worker: ScriptedWorker,
        cancel: CancellationToken,
    ) -> (ExecutionReport, Vec<String>) {
        let log = ChangeLog::default();
        let run = Run::new(chain(), RunDirection::Forward, OnFailure::Rollback, 4);
        let limits = RunLimits {
            cancel,
            overtime: None,
        };
        let report = execute(run, Arc::new(worker), &log, &limits).await;
        (report, log.0.into_inner().unwrap())
    }

    fn scripted() -> ScriptedWorker {
        ScriptedWorker {
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
        let worker = ScriptedWorker {
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
        let worker = ScriptedWorker {
            panics: BTreeSet::from(["b"]),
            ..scripted()
        };
        let (report, _) = run(worker, CancellationToken::new()).await;
        assert_eq!(report.result, RunResult::RolledBack);
    }

    #[tokio::test]
    async fn cancelling_lets_the_running_unit_finish_and_starts_no_other() {
        let token = CancellationToken::new();
        let worker = ScriptedWorker {
            cancels: Some(("a", token.clone())),
            ..scripted()
        };
        let (report, _) = run(worker, token).await;
        assert_eq!(report.result, RunResult::Interrupted);
        assert_eq!(report.units["a"], UnitState::Succeeded);
        assert!(matches!(report.units["b"], UnitState::NotStarted { .. }));
    }
}
