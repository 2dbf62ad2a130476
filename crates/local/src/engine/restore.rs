//! Units that go back to a state that was recorded before.

use std::collections::BTreeSet;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_model::{Snapshot, StepOp, Urn};
use nimbus_engine_operations::OperationOptions;
use nimbus_runs::{RestorePoint, UnitFailure, UnitJob, UnitReport};

use super::LocalEngine;
use super::stale::stale_values;
use crate::kept_states;

impl LocalEngine {
    /// Returns a unit to a recorded state and looks whether that is what is there now.
    pub(super) async fn put_back(
        &self,
        job: &UnitJob,
        target: Snapshot,
    ) -> Result<UnitReport, UnitFailure> {
        let location = self.location(&job.unit);
        // It did not exist and does not exist: there is no stack to be emptied.
        if target.resources.is_empty() && self.is_untouched(&location).await? {
            return Ok(UnitReport::default());
        }
        let wanted = urns(&target);
        let target = Arc::new(target);
        let restore = OperationOptions {
            restore_to: Some(Arc::clone(&target)),
            ..OperationOptions::default()
        };
        let report = self.operate(job, StackOperation::Restore, restore).await?;
        // An operation that went well is no proof: providers may take a wish and not fulfil it. So
        // what is recorded is compared with what was wanted, and then with what is really there.
        let recorded = self.recorded(&location).await?.unwrap_or_default();
        let unproved = |what: String| {
            let message = format!("{} was rolled back, but {what}", job.unit.component);
            UnitFailure::from(Error::new(ErrorCode::ROLLBACK_UNPROVED, message))
        };
        if let Some(open) = recorded.pending_operations.first() {
            let urn = &open.resource.urn;
            return Err(unproved(format!("nobody knows what became of {urn}")));
        }
        let now = urns(&recorded);
        if let Some(urn) = wanted.symmetric_difference(&now).next() {
            return Err(unproved(format!("{urn} is not as it was")));
        }
        if !recorded.resources.is_empty() {
            let look_only = OperationOptions {
                dry_run: true,
                ..OperationOptions::default()
            };
            let look = self
                .operate(job, StackOperation::Refresh, look_only)
                .await?
                .report;
            if look.has_changes() {
                let changes = look.changes.iter().filter(|(op, _)| **op != StepOp::Same);
                let count: usize = changes.map(|(_, count)| count).sum();
                return Err(unproved(format!(
                    "a refresh finds {count} resources that are not as recorded"
                )));
            }
        }
        Ok(UnitReport {
            stale: stale_values(&target, &recorded),
            ..report.into()
        })
    }

    /// A state of a unit's history.
    async fn historic(&self, job: &UnitJob, number: usize) -> Result<Snapshot> {
        let access = self.access(&self.location(&job.unit)).await?;
        let stack = access.stack();
        let mut versions = stack.history().await?.into_iter();
        let Some(version) = versions.find(|version| version.number == number) else {
            let unit = &job.unit.unit;
            let message = format!("the history of {unit} has no version {number}");
            return Err(Error::new(ErrorCode::STATE_VERSION_UNKNOWN, message));
        };
        kept_states::open(&stack.version_bytes(&version).await?, &access.keyring)
    }

    /// Where a unit goes back to; `None` when the run never touched it.
    pub(super) async fn restore_target(
        &self,
        job: &UnitJob,
        point: RestorePoint,
    ) -> Result<Option<Snapshot>> {
        match point {
            RestorePoint::Nothing => Ok(Some(Snapshot::default())),
            RestorePoint::Version(number) => self.historic(job, number).await.map(Some),
            RestorePoint::BeforeRun(run) => {
                let keyring = self.access(&self.location(&job.unit)).await?.keyring;
                let kept = &self.options.kept;
                kept.find(run, &job.unit.unit, &keyring).await
            }
        }
    }
}

fn urns(snapshot: &Snapshot) -> BTreeSet<Urn> {
    let live = snapshot.resources.iter().filter(|state| !state.delete);
    live.map(|state| state.urn.clone()).collect()
}
