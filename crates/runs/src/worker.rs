//! Does the work of each unit of a run and tells of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use nimbus_core::{ComponentName, Error, Result};
use nimbus_orchestrator::{
    DiagnosticLevel, RollbackTrigger, RunEvent, RunId, RunReason, RunStatus, UnitOutcome, UnitState,
};
use parking_lot::Mutex;
use tracing::Instrument as _;

use crate::bus::{EventBus, timestamp};
use crate::checks::RunChecks;
use crate::context::RunContext;
use crate::execute::{RunListener, UnitWorker};
use crate::progress::UnitWork;
use crate::rollback::{RestoreTarget, RestoreTargets};
use crate::seal::SealedPlan;
use crate::session::stale::{StaleUnits, building_on};
use crate::spans;
use crate::unit::{DeployedUnit, PreparedUnit, RestorePoint, UnitFailure, UnitReport};

/// What is done with every unit of a run.
#[derive(Clone, Debug)]
pub(crate) enum RunWork {
    Deploy {
        force: bool,
        /// Every unit runs, after a look at what is there.
        look_first: bool,
        plan: Option<Arc<SealedPlan>>,
    },
    Preview,
    Destroy,
    /// Look at what is there and record it.
    Refresh,
    /// Back to these states of their histories.
    Restore(RestoreTargets),
}

impl RunWork {
    /// The word for it in traces.
    fn word(&self) -> &'static str {
        match self {
            Self::Deploy { .. } => "deploy",
            Self::Preview => "preview",
            Self::Destroy => "destroy",
            Self::Refresh => "refresh",
            Self::Restore(_) => "restore",
        }
    }
}

/// Carries out one run's work, unit by unit.
pub(crate) struct RunWorker {
    pub(crate) context: Arc<RunContext>,
    pub(crate) bus: Arc<EventBus>,
    work: RunWork,
    /// `None` for a preview, which has no record.
    run: Option<RunId>,
    /// What is looked at once everything is deployed.
    checks: Option<RunChecks>,
    done: Mutex<BTreeMap<ComponentName, UnitWork>>,
    /// Units that wait for a person to look for what they may have created.
    open_creates: Mutex<BTreeSet<ComponentName>>,
    /// Units that went back with values that no longer hold, and which.
    stale: Mutex<StaleUnits>,
    undoing: Mutex<UndoNotice>,
}

/// What the announcement of a rollback says.
#[derive(Default)]
struct UndoNotice {
    begun: bool,
    failure: Option<String>,
    trigger: Option<RollbackTrigger>,
    succeeded: Vec<ComponentName>,
}

impl RunWorker {
    pub(crate) fn new(
        context: Arc<RunContext>,
        work: RunWork,
        bus: Arc<EventBus>,
        run: Option<RunId>,
        checks: Option<RunChecks>,
    ) -> Self {
        Self {
            context,
            bus,
            work,
            run,
            checks,
            done: Mutex::default(),
            open_creates: Mutex::default(),
            stale: Mutex::default(),
            undoing: Mutex::default(),
        }
    }

    /// What units did that did something.
    pub(crate) fn done(&self) -> BTreeMap<ComponentName, UnitWork> {
        self.done.lock().clone()
    }

    /// Whether some unit waits for a person to look for what it may have created.
    pub(crate) fn leaves_creates_open(&self) -> bool {
        !self.open_creates.lock().is_empty()
    }

    fn notice_failure(&self, component: &ComponentName, failed: &UnitFailure) {
        if failed.open_creates {
            self.open_creates.lock().insert(component.clone());
        }
    }

    /// What a unit did before it failed was done all the same.
    fn count_partial(&self, component: &ComponentName, failed: &UnitFailure, started: Instant) {
        if failed.changes.is_empty() {
            return;
        }
        let work = UnitWork {
            report: UnitReport {
                changes: failed.changes.clone(),
                ..UnitReport::default()
            },
            seconds: started.elapsed().as_secs(),
            ..UnitWork::default()
        };
        self.done.lock().insert(component.clone(), work);
    }

    /// Units that went back with values that no longer hold, and which.
    pub(crate) fn stale(&self) -> StaleUnits {
        self.stale.lock().clone()
    }

    fn notice_stale(&self, component: &ComponentName, report: &UnitReport) {
        if report.stale.is_empty() {
            return;
        }
        let targets = match &self.work {
            RunWork::Restore(targets) => Some(targets),
            RunWork::Deploy { .. } | RunWork::Preview | RunWork::Destroy | RunWork::Refresh => None,
        };
        let own = BTreeSet::from([component.clone()]);
        let others = building_on(&self.context, targets, own).unwrap_or_default();
        let others: Vec<&str> = others
            .iter()
            .filter(|name| *name != component)
            .map(|name| name.as_str())
            .collect();
        let mut message = report.stale.join("; ");
        if !others.is_empty() {
            message.push_str(&format!("; {} built on it", others.join(", ")));
        }
        self.stale.lock().insert(component.clone(), message);
    }

    pub(crate) fn checks(&self) -> Option<&RunChecks> {
        self.checks.as_ref()
    }

    /// What made a check fail, so that a rollback can say it.
    pub(crate) fn blame(&self, failure: String) {
        self.undoing.lock().failure.get_or_insert(failure);
    }

    pub(crate) fn now(&self) -> String {
        timestamp(self.context.ports.clock.now())
    }

    async fn act(&self, component: &ComponentName) -> Result<UnitOutcome, UnitFailure> {
        let started = Instant::now();
        let mut work = UnitWork::default();
        match &self.work {
            RunWork::Deploy {
                force,
                look_first,
                plan,
            } => {
                let prepared = self.context.prepare(component).await?;
                // Decided anew and not taken from the plan: the units before it have run by now, and
                // what they left may be what it was deployed with.
                let looked_up = look_first.then_some(RunReason::LookedUp);
                let Some(reason) = prepared.reason(*force).or(looked_up) else {
                    return Ok(UnitOutcome::Skipped);
                };
                self.begin(component).await?;
                self.tell_leases(component);
                if let Some(plan) = plan {
                    self.hold_to(plan, &prepared).await?;
                }
                work.reason = Some(reason.to_string());
                work.fingerprint = Some(prepared.fingerprint.clone());
                match self.context.deploy_prepared(prepared, reason).await? {
                    DeployedUnit::Skipped => return Ok(UnitOutcome::Skipped),
                    DeployedUnit::Ran { report, .. } => work.report = report,
                }
            }
            RunWork::Preview => {
                self.begin(component).await?;
                let previewed = self.context.preview(component).await?;
                self.tell_leases(component);
                work.reason = previewed.reason.map(|reason| reason.to_string());
                work.fingerprint = Some(previewed.fingerprint);
                work.report = previewed.report;
            }
            RunWork::Destroy => {
                self.begin(component).await?;
                work.report = self.context.destroy(component).await?;
            }
            RunWork::Refresh => {
                self.begin(component).await?;
                work.report = self.context.refresh(component).await?;
            }
            RunWork::Restore(targets) => {
                self.begin(component).await?;
                let target = targets.get(component).cloned();
                let target = target.unwrap_or_else(|| RestoreTarget::of(RestorePoint::Nothing));
                work.report = self.context.restore(component, target).await?;
                self.notice_stale(component, &work.report);
            }
        }
        work.seconds = started.elapsed().as_secs();
        self.done.lock().insert(component.clone(), work);
        Ok(UnitOutcome::Succeeded)
    }

    /// Tells that a unit begins. Nothing may change that the record does not know of: a run that
    /// dies in the middle of this unit must find it under way when it is gone on with.
    async fn begin(&self, component: &ComponentName) -> Result<()> {
        let begun = RunEvent::unit(self.now(), component, &UnitState::Running);
        self.bus.publish(begun);
        self.bus.settle().await
    }

    /// What resolvers answered a unit, for whoever watches and for the record.
    fn tell_leases(&self, component: &ComponentName) {
        for shown in self.context.shown_leases(component) {
            let outputs = serde_json::Value::Object(shown.outputs);
            let told = [(
                DiagnosticLevel::Info,
                format!("{}: {outputs}", shown.question),
            )];
            let notes = shown.notes.into_iter();
            let notes = notes.map(|note| (DiagnosticLevel::Warning, note));
            for (level, message) in told.into_iter().chain(notes) {
                self.bus.publish(RunEvent::Diagnostic {
                    at: self.now(),
                    unit: Some(component.clone()),
                    level,
                    message,
                });
            }
        }
    }

    /// A unit may do what was approved and nothing else. Asked here and not only at the start: what
    /// was unknown when the plan was sealed is known once the units before it have run.
    async fn hold_to(&self, plan: &SealedPlan, unit: &PreparedUnit) -> Result<(), UnitFailure> {
        plan.refuse_moved(&unit.component, &unit.fingerprint)?;
        let report = self.context.preview_prepared(unit).await?;
        plan.refuse_other_steps(&unit.component, &report.steps)?;
        Ok(())
    }

    /// The first rollback of a run is announced with what led to it.
    fn notice_undo(&self, component: &ComponentName, state: &UnitState) {
        let mut undoing = self.undoing.lock();
        match state {
            UnitState::Succeeded => undoing.succeeded.push(component.clone()),
            UnitState::Failed { message } => {
                let failure = format!("{component}: {message}");
                undoing.failure.get_or_insert(failure);
            }
            UnitState::RollingBack if !undoing.begun => {
                undoing.begun = true;
                let reason = undoing.failure.clone();
                let reason = reason.unwrap_or_else(|| "the run takes too long".to_owned());
                let succeeded: Vec<&str> = undoing.succeeded.iter().map(|n| n.as_str()).collect();
                let message = format!(
                    "Error: {reason}\n{} stacks deployed successfully: {}",
                    succeeded.len(),
                    succeeded.join(", ")
                );
                if let Some(run) = self.run {
                    self.bus.publish(RunEvent::Run {
                        at: self.now(),
                        run,
                        status: RunStatus::Undoing,
                        result: None,
                        message: Some(message),
                        trigger: undoing.trigger,
                        version: None,
                        warnings: Vec::new(),
                    });
                }
            }
            UnitState::Waiting
            | UnitState::Running
            | UnitState::Skipped
            | UnitState::NotStarted { .. }
            | UnitState::RollingBack
            | UnitState::RolledBack
            | UnitState::Stuck { .. } => {}
        }
    }
}

#[async_trait]
impl UnitWorker for RunWorker {
    async fn start(&self, component: &ComponentName) -> UnitOutcome {
        let span = spans::unit(component, self.work.word());
        let started = Instant::now();
        let ended = self.act(component).instrument(span.clone()).await;
        let outcome = ended.unwrap_or_else(|failed| {
            self.notice_failure(component, &failed);
            self.count_partial(component, &failed, started);
            if let Some(trigger) = failed.trigger {
                self.undoing.lock().trigger.get_or_insert(trigger);
            }
            UnitOutcome::Failed {
                message: in_one_line(&failed.error),
                trigger: failed.trigger,
            }
        });
        spans::unit_ended(&span, &outcome);
        outcome
    }

    async fn roll_back(&self, component: &ComponentName) -> Result<(), String> {
        // The record knows that it is rolling back before anything is undone.
        self.bus
            .settle()
            .await
            .map_err(|error| in_one_line(&error))?;
        // What is not recorded as a run has kept nothing, and changes nothing.
        let Some(run) = self.run else {
            return Ok(());
        };
        let span = spans::unit(component, "roll back");
        // What it was made from is in the unit's own memory.
        let before = RestoreTarget::of(RestorePoint::BeforeRun(run));
        let ended = self.context.restore(component, before);
        let ended = ended.instrument(span.clone()).await;
        span.record(
            "outcome",
            if ended.is_ok() { "succeeded" } else { "failed" },
        );
        let report = ended.map_err(|failed| {
            self.notice_failure(component, &failed);
            in_one_line(&failed.error)
        })?;
        self.notice_stale(component, &report);
        Ok(())
    }

    async fn check(&self, deployed: &[ComponentName]) -> bool {
        match &self.checks {
            Some(checks) => checks.run(self, deployed).await,
            None => true,
        }
    }
}

/// An error in one line, with what to do about it.
fn in_one_line(error: &Error) -> String {
    match error.help() {
        Some(help) => format!("{error} ({help})"),
        None => error.to_string(),
    }
}

#[async_trait]
impl RunListener for RunWorker {
    async fn late(&self) {
        let trigger = Some(RollbackTrigger::Overtime);
        self.undoing.lock().trigger = trigger;
        if let Some(run) = self.run {
            self.bus.publish(RunEvent::Run {
                at: self.now(),
                run,
                status: RunStatus::Late,
                result: None,
                message: None,
                trigger,
                version: None,
                warnings: Vec::new(),
            });
        }
    }

    async fn unit_changed(&self, component: &ComponentName, state: &UnitState) {
        self.notice_undo(component, state);
        if *state == UnitState::Running {
            // Told by whoever starts it, before it does: a unit that is skipped never begins.
            return;
        }
        let mut event = RunEvent::unit(self.now(), component, state);
        if let RunEvent::Unit { open_creates, .. } = &mut event
            && let UnitState::Failed { .. } | UnitState::Stuck { .. } = state
        {
            *open_creates = self.open_creates.lock().contains(component);
        }
        if let RunEvent::Unit {
            attention, message, ..
        } = &mut event
            && let UnitState::Succeeded | UnitState::RolledBack = state
            && let Some(stale) = self.stale.lock().get(component).cloned()
        {
            *attention = true;
            *message = Some(stale);
        }
        if let RunEvent::Unit {
            reason,
            seconds,
            changes,
            ..
        } = &mut event
            && let UnitState::Succeeded | UnitState::Failed { .. } = state
            && let Some(work) = self.done.lock().get(component).cloned()
        {
            *reason = work.reason;
            *seconds = Some(work.seconds);
            *changes = work.report.changes;
        }
        self.bus.publish(event);
    }
}
