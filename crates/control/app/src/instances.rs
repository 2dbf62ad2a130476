//! Instances of components: what is deployed where, and what is done with one of them. Each is a run of one stack of its
//! deployment, held to the same contracts, rules and approvals as any other.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{DeployedComponent, InstanceFilter, ListPage, StoredRun, TenantTx};
use nimbus_core::{Error, ErrorCode, TenantId};
use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs::RunChoices;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::approval_binding::require_plan;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::input;
use crate::runs::{QueueRequest, QueuedRun};
use crate::upgrade_fit::{PlacedInstance, TenantFacts, known_of, refuse_unfit};

const MOST_MESSAGE_LETTERS: usize = 2_000;

/// What is asked of an instance.
#[derive(Clone, Debug, Default)]
pub struct InstanceInput {
    /// The version to go to, or to look at; the newest that can be used when absent.
    pub version: Option<i32>,
    pub message: Option<String>,
}

impl App {
    /// Where a component is deployed in the tenant.
    pub async fn component_instances(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        page: ListPage<Uuid>,
    ) -> Result<Vec<DeployedComponent>> {
        let operation = operation::LIST_COMPONENT_INSTANCES;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.instances_of_component(name, &page).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Instances of a tenant.
    pub async fn instance_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: InstanceFilter,
        page: ListPage<Uuid>,
    ) -> Result<Vec<DeployedComponent>> {
        let permit = self.permit(call, operation::LIST_INSTANCES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.instance_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn instance_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<DeployedComponent> {
        let permit = self.permit(call, operation::GET_INSTANCE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.instance_get(id).await?;
                if !self.reaches(call, &permit, &found.environment) {
                    return Err(Failure::not_found());
                }
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Deploys, destroys, previews or upgrades one instance: queues the run of its stack.
    pub async fn instance_act(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        id: Uuid,
        input: InstanceInput,
    ) -> Result<QueuedRun> {
        let permit = self.permit(call, operation, tenant).await?;
        let message = input
            .message
            .as_deref()
            .map(|text| input::text("message", text, MOST_MESSAGE_LETTERS))
            .transpose()?;
        let queued = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.instance_get(id).await?;
                self.ensure_in(call, &permit, &found.environment)?;
                let run = match operation.id {
                    "instances.upgrade" => {
                        self.upgrade_in(tx, call, id, input.version, None, message)
                            .await?
                            .0
                    }
                    "instances.preview" => {
                        self.preview_in(tx, call, id, input.version, message)
                            .await?
                    }
                    "instances.destroy" => {
                        refuse_gone(&found)?;
                        self.queue_one(tx, call, &found, RunAction::Destroy, message)
                            .await?
                    }
                    _ => {
                        refuse_gone(&found)?;
                        require_plan(tx, &found.environment, found.rehearsal).await?;
                        self.queue_one(tx, call, &found, RunAction::Deploy, message)
                            .await?
                    }
                };
                let position = self.position(tx, &run).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(json!({"version": found.component_version, "status": found.status}))
                    .after(told(&found, &run));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(QueuedRun { run, position })
            })
            .await?;
        // After the commit: a worker that looks sooner would find nothing.
        self.inner.wakeup.notify_one();
        self.flow_begins(tenant, &queued.run);
        Ok(queued)
    }

    /// Changes the version of an instance and queues the run that brings it. When that comes to nothing, the version of
    /// before is the instance's again. A roll-out asks once: asked again it gets the run of before, and that it is not new.
    pub(crate) async fn upgrade_in(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        id: Uuid,
        to: Option<i32>,
        rollout: Option<Uuid>,
        message: Option<String>,
    ) -> Result<(StoredRun, bool)> {
        let found = tx.instance_get(id).await?;
        // Whoever queues a run locks its deployment, so the instance stays as it is read after that.
        let stored = tx.deployment_lock(&found.deployment).await?;
        let instance = tx.instance_get(id).await?;
        if rollout.is_some()
            && instance.rollout == rollout
            && let Some(run) = instance.rollout_run
        {
            return Ok((tx.run_find(run).await?, false));
        }
        refuse_gone(&instance)?;
        if instance.upgrade_run.is_some() {
            let message = format!("an upgrade of {} is under way", name_of(&instance));
            return Err(Error::new(ErrorCode::INSTANCE_UPGRADING, message)
                .with_help("wait for its run, or cancel it")
                .into());
        }
        let known = known_of(tx, &instance).await?;
        let to = known.target(to)?;
        let manifest = read_manifest(&stored.manifest)?;
        let placed = PlacedInstance::new(&instance, &manifest)?;
        let verdict = placed.assess(&TenantFacts::read(tx).await?, &known, to)?;
        refuse_unfit(&instance, to, &verdict)?;
        let from = instance.component_version.unwrap_or_default();
        tx.instance_pin(id, to).await?;
        let message = message.or_else(|| {
            let stack = &instance.stack;
            Some(format!("upgrade of {stack} from version {from} to {to}"))
        });
        let run = self
            .queue_one(tx, call, &instance, RunAction::Deploy, message)
            .await?;
        tx.instance_upgrade(id, run.id, from, rollout).await?;
        let run = StoredRun {
            upgrades: true,
            ..run
        };
        Ok((run, true))
    }

    /// Queues a preview of an instance, with another version of its component if one is given. Nothing of it stays with
    /// the instance.
    pub(crate) async fn preview_in(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        id: Uuid,
        version: Option<i32>,
        message: Option<String>,
    ) -> Result<StoredRun> {
        let found = tx.instance_get(id).await?;
        tx.deployment_lock(&found.deployment).await?;
        let instance = tx.instance_get(id).await?;
        refuse_gone(&instance)?;
        let Some(version) = version else {
            return self
                .queue_one(tx, call, &instance, RunAction::Preview, message)
                .await;
        };
        let known = known_of(tx, &instance).await?;
        if known.find(version).is_none() {
            let name = &instance.component;
            let message = format!("version {version} of {name} is not published");
            return Err(Failure::new(ErrorCode::UPGRADE_PATH, message));
        }
        // The run's row keeps the versions that it is made of, so the instance has its own again before anybody sees it.
        tx.instance_pin(id, version).await?;
        let run = self
            .queue_one(tx, call, &instance, RunAction::Preview, message)
            .await?;
        if let Some(before) = instance.component_version {
            tx.instance_pin(id, before).await?;
        }
        Ok(run)
    }

    async fn queue_one(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        instance: &DeployedComponent,
        action: RunAction,
        message: Option<String>,
    ) -> Result<StoredRun> {
        let stored = tx.deployment_lock(&instance.deployment).await?;
        let manifest = read_manifest(&stored.manifest)?;
        let placed = PlacedInstance::new(instance, &manifest)?;
        let request = QueueRequest {
            stored: &stored,
            manifest: &manifest,
            environment: placed.environment,
            rehearsal: instance.rehearsal,
            action,
            choices: RunChoices {
                parallel: 1,
                // Only a deploy has something to go back to.
                on_failure: match action {
                    RunAction::Deploy => OnFailure::Automatic,
                    RunAction::Preview
                    | RunAction::Destroy
                    | RunAction::Refresh
                    | RunAction::Rollback => OnFailure::Hold,
                },
                components: Some(vec![placed.stack.clone()]),
                typecheck: true,
                message,
                ..RunChoices::default()
            },
            plan: None,
        };
        self.queue(tx, call, request).await
    }
}

pub(crate) fn name_of(instance: &DeployedComponent) -> String {
    let DeployedComponent {
        deployment,
        environment,
        stack,
        ..
    } = instance;
    format!("{stack} of {deployment} in {environment}")
}

/// What is destroyed is there no more.
fn refuse_gone(instance: &DeployedComponent) -> Result<()> {
    if instance.status != "destroyed" {
        return Ok(());
    }
    let message = format!("{} is destroyed", name_of(instance));
    Err(Error::new(ErrorCode::INSTANCE_GONE, message)
        .with_help("deploy its deployment to have it again")
        .into())
}

pub(crate) fn told(instance: &DeployedComponent, run: &StoredRun) -> serde_json::Value {
    json!({
        "run": run.id.to_string(),
        "version": run.catalog[instance.stack.as_str()]["version"],
        "deployment": instance.deployment,
        "environment": instance.environment,
        "rehearsal": instance.rehearsal,
        "approval": run.approval.map(|approval| approval.to_string()),
    })
}
