//! Does the work of each unit and tells of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::execute::{RunSink, Worker};
use nimbus_orchestrator::fingerprint::must_run;
use nimbus_orchestrator::graph::Name;
use nimbus_orchestrator::record::{RunEvent, RunId, RunStatus};
use nimbus_orchestrator::run::{UnitOutcome, UnitState};
use nimbus_orchestrator::unit::{Board, Deployed, JobError, JobReport, Prepared};

use super::checks::Checks;
use super::hub::{Hub, now};
use super::seal::SealedPlan;

/// What is done with units.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Deploy {
        force: bool,
        plan: Option<Arc<SealedPlan>>,
    },
    Preview,
    Destroy,
    /// Back to these states of their histories.
    Restore(BTreeMap<Name, Option<usize>>),
}

pub(super) struct Crew {
    pub(super) board: Arc<Board>,
    pub(super) work: Work,
    pub(super) hub: Arc<Hub>,
    pub(super) run: Option<RunId>,
    /// What is looked at once everything is deployed.
    pub(super) checks: Option<Checks>,
    notes: Mutex<BTreeMap<Name, Note>>,
    undoing: Mutex<Undoing>,
}

/// What is known of a unit's work.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    pub(super) reason: Option<String>,
    pub(super) report: JobReport,
    pub(super) seconds: u64,
    pub(super) fingerprint: Option<nimbus_orchestrator::fingerprint::Fingerprint>,
}

#[derive(Default)]
struct Undoing {
    begun: bool,
    failure: Option<String>,
    done: Vec<Name>,
}

impl Crew {
    pub(super) fn new(board: Arc<Board>, work: Work, hub: Arc<Hub>, run: Option<RunId>) -> Self {
        Self {
            board,
            work,
            hub,
            run,
            checks: None,
            notes: Mutex::default(),
            undoing: Mutex::default(),
        }
    }

    pub(super) fn note(&self, unit: &str) -> Option<Note> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.get(unit).cloned()
    }

    /// Has what was deployed checked.
    pub(super) fn checked_by(mut self, checks: Option<Checks>) -> Self {
        self.checks = checks;
        self
    }

    /// Names of units that did something.
    pub(super) fn worked_on(&self) -> Vec<Name> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.keys().cloned().collect()
    }

    /// What made a check fail, so that a rollback can say it.
    pub(super) fn blame(&self, failure: String) {
        let mut undoing = self.undoing.lock().unwrap_or_else(PoisonError::into_inner);
        undoing.failure.get_or_insert(failure);
    }

    fn keep(&self, unit: &str, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.insert(unit.to_owned(), note);
    }

    async fn act(&self, unit: &str) -> Result<UnitOutcome, JobError> {
        let started = Instant::now();
        let mut note = Note::default();
        match &self.work {
            Work::Deploy { force, plan } => {
                let prepared = self.board.prepare(unit).await?;
                let last = prepared.memory.last();
                let Some(reason) = must_run(&prepared.fingerprint, last.as_ref(), *force) else {
                    return Ok(UnitOutcome::Skipped);
                };
                self.begin(unit)?;
                if let Some(plan) = plan {
                    self.hold_to(plan, &prepared).await?;
                }
                note.reason = Some(reason.to_string());
                note.fingerprint = Some(prepared.fingerprint.clone());
                match self.board.deploy_prepared(prepared, reason).await? {
                    Deployed::Skipped => return Ok(UnitOutcome::Skipped),
                    Deployed::Ran { report, .. } => note.report = report,
                }
            }
            Work::Preview => {
                self.begin(unit)?;
                let previewed = self.board.preview(unit).await?;
                note.reason = previewed.reason.map(|reason| reason.to_string());
                note.fingerprint = Some(previewed.fingerprint);
                note.report = previewed.report;
            }
            Work::Destroy => {
                self.begin(unit)?;
                note.report = self.board.destroy(unit).await?;
            }
            Work::Restore(states) => {
                self.begin(unit)?;
                let state = states.get(unit).copied().flatten();
                note.report = self.board.restore(unit, state).await?;
            }
        }
        note.seconds = started.elapsed().as_secs();
        self.keep(unit, note);
        Ok(UnitOutcome::Succeeded)
    }

    /// Tells that a unit begins. Nothing may change that the record does not know of; a preview has
    /// no record.
    fn begin(&self, unit: &str) -> Result<()> {
        let begun = RunEvent::unit(now(), unit, &UnitState::Running);
        match self.hub.must_tell(begun) {
            Err(error) if self.run.is_some() => Err(error),
            _ => self.hub.settle(),
        }
    }

    /// A unit may do what was approved and nothing else.
    async fn hold_to(&self, plan: &SealedPlan, prepared: &Prepared) -> Result<(), JobError> {
        plan.refuse_moved(&prepared.stack, &prepared.fingerprint)?;
        let report = self.board.rehearse_prepared(prepared).await?;
        plan.refuse_other_steps(&prepared.stack, &report.steps)?;
        Ok(())
    }
}

#[async_trait]
impl Worker for Crew {
    async fn start(&self, unit: &str) -> UnitOutcome {
        let ended = self.act(unit).await;
        ended.unwrap_or_else(|failed| UnitOutcome::Failed {
            message: told(&failed.error),
            trigger: failed.trigger,
        })
    }

    async fn roll_back(&self, unit: &str) -> Result<(), String> {
        let ended = self.board.roll_back(unit).await;
        ended.map(|_| ()).map_err(|failed| told(&failed.error))
    }

    async fn check(&self) -> bool {
        match &self.checks {
            Some(checks) => checks.run(self).await,
            None => true,
        }
    }
}

/// An error in one line, with what to do about it.
fn told(error: &Error) -> String {
    if error.code() == ErrorCode::OUTCOMES_UNKNOWN {
        return format!("{error} (`nimbus resume` looks them up)");
    }
    match error.help() {
        Some(help) => format!("{error} ({help})"),
        None => error.to_string(),
    }
}

impl RunSink for Crew {
    fn unit_changed(&self, unit: &str, state: &UnitState) {
        self.watch_undoing(unit, state);
        if *state == UnitState::Running {
            // Told by whoever starts it, before it does.
            return;
        }
        let mut event = RunEvent::unit(now(), unit, state);
        if let RunEvent::Unit {
            reason,
            seconds,
            changes,
            ..
        } = &mut event
            && *state == UnitState::Succeeded
            && let Some(note) = self.note(unit)
        {
            *reason = note.reason;
            *seconds = Some(note.seconds);
            *changes = note.report.changes;
        }
        self.hub.tell(event);
    }
}

impl Crew {
    /// The first rollback of a run is announced with what led to it.
    fn watch_undoing(&self, unit: &str, state: &UnitState) {
        let mut undoing = self.undoing.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            UnitState::Succeeded => undoing.done.push(unit.to_owned()),
            UnitState::Failed { message } => {
                let failure = format!("{unit}: {message}");
                undoing.failure.get_or_insert(failure);
            }
            UnitState::RollingBack if !undoing.begun => {
                undoing.begun = true;
                let reason = undoing.failure.clone();
                let reason = reason.unwrap_or_else(|| "the run takes too long".to_owned());
                let message = format!(
                    "Error: {reason}\n{} stacks deployed successfully: {}",
                    undoing.done.len(),
                    undoing.done.join(", ")
                );
                if let Some(run) = self.run {
                    self.hub.tell(RunEvent::Run {
                        at: now(),
                        run,
                        status: RunStatus::Undoing,
                        result: None,
                        message: Some(message),
                    });
                }
            }
            _ => {}
        }
    }
}
