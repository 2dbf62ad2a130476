//! What an operation that died left open: looked up before the next one, or refused.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, StackOperation, shell_word};
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
        let creates: Vec<_> = open.iter().filter(|act| is_create(act)).collect();
        if creates.is_empty() || recovery.forget_creates {
            return Ok(());
        }
        let urns = creates.iter().map(|act| act.urn.to_string());
        let message = format!(
            "nobody knows whether these were created: {}",
            urns.collect::<Vec<_>>().join(", ")
        );
        let help = self.advice(job, &request.location, &creates);
        Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(help))
    }

    /// What to do about creates of unknown outcome, in commands that work as they are told. A server's state can be
    /// worked on by nobody else, and a simulated cloud has made nothing.
    fn advice(
        &self,
        job: &UnitJob,
        location: &StackLocation,
        creates: &[&UnfinishedAct],
    ) -> String {
        let verb = way_on(job);
        let Some(words) = &self.options.by_hand else {
            return format!(
                "look for them in the cloud, and delete what is there, for nothing is recorded of it; then run `{verb}` \
                 with {FORGET_CREATES}"
            );
        };
        let on = format!("`{verb} {words} {FORGET_CREATES}`");
        if self.options.simulated.is_some() {
            return format!("nothing real was created; {on} goes on without them");
        }
        let imports = creates.iter().map(|act| act.import_command(location));
        let imports = imports.collect::<Vec<_>>().join(", ");
        format!(
            "look for them in the cloud; take in each that is there, with the cloud's id of it for ID: {imports}; then {on}"
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
            .map(|act| format!("{} {}", act.kind.as_str(), act.urn));
        let acts = acts.collect::<Vec<_>>().join(", ");
        let message = format!("nobody knows what became of {acts}, which an earlier run left open");
        let rollback = match &self.options.by_hand {
            Some(words) => format!("nimbus rollback {words}"),
            None => "nimbus rollback".to_owned(),
        };
        let help = format!("`{rollback}` goes back to before that run, and looks them up");
        Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(help))
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
            .map(|operation| UnfinishedAct {
                kind: operation.kind,
                urn: operation.resource.urn.clone(),
                parent: operation.resource.parent.clone(),
                provider: operation.resource.provider.clone(),
            })
            .collect();
        if let Some(report) = stack.interrupted().await? {
            open.extend(report.unknown.into_iter().map(|act| UnfinishedAct {
                kind: act.kind,
                urn: act.urn,
                parent: None,
                provider: String::new(),
            }));
        }
        Ok(open)
    }
}

/// An act of unknown outcome, and what it was done to.
struct UnfinishedAct {
    kind: OperationKind,
    urn: Urn,
    parent: Option<Urn>,
    /// As it is recorded: its URN, and an id.
    provider: String,
}

impl UnfinishedAct {
    /// The command that takes its object in, if there is one. The state is left with a question open, which whoever
    /// goes on has answered by then; and what is undone later must not be protected.
    fn import_command(&self, location: &StackLocation) -> String {
        let mut command = format!(
            "nimbus program import {} {} ID --dir {} --stack {}",
            shell_word(self.urn.type_()),
            shell_word(self.urn.name()),
            shell_word(&location.directory.to_string_lossy()),
            shell_word(&location.stack),
        );
        let mut option = |name: &str, value: &str| {
            command.push_str(&format!(" --{name} {}", shell_word(value)));
        };
        if let Some(backend) = &location.backend {
            option("backend", backend);
        }
        let parent = self.parent.as_ref();
        if let Some(parent) = parent.filter(|parent| parent.type_() != "pulumi:pulumi:Stack") {
            option("parent", &parent.to_string());
        }
        if let Some((provider, _)) = self.provider.rsplit_once("::")
            && !provider.contains("::default")
        {
            option("provider", provider);
        }
        format!("`{command} --no-protect --allow-unknown`")
    }
}

fn is_create(act: &UnfinishedAct) -> bool {
    act.kind == OperationKind::Creating
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

#[cfg(test)]
mod tests {
    use nimbus_engine_operations::StackGrant;

    use super::*;

    #[test]
    fn what_may_be_there_is_taken_in_by_a_command_that_names_its_stack_and_state() {
        let act = |parent: Option<&str>, provider: &str| UnfinishedAct {
            kind: OperationKind::Creating,
            urn: Urn::parse("urn:pulumi:dev::shop::my:Page$aws:s3/bucket:Bucket::it's").unwrap(),
            parent: parent.map(|urn| Urn::parse(urn).unwrap()),
            provider: provider.to_owned(),
        };
        let location = StackLocation {
            directory: "/srv/my shop".into(),
            stack: "organization/shop/dev".to_owned(),
            backend: Some("file:///states".to_owned()),
            granted: StackGrant::Named,
        };
        let usual = "nimbus program import aws:s3/bucket:Bucket 'it'\\''s' ID --dir '/srv/my shop' --stack \
                     organization/shop/dev --backend file:///states";
        let stack = Some("urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev");
        let default = "urn:pulumi:dev::shop::pulumi:providers:aws::default_7::id";
        assert_eq!(
            act(stack, default).import_command(&location),
            format!("`{usual} --no-protect --allow-unknown`")
        );
        let page = "urn:pulumi:dev::shop::my:Page::page";
        let own = "urn:pulumi:dev::shop::pulumi:providers:aws::eu";
        assert_eq!(
            act(Some(page), &format!("{own}::id")).import_command(&location),
            format!("`{usual} --parent {page} --provider {own} --no-protect --allow-unknown`")
        );
    }
}
