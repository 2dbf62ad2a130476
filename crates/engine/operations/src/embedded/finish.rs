//! Where an operation ends: the new state, its place in history, and the report.

use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{
    BackendError, RecoveryReport, StackSecrets, StackSession, StateVersion, UpdateInfo,
    UpdateResult,
};
use nimbus_engine_deploy::{DeployError, DeploymentOutcome};
use nimbus_engine_model::{OperationKind, Snapshot};

use super::EmbeddedOperation;
use crate::notices;
use crate::report::OperationReport;

impl EmbeddedOperation<'_> {
    pub(super) async fn finish(
        &self,
        session: StackSession,
        mut outcome: DeploymentOutcome,
        recovered: Vec<RecoveryReport>,
    ) -> Result<OperationReport> {
        // Without its journal an operation does not know what it may write.
        if let Err(DeployError::Journal(_)) = &outcome.result {
            let _ = session.end().await;
            return Ok(self.report(outcome, recovered, None));
        }
        self.forget_cleared(session.snapshot(), &mut outcome);
        let secrets = Arc::clone(session.secrets());
        let update = self.history(&outcome);
        let saved = session.finish(outcome.snapshot.clone(), &update).await;
        let version = match saved {
            Ok(finished) => {
                notices::findings(self.events.as_ref(), &finished.findings);
                Some(finished.version)
            }
            Err(error) => {
                let failed = not_saved(error, &outcome);
                let mut report = self.report(outcome, recovered, None);
                report.result = Err(failed);
                return Ok(report);
            }
        };
        self.keep_key(&secrets)?;
        Ok(self.report(outcome, recovered, version))
    }

    /// Creates of unknown outcome that somebody has looked for, in vain.
    fn forget_cleared(&self, base: Option<&Snapshot>, outcome: &mut DeploymentOutcome) {
        if !self.request.options.clear_pending_creates || outcome.result.is_err() {
            return;
        }
        let before = base
            .map(|base| base.pending_operations.as_slice())
            .unwrap_or_default();
        outcome.snapshot.pending_operations.retain(|operation| {
            operation.kind != OperationKind::Creating || !before.contains(operation)
        });
    }

    /// The first secret of a stack brings a key, which belongs into its settings.
    fn keep_key(&self, secrets: &StackSecrets) -> Result<()> {
        if self.config_is_given {
            // The state itself carries the key.
            return Ok(());
        }
        if let Some(provider) = secrets.created() {
            let mut settings = self.workspace.settings.clone();
            settings.set_secrets(&provider)?;
            settings.save()?;
        }
        Ok(())
    }

    /// Everything was ended at once. The journal stays, and the next command settles it.
    pub(super) async fn killed(
        &self,
        session: StackSession,
        recovered: Vec<RecoveryReport>,
    ) -> OperationReport {
        let _ = session.end().await;
        let message = "killed; what was running has an unknown outcome";
        OperationReport {
            result: Err(Error::new(ErrorCode::CANCELLED, message)
                .with_help("the next command on this stack says what is known and what is not")),
            changes: Default::default(),
            outputs: Default::default(),
            unknown: Vec::new(),
            recovered,
            version: None,
            duration: self.started.elapsed(),
        }
    }

    fn history(&self, outcome: &DeploymentOutcome) -> UpdateInfo {
        let now = Timestamp::now();
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        let count = |(op, count): (&nimbus_engine_model::StepOp, &usize)| {
            (op.to_string(), i64::try_from(*count).unwrap_or(i64::MAX))
        };
        UpdateInfo {
            kind: self.kind(),
            start_time: now.as_second() - elapsed,
            message: self.request.options.message.clone(),
            environment: Some(Default::default()),
            config: self.config.encrypted.to_json(),
            version: 0,
            result: match outcome.result {
                Ok(()) => UpdateResult::Succeeded,
                Err(_) => UpdateResult::Failed,
            },
            end_time: now.as_second(),
            resource_changes: Some(outcome.changes.iter().map(count).collect()),
        }
    }

    pub(super) fn report(
        &self,
        outcome: DeploymentOutcome,
        recovered: Vec<RecoveryReport>,
        version: Option<StateVersion>,
    ) -> OperationReport {
        OperationReport {
            recovered,
            version,
            duration: self.started.elapsed(),
            ..OperationReport::from(outcome)
        }
    }
}

fn not_saved(error: BackendError, outcome: &DeploymentOutcome) -> Error {
    let error = Error::from(error);
    let how = if outcome.result.is_ok() {
        "succeeded"
    } else {
        "failed"
    };
    let message = format!("the operation {how}, but its state could not be saved: {error}");
    if error.code() == ErrorCode::STATE_DEFECT {
        // The journal alone does not help: its state would be refused again.
        let help = error.help().unwrap_or_default().to_owned();
        return Error::new(ErrorCode::STATE_DEFECT, message)
            .with_help(help)
            .with_source(error);
    }
    Error::new(ErrorCode::STATE_NOT_SAVED, message)
        .with_help("remove the cause; the next command builds the state from the journal")
        .with_source(error)
}
