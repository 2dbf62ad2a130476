//! Runs: asked for, queued and watched. What they are asked is read by `run_input`; `run_signals` stops them.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    ListPage, NewRun, RowCursor, RunFilter, StoreError, StoredDeployment, StoredEvent, StoredRun,
    TenantTx,
};
use nimbus_core::{EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::{Manifest, RunAction};
use nimbus_runs::{RunChoices, RunRequest, SealedPlan};
use serde_json::json;
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::approval_binding::require_plan;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::governance::GovernedRun;
use crate::repeat::RequestKey;
use crate::run_input::{RunInput, action_of, choices, plan_id};
use crate::{versions, wiring};

/// Who takes much out of a state without deleting it mends that state.
pub(crate) const REPAIR_STATE: &str = "deployment:state:repair";

/// A run, and how many of the tenant's runs come before it while it waits.
#[derive(Clone, Debug)]
pub struct QueuedRun {
    pub run: StoredRun,
    pub position: Option<i64>,
}

/// A run of a deployment that is locked.
#[derive(Clone, Debug)]
pub(crate) struct QueueRequest<'a> {
    pub(crate) stored: &'a StoredDeployment,
    pub(crate) manifest: &'a Manifest,
    pub(crate) environment: EnvironmentName,
    pub(crate) rehearsal: bool,
    pub(crate) action: RunAction,
    pub(crate) choices: RunChoices,
    /// The preview whose plan is in the choices.
    pub(crate) plan: Option<Uuid>,
}

impl App {
    /// Queues a run. Nothing has begun when this returns.
    pub async fn run_start(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        deployment: &str,
        input: RunInput,
        key: Option<RequestKey>,
    ) -> Result<QueuedRun> {
        let action = action_of(operation)?;
        let environment = input.environment.parse::<EnvironmentName>();
        let environment = environment
            .map_err(|_| Failure::field("environment", "this is not the name of an environment"))?;
        let permit = self
            .permit_in(call, operation, tenant, Some(environment.as_str()))
            .await?;
        let choices = choices(action, &input)?;
        self.check_orders(&input)?;
        let plan = plan_id(action, &input)?;
        let queued = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                if let Some(earlier) = self.answered(tx, call, operation, key.as_ref()).await? {
                    let id = earlier["run"].as_str().and_then(|id| id.parse().ok());
                    let run = tx.run_find(id.unwrap_or_default()).await?;
                    let position = self.position(tx, &run).await?;
                    return Ok::<_, Failure>(QueuedRun { run, position });
                }
                // Locked, for runs are numbered within a deployment.
                let stored = tx.deployment_lock(deployment).await?;
                let manifest = read_manifest(&stored.manifest)?;
                if choices.skip_gate.is_some() {
                    self.ensure_may_skip(call, &permit, &manifest, environment)?;
                }
                if choices.allow_mass_removal {
                    self.ensure_key_in(call, &permit, REPAIR_STATE, environment.as_str())?;
                }
                let choices = match plan {
                    None => {
                        if action == RunAction::Deploy {
                            let name = environment.as_str();
                            require_plan(tx, name, input.rehearsal).await?;
                        }
                        choices.clone()
                    }
                    Some(plan) => {
                        self.held_to(tx, plan, &stored.id, &input, choices.clone())
                            .await?
                    }
                };
                let request = QueueRequest {
                    stored: &stored,
                    manifest: &manifest,
                    environment,
                    rehearsal: input.rehearsal,
                    action,
                    choices,
                    plan,
                };
                let run = self.queue(tx, call, request).await?;
                let position = self.position(tx, &run).await?;
                let answer = json!({"run": run.id.to_string()});
                self.keep_answer(tx, call, operation, key.as_ref(), &answer)
                    .await?;
                let record = permit.record().on(&run.deployment).after(json!({
                    "run": run.id.to_string(),
                    "environment": run.environment,
                    "rehearsal": run.rehearsal,
                    "plan": run.plan.map(|plan| plan.to_string()),
                    "skip_gate": input.skip_gate,
                    "allow_mass_removal": input.allow_mass_removal.then_some(true),
                    "approval": run.approval.map(|approval| approval.to_string()),
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(QueuedRun { run, position })
            })
            .await?;
        // After the commit: a worker that looks sooner would find nothing.
        self.inner.wakeup.notify_one();
        self.flow_begins(tenant, &queued.run);
        Ok(queued)
    }

    /// The choices of a deploy with the plan of a preview of the same environment in them. Without a choice of its
    /// own it is about what the preview was about.
    async fn held_to(
        &self,
        tx: &mut TenantTx,
        plan: Uuid,
        deployment: &str,
        input: &RunInput,
        choices: RunChoices,
    ) -> Result<RunChoices> {
        let refused = |words: &str| Failure::field("plan", words);
        let preview = match tx.run_find(plan).await {
            Err(StoreError::NotFound(_)) => None,
            found => Some(found?).filter(|run| run.deployment == deployment),
        };
        let preview =
            preview.ok_or_else(|| refused("there is no such preview of this deployment"))?;
        if preview.action != RunAction::Preview.as_str() {
            return Err(refused("this run is no preview"));
        }
        if preview.environment != input.environment || preview.rehearsal != input.rehearsal {
            let kind = if preview.rehearsal {
                "a rehearsal of "
            } else {
                ""
            };
            let words = format!("it was made for {kind}{}", preview.environment);
            return Err(Failure::field("plan", words));
        }
        let Some(sealed) = tx.plan_get(&preview.deployment, preview.number).await? else {
            return Err(refused("only a preview that succeeded has a plan"));
        };
        let sealed: SealedPlan = serde_json::from_value(sealed)
            .map_err(|_| refused("it was made by another version; make a new preview"))?;
        let previewed = serde_json::from_value(preview.request["options"]["stacks"].clone());
        Ok(RunChoices {
            components: choices.components.or_else(|| previewed.unwrap_or_default()),
            sealed_plan: Some(sealed),
            ..choices
        })
    }

    /// Queues a run of a deployment that is locked: held to what a server does, to contracts and to rules, and waiting
    /// where people have to agree. Nothing of it stays when the transaction fails.
    pub(crate) async fn queue(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        request: QueueRequest<'_>,
    ) -> Result<StoredRun> {
        let (environment, rehearsal) = (request.environment, request.rehearsal);
        let action = request.action;
        let manifest = request.manifest;
        // The server's own credentials are nobody's.
        if !rehearsal && tx.cloud_credentials(environment.as_str()).await?.is_empty() {
            let message = format!("the tenant has no cloud account for {environment}");
            return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                .with_help(
                    "give one with PUT /api/v1/tenants/{tenant}/cloud-accounts/{name}, or ask with `rehearsal: true`",
                )
                .into());
        }
        let Some(target) = manifest.environments.get(&environment) else {
            return Err(manifest.unknown_environment(environment).into());
        };
        let command = target
            .checks
            .values()
            .any(|check| check.rehearse || !rehearsal);
        if action == RunAction::Deploy && command {
            let message = "the manifest has checks, which are commands, and a server runs none";
            return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                .with_help("take them out, or deploy from a machine of your own")
                .into());
        }
        let governed = GovernedRun {
            manifest,
            environment,
            rehearsal,
            action,
            chosen: request.choices.components.as_deref(),
            to_version: request.choices.to_version,
        };
        let versions = versions::choose(tx, &governed).await?;
        if matches!(action, RunAction::Deploy | RunAction::Preview) {
            wiring::check(&governed, &versions)?;
        }
        self.govern(tx, call, governed, &versions).await?;
        let user = tx.user_get(call.who.user).await.map(|user| user.email);
        let asked = RunRequest {
            action,
            deployment: manifest.metadata.id.clone(),
            environment,
            rehearsal,
            // Somebody of a tenant above is not among this tenant's users.
            user: user.unwrap_or_else(|_| call.who.user.to_string()),
            host: "server".to_owned(),
            choices: request.choices,
            manifest: String::new(),
            manifest_parts: std::collections::BTreeMap::new(),
            plan: String::new(),
        };
        let asked = serde_json::to_value(&asked)
            .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
        let new = NewRun {
            deployment: request.stored.id.clone(),
            action: action.as_str().to_owned(),
            environment: environment.to_string(),
            rehearsal,
            request: asked,
            catalog: versions::record(&versions),
            requested_by: call.who.user,
            trace_id: Some(call.context.trace_id.to_string()),
        };
        let mut run = tx.run_queue(&new).await?;
        if let Some(plan) = request.plan {
            tx.run_held_to(run.id, plan).await?;
            run.plan = Some(plan);
        }
        self.await_approval(tx, call, &mut run, request.stored)
            .await?;
        Ok(run)
    }

    pub async fn run_list(
        &self,
        call: &Call,
        tenant: TenantId,
        mut filter: RunFilter,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredRun>> {
        let permit = self.permit(call, operation::LIST_RUNS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let names = async || tx.run_environments().await;
                filter.environments = self.reached(call, &permit, names).await?;
                let runs = tx.run_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(runs)
            })
            .await
    }

    pub async fn run_get(&self, call: &Call, tenant: TenantId, run: Uuid) -> Result<QueuedRun> {
        let permit = self.permit(call, operation::GET_RUN, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let run = self.run_seen(tx, call, &permit, run).await?;
                let position = self.position(tx, &run).await?;
                self.audit(tx, &call.context, permit.record().on(run.id))
                    .await?;
                Ok(QueuedRun { run, position })
            })
            .await
    }

    /// Events of a run after a place, and the run as it was when they were read.
    pub async fn run_events(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        after: i64,
        limit: u32,
    ) -> Result<(StoredRun, Vec<StoredEvent>)> {
        let permit = self.permit(call, operation::RUN_EVENTS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                // The run first: one that is over has all its events.
                let run = self.run_seen(tx, call, &permit, run).await?;
                let events = tx
                    .events_after(&run.deployment, run.number, after, limit)
                    .await?;
                self.audit(tx, &call.context, permit.record().on(run.id))
                    .await?;
                Ok((run, events))
            })
            .await
    }

    /// A run, if the caller may look into its environment. One elsewhere is not there.
    pub(crate) async fn run_seen(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        permit: &Permit,
        run: Uuid,
    ) -> Result<StoredRun> {
        let found = tx.run_find(run).await?;
        self.seen(call, permit, found)
    }

    pub(crate) fn seen(&self, call: &Call, permit: &Permit, run: StoredRun) -> Result<StoredRun> {
        match self.reaches(call, permit, &run.environment) {
            true => Ok(run),
            false => Err(Failure::not_found()),
        }
    }

    pub(crate) fn ensure_key_in(
        &self,
        call: &Call,
        permit: &Permit,
        key: &str,
        environment: &str,
    ) -> Result<()> {
        let mut resource = permit.resource.clone();
        resource.environment = Some(environment.to_owned());
        if self.has(call, key, &resource) {
            return Ok(());
        }
        let message = format!("this needs the permission {key} in {environment}");
        Err(Failure::new(ErrorCode::NOT_PERMITTED, message))
    }

    pub(crate) async fn position(&self, tx: &mut TenantTx, run: &StoredRun) -> Result<Option<i64>> {
        match run.status.as_str() {
            // It has no place before somebody approved it.
            "queued" if run.approval.is_none() => Ok(Some(tx.run_position(run).await?)),
            _ => Ok(None),
        }
    }
}
