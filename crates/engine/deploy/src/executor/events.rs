//! What the audience is told about steps.

use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp, Urn};
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity};

use super::{Done, Executor, StepError};
use crate::steps::Step;

impl Executor {
    pub(super) fn announce(&self, step: &Step) {
        let new = match step {
            // What a refresh finds is not known yet.
            Step::Refresh(step) => Some(Arc::clone(&step.old().state)),
            step => step.new_state().cloned(),
        };
        let event = step.event(step.op(), new);
        self.emit(EngineEvent::ResourcePre {
            step: event,
            planning: self.rules.dry_run,
        });
    }

    pub(super) fn tell_done(&self, step: &Step, done: &Done) {
        let op = self.outcome_op(step, done);
        if self.counts(step, done) && !step.is_internal() {
            *self.changes.lock().entry(op).or_default() += 1;
        }
        if self.shows_outputs(step) {
            let mut event = step.event(op, new_state(step, done));
            if let Done::Refreshed(refreshed) = done {
                event.changed_keys.clone_from(&refreshed.diff.changed_keys);
                event.detailed_diff.clone_from(&refreshed.diff.detailed);
            }
            self.emit(EngineEvent::ResourceOutputs {
                step: event,
                planning: self.rules.dry_run,
            });
        }
    }

    /// A refresh is told as what it found, when refreshing is all that was asked for.
    fn outcome_op(&self, step: &Step, done: &Done) -> StepOp {
        match done {
            Done::Refreshed(refreshed) if self.rules.refresh_only => refreshed.op,
            _ => step.op(),
        }
    }

    fn counts(&self, step: &Step, done: &Done) -> bool {
        match (step, done) {
            (Step::Refresh(_), _) => self.rules.refresh_only,
            // Reading the same thing again is no change, and neither is reading it for the first
            // time.
            (Step::Read(read), Done::State(known)) if !read.replaces() => read
                .old()
                .is_some_and(|old| old.state.outputs != known.state.outputs),
            _ => step.is_logical(),
        }
    }

    /// Components show their outputs when they register them; a preview shows all it knows.
    fn shows_outputs(&self, step: &Step) -> bool {
        self.rules.dry_run
            || step.subject().custom
            || matches!(step.op(), StepOp::Delete | StepOp::Refresh)
    }

    pub(super) fn tell_failed(&self, step: &Step, error: &StepError) {
        let urn = (!step.is_internal()).then(|| step.urn());
        self.diagnose(Severity::Error, urn, error.message());
        if !self.rules.dry_run {
            let new = match error {
                StepError::HalfDone { state, .. } => Some(Arc::clone(state)),
                _ => step.new_state().cloned(),
            };
            let event = step.event(step.op(), new);
            self.emit(EngineEvent::ResourceFailed {
                step: event,
                planning: false,
                cause: error.cause(),
            });
        }
    }

    pub(crate) fn diagnose(&self, severity: Severity, urn: Option<&Urn>, message: String) {
        self.emit(EngineEvent::Diagnostic(Diagnostic {
            severity,
            urn: urn.cloned(),
            message,
            stream_id: 0,
            ephemeral: false,
        }));
    }
}

fn new_state(step: &Step, done: &Done) -> Option<Arc<ResourceState>> {
    match done {
        Done::State(known) => Some(Arc::clone(&known.state)),
        Done::Refreshed(refreshed) => refreshed.new.clone(),
        Done::Gone => None,
        Done::Told => step.new_state().cloned(),
    }
}
