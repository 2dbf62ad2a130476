//! What went wrong so far, and whether anything may still be started.

use std::collections::HashSet;

use nimbus_engine_model::Urn;
use nimbus_engine_ports::JournalError;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::{DeployError, StepFailure};
use crate::executor::StepError;
use crate::steps::Step;

pub(crate) struct OperationFailures {
    inner: Mutex<RecordedFailures>,
    /// Fires when nothing more may be started: by the user's wish or after an error.
    stop: CancellationToken,
    cancelled: CancellationToken,
    continue_on_error: bool,
}

#[derive(Default)]
struct RecordedFailures {
    failures: Vec<StepFailure>,
    /// The first error that was not a step's.
    other: Option<DeployError>,
    journal: Option<JournalError>,
    /// Failed or left out because of a failure; what depends on them is left out too.
    failed: HashSet<Urn>,
}

impl OperationFailures {
    pub(crate) fn new(cancelled: CancellationToken, continue_on_error: bool) -> Self {
        Self {
            inner: Mutex::default(),
            stop: cancelled.child_token(),
            cancelled,
            continue_on_error,
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn stop_when_dropped(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    pub(crate) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// An error after which the operation cannot go on.
    pub(crate) fn stop(&self, error: DeployError) {
        self.note(error);
        self.stop.cancel();
    }

    /// An error that fails the operation but does not stop it.
    pub(crate) fn note(&self, error: DeployError) {
        let mut inner = self.inner.lock();
        match error {
            DeployError::Journal(error) => drop(inner.journal.get_or_insert(error)),
            other => drop(inner.other.get_or_insert(other)),
        }
    }

    /// A failed step. Whether others may go on depends on the operation, except that what a rule
    /// forbade was never tried: there it is better to hear about all such resources at once.
    pub(crate) fn step_failed(&self, step: &Step, error: &StepError) {
        let failure = match error {
            // Even an operation that goes on after errors ends here: nothing may happen that is not
            // written down.
            StepError::Journal(error) => {
                self.inner
                    .lock()
                    .journal
                    .get_or_insert_with(|| error.clone());
                self.stop.cancel();
                return;
            }
            error => StepFailure {
                urn: step.urn().clone(),
                op: step.op(),
                message: error.message(),
                unknown: error.is_unknown(),
            },
        };
        self.leave_out(step);
        self.inner.lock().failures.push(failure);
        if !self.continue_on_error && !matches!(error, StepError::Protected { .. }) {
            self.stop.cancel();
        }
    }

    /// Remembers a resource that is not as it should be, under its present and its recorded name.
    pub(crate) fn leave_out(&self, step: &Step) {
        let recorded = step.old().map(|old| old.state.urn.clone());
        let names = recorded.into_iter().chain([step.urn().clone()]);
        self.inner.lock().failed.extend(names);
    }

    pub(crate) fn failed(&self) -> HashSet<Urn> {
        self.inner.lock().failed.clone()
    }

    pub(crate) fn has_any(&self) -> bool {
        let inner = self.inner.lock();
        !inner.failures.is_empty() || inner.other.is_some() || inner.journal.is_some()
    }

    /// Ends the operation when anything has failed so far.
    pub(crate) fn refuse_after_failure(&self) -> Result<(), DeployError> {
        if self.is_cancelled() {
            return Err(DeployError::Cancelled);
        }
        if self.has_any() {
            self.result(self.inner.lock())
        } else {
            Ok(())
        }
    }

    pub(crate) fn continues_on_error(&self) -> bool {
        self.continue_on_error
    }

    /// The operation's result when nothing is recorded any more. Whether the record is whole is the
    /// recorder's word alone: a step that was left behind and comes too late to write anything finds
    /// the writer gone, and takes nothing away from what was written before.
    pub(crate) fn verdict(&self, record: Option<JournalError>) -> Result<(), DeployError> {
        let mut inner = self.inner.lock();
        inner.journal = record;
        self.result(inner)
    }

    /// The result so far. The record comes first, then what really failed, then the rest.
    fn result(&self, mut inner: MutexGuard<'_, RecordedFailures>) -> Result<(), DeployError> {
        if let Some(error) = inner.journal.take() {
            return Err(DeployError::Journal(error));
        }
        if !inner.failures.is_empty() {
            let failures = std::mem::take(&mut inner.failures);
            return Err(DeployError::StepsFailed { failures });
        }
        match inner.other.take() {
            // A program that is told to stop ends as if it had failed.
            None | Some(DeployError::ProgramFailed { .. }) if self.is_cancelled() => {
                Err(DeployError::Cancelled)
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwritable() -> JournalError {
        JournalError::Unwritable {
            message: "the journal's writer ended".to_owned(),
        }
    }

    #[test]
    fn whoever_comes_too_late_does_not_spoil_the_record() {
        let cancelled = CancellationToken::new();
        let failures = OperationFailures::new(cancelled.clone(), false);
        cancelled.cancel();
        failures.note(DeployError::Journal(unwritable()));
        assert!(matches!(
            failures.verdict(None),
            Err(DeployError::Cancelled)
        ));
    }

    #[test]
    fn a_record_that_is_not_whole_is_the_first_thing_to_say() {
        let failures = OperationFailures::new(CancellationToken::new(), false);
        failures.note(DeployError::Internal {
            message: "something else".to_owned(),
        });
        let verdict = failures.verdict(Some(unwritable()));
        assert!(matches!(verdict, Err(DeployError::Journal(_))));
    }
}
