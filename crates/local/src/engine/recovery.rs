//! What an operation that died left open: looked up before the next one, or refused.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_backend::{DeclaredSecrets, Owner, SessionRequest, UpdateKind};
use nimbus_engine_model::{OperationKind, Urn};
use nimbus_engine_operations::{
    Engine as _, OperationOptions, OperationRequest, StackAccess, StackLocation, announce_recovery,
};
use nimbus_runs::{FORGET_CREATES, RestorePoint, UnitJob, UnitOperation};

use super::LocalEngine;

impl LocalEngine {
    /// What an interrupted operation left open is looked up; what undoes looks by itself, for it comes
    /// right after a failure. Creates that are not found are refused until a person has looked: a refresh
    /// finds one only where its object is known by its name, and the operation that goes on without it makes
    /// another, or leaves it behind.
    pub(super) async fn recover(
        &self,
        request: &mut OperationRequest,
        job: &UnitJob,
    ) -> Result<()> {
        let recovery = job.recovery;
        let undoes = matches!(
            request.operation,
            StackOperation::Restore | StackOperation::Destroy
        );
        if request.options.dry_run || !(recovery.look_up || undoes) {
            return Ok(());
        }
        let mut open = self.unfinished(&request.location).await?;
        if !recovery.forget_creates && open.iter().any(is_create) {
            self.look_for_creates(request, job).await?;
            open = self.unfinished(&request.location).await?;
        }
        if open.is_empty() {
            return Ok(());
        }
        request.options.refresh = true;
        request.options.clear_pending_creates = recovery.forget_creates;
        let creates = open.iter().filter(|act| is_create(act));
        let creates: Vec<_> = creates.map(|(_, urn)| urn.to_string()).collect();
        if creates.is_empty() || recovery.forget_creates {
            return Ok(());
        }
        let message = format!(
            "nobody knows whether these were created: {}",
            creates.join(", ")
        );
        let command = way_on(job);
        Err(
            Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(format!(
                "look for them in the cloud; import what is there with `nimbus program import`, then \
                 run `{command}` with {FORGET_CREATES}"
            )),
        )
    }

    /// Looks for what interrupted creates made, by an operation of its own: the one that was asked for must
    /// not begin before it is known what is left open. The embedded engine does it whichever runs units, for
    /// no other looks for objects by their names.
    async fn look_for_creates(&self, asked: &OperationRequest, job: &UnitJob) -> Result<()> {
        let look = OperationRequest {
            location: asked.location.clone(),
            operation: StackOperation::Refresh,
            options: OperationOptions {
                parallel: asked.options.parallel,
                allow_mass_removal: asked.options.allow_mass_removal,
                sandbox: asked.options.sandbox.clone(),
                ..OperationOptions::default()
            },
        };
        let events = (self.events)(&job.unit.component);
        let cancellation = self.cancellation.child();
        let looked = self.embedded(job).run(&look, events, &cancellation).await;
        looked?.result
    }

    /// Refuses to call a unit settled that the run did not touch and an earlier one left open. There is no
    /// state of before this run to go back to, so nothing is looked up for it either.
    pub(super) async fn refuse_unfinished(&self, location: &StackLocation) -> Result<()> {
        let open = self.unfinished(location).await?;
        if open.is_empty() {
            return Ok(());
        }
        let acts = open
            .iter()
            .map(|(kind, urn)| format!("{} {urn}", kind.as_str()));
        let acts = acts.collect::<Vec<_>>().join(", ");
        let message = format!("nobody knows what became of {acts}, which an earlier run left open");
        Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message)
            .with_help("`nimbus rollback` goes back to before that run, and looks them up"))
    }

    /// Brings a state up to date with the journal of an operation that died. What is kept of a unit
    /// before a run has to have all that is there, or going back would delete what that operation
    /// made.
    pub(super) async fn settle(&self, job: &UnitJob, access: &StackAccess) -> Result<()> {
        let stack = access.stack();
        if stack.interrupted().await?.is_none() {
            return Ok(());
        }
        let request = SessionRequest {
            kind: UpdateKind::Update,
            owner: Owner::current("nimbus deploy"),
            keyring: Arc::clone(&access.keyring),
            secrets: DeclaredSecrets::Nothing,
            expected: None,
        };
        let session = stack.begin(request).await?;
        announce_recovery(
            (self.events)(&job.unit.component).as_ref(),
            session.recovered(),
        );
        Ok(session.end().await?)
    }

    /// Acts of earlier operations whose outcome nobody knows.
    async fn unfinished(&self, location: &StackLocation) -> Result<Vec<UnfinishedAct>> {
        let access = self.access(location).await?;
        let stack = access.stack();
        if !stack.exists().await? {
            return Ok(Vec::new());
        }
        let recorded = stack.load_unverified().await?.snapshot.unwrap_or_default();
        let pending = recorded.pending_operations.into_iter();
        let mut open: Vec<_> = pending
            .map(|operation| (operation.kind, operation.resource.urn.clone()))
            .collect();
        if let Some(report) = stack.interrupted().await? {
            open.extend(report.unknown.into_iter().map(|act| (act.kind, act.urn)));
        }
        Ok(open)
    }
}

/// An act of unknown outcome, and what it was done to.
type UnfinishedAct = (OperationKind, Urn);

fn is_create((kind, _): &UnfinishedAct) -> bool {
    *kind == OperationKind::Creating
}

/// Who goes on. A run that undoes itself and cannot is over, and what it left is another run's work.
fn way_on(job: &UnitJob) -> &'static str {
    let undoes_itself = match job.operation {
        UnitOperation::Restore(RestorePoint::BeforeRun(run)) => job.run == Some(run),
        UnitOperation::Restore(RestorePoint::Version(_) | RestorePoint::Nothing)
        | UnitOperation::Preview
        | UnitOperation::Deploy
        | UnitOperation::Destroy
        | UnitOperation::Refresh => false,
    };
    if undoes_itself {
        "nimbus rollback"
    } else {
        "nimbus resume"
    }
}
