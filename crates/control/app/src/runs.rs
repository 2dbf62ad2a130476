//! Runs: asked for, queued, watched, cancelled, paused and gone on with.

use std::collections::BTreeSet;

use nimbus_control_audit::{Actor, AuditRecord};
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    ListPage, NewRun, RowCursor, RunEnd, RunFilter, StoreError, StoredDeployment, StoredEvent,
    StoredRun, TenantTx,
};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::{Manifest, OnFailure, RunAction};
use nimbus_runs::{RehearsalChoice, RunChoices, RunRequest, SealedPlan};
use serde_json::json;
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::approval_binding::require_plan;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::governance::GovernedRun;
use crate::repeat::RequestKey;
use crate::{input, versions, wiring};

/// Most units at once that a caller may ask for.
const MOST_PARALLEL: usize = 32;
/// Most orders that a rehearsal takes, and how long one may be.
const MOST_ORDERS: usize = 20;
const MOST_ORDER_BYTES: usize = 500;
const MOST_LATENCY_MS: u32 = 60_000;
const MOST_MESSAGE_LETTERS: usize = 2_000;
/// Who takes much out of a state without deleting it mends that state.
const REPAIR_STATE: &str = "deployment:state:repair";

/// What a run is asked to do.
#[derive(Clone, Debug, Default)]
pub struct RunInput {
    pub environment: String,
    /// On a simulated cloud.
    pub rehearsal: bool,
    /// Also units that did not change.
    pub force: bool,
    pub parallel: Option<usize>,
    /// Only these; all of them when absent.
    pub components: Option<Vec<String>>,
    /// `automatic`, `rollback`, `hold` or `continue`; automatic when absent.
    pub on_failure: Option<String>,
    /// Skip checking the types of TypeScript programs.
    pub transpile_only: bool,
    /// The version that a rollback returns to.
    pub to_version: Option<u32>,
    /// Whether a rollback goes on without creates of unknown outcome.
    pub forget_creates: bool,
    /// Whether a refresh believes that much of what is recorded is gone.
    pub allow_mass_removal: bool,
    /// The preview whose plan a deploy is held to.
    pub plan: Option<String>,
    /// Why a deploy goes past the gate of the environment before; it is recorded.
    pub skip_gate: Option<String>,
    pub message: Option<String>,
    /// What the simulated cloud of a rehearsal does wrong.
    pub orders: Vec<String>,
    /// Milliseconds that its calls take.
    pub latency_ms: Option<u32>,
}

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

/// Whether a text is an order for a simulated cloud.
pub type OrderCheck = fn(&str) -> nimbus_core::Result<()>;

/// What somebody wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSignal {
    Cancel,
    Pause,
    Resume {
        /// Somebody has looked for creates of unknown outcome, in vain.
        forget_creates: bool,
    },
}

impl RunSignal {
    fn operation(self) -> Operation {
        match self {
            Self::Cancel => operation::CANCEL_RUN,
            Self::Pause => operation::PAUSE_RUN,
            Self::Resume { .. } => operation::RESUME_RUN,
        }
    }
}

impl App {
    /// From now on orders for simulated clouds are read with this before a run is queued. The first one stays.
    pub fn check_orders_with(&self, check: OrderCheck) {
        // An error is a server that has one already.
        let _ = self.inner.orders.set(check);
    }

    /// Refuses orders that the run itself could not read. They come in one line each.
    fn check_orders(&self, input: &RunInput) -> Result<()> {
        let Some(check) = self.inner.orders.get() else {
            return Ok(());
        };
        for (number, order) in input.orders.iter().enumerate() {
            if let Err(error) = check(order) {
                let words = error.to_string().replace('\n', " ");
                return Err(Failure::field(format!("orders[{number}]"), words));
            }
        }
        Ok(())
    }

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
        filter: RunFilter,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredRun>> {
        let permit = self.permit(call, operation::LIST_RUNS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
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

    /// Cancels, pauses or goes on with a run.
    pub async fn run_signal(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        signal: RunSignal,
    ) -> Result<QueuedRun> {
        let permit = self.permit(call, signal.operation(), tenant).await?;
        let changed = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.run_lock(run).await?;
                self.ensure_may_change(call, &permit, &found)?;
                match decide(&found, signal)? {
                    Wanted::Wish(wish) => tx.run_wish(run, wish).await?,
                    Wanted::Row(end) => {
                        tx.run_set(run, &end).await?;
                        if let Some(approval) = found.approval
                            && end.status == "ended"
                        {
                            self.approval_withdraw(tx, call, approval).await?;
                        }
                    }
                    Wanted::Nothing => {}
                }
                let run = tx.run_find(run).await?;
                let position = self.position(tx, &run).await?;
                let record = permit
                    .record()
                    .on(run.id)
                    .before(json!({"status": found.status}))
                    .after(json!({"status": run.status, "wish": run.wish}));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(QueuedRun { run, position })
            })
            .await?;
        self.inner.wakeup.notify_one();
        self.flow_hears(tenant, changed.run.id);
        Ok(changed)
    }

    /// Asks a run to end because its workflow was cancelled where workflows run. One that has ended, or is gone, stays.
    pub(crate) async fn run_stopped_with_flow(&self, tenant: TenantId, run: Uuid) -> Result<()> {
        let stopped = self.inner.store.tenant_tx(tenant, async |tx| {
            let found = tx.run_lock(run).await?;
            let wanted = match decide(&found, RunSignal::Cancel) {
                Ok(wanted) => wanted,
                // It is over.
                Err(_) => return Ok(()),
            };
            match wanted {
                Wanted::Wish(wish) => tx.run_wish(run, wish).await?,
                Wanted::Row(end) => tx.run_set(run, &end).await?,
                Wanted::Nothing => {}
            }
            let record = AuditRecord::new(Actor::system(), "runs.cancel", "runs")
                .on(run)
                .before(json!({"status": found.status}))
                .after(json!({"reason": "its workflow was cancelled"}));
            let now = jiff::Timestamp::now();
            tx.audit_append(&self.inner.keys.audit, now, record).await?;
            Ok::<_, Failure>(())
        });
        match stopped.await {
            Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => Ok(()),
            ended => ended,
        }
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

    /// Whoever stops a run or lets it go on could have asked for it.
    fn ensure_may_change(&self, call: &Call, permit: &Permit, run: &StoredRun) -> Result<()> {
        let key = match stored_action(run)? {
            RunAction::Destroy => "stack:instance:destroy",
            RunAction::Preview => "component:preview",
            RunAction::Deploy | RunAction::Refresh | RunAction::Rollback => "stack:instance:deploy",
        };
        self.ensure_key_in(call, permit, key, &run.environment)?;
        if takes_much_out(run) {
            self.ensure_key_in(call, permit, REPAIR_STATE, &run.environment)?;
        }
        Ok(())
    }

    fn ensure_key_in(
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

enum Wanted {
    Wish(&'static str),
    Row(RunEnd),
    Nothing,
}

/// What a signal does to a run, as it is now.
fn decide(run: &StoredRun, signal: RunSignal) -> Result<Wanted> {
    let row = |status, wish, result: Option<&str>| {
        Wanted::Row(RunEnd {
            status,
            wish,
            result: result.map(str::to_owned),
            problem: None,
        })
    };
    let goes_on = run.began_at.map(|_| match signal {
        RunSignal::Resume {
            forget_creates: true,
        } => "forget_creates",
        RunSignal::Resume { .. } | RunSignal::Cancel | RunSignal::Pause => "resume",
    });
    let resumable = matches!(run.result.as_deref(), Some("interrupted" | "failed"));
    Ok(match (signal, run.status.as_str()) {
        (RunSignal::Cancel, "queued" | "paused") => row("ended", None, Some("cancelled")),
        (RunSignal::Cancel, "running") => Wanted::Wish("cancel"),
        (RunSignal::Pause, "queued") => row("paused", None, None),
        (RunSignal::Pause, "running") => Wanted::Wish("pause"),
        (RunSignal::Pause, "paused") => Wanted::Nothing,
        (RunSignal::Resume { .. }, "paused") => row("queued", goes_on, None),
        (RunSignal::Resume { .. }, "ended") if resumable && goes_on.is_some() => {
            row("queued", goes_on, None)
        }
        (_, status) => {
            let result = run.result.as_deref().unwrap_or_default();
            let message = format!("the run is {status} {result}");
            return Err(Failure::new(ErrorCode::RUN_NOT_OPEN, message.trim_end()));
        }
    })
}

/// What a run does, as its row says. A row of a newer server is refused rather than taken for a deploy.
fn stored_action(run: &StoredRun) -> Result<RunAction> {
    run.action.parse().map_err(|()| {
        let message = format!("this server does not know what a {} is", run.action);
        Failure::new(ErrorCode::INTERNAL, message)
    })
}

/// Whether a run may take more out of a state than a look usually finds gone.
pub(crate) fn takes_much_out(run: &StoredRun) -> bool {
    run.request["options"]["allow_mass_removal"] == true
}

fn action_of(operation: Operation) -> Result<RunAction> {
    match operation.id {
        "deployments.deploy" | "stacks.deploy" => Ok(RunAction::Deploy),
        "deployments.destroy" => Ok(RunAction::Destroy),
        "deployments.preview" => Ok(RunAction::Preview),
        "deployments.rollback" => Ok(RunAction::Rollback),
        "deployments.refresh" => Ok(RunAction::Refresh),
        other => Err(Failure::new(
            ErrorCode::INTERNAL,
            format!("{other} is no run"),
        )),
    }
}

/// What happens when a unit fails. Only a deploy has something to go back to: what a destroy deleted
/// is gone, and a rollback is on its way back already.
fn on_failure(action: RunAction, asked: Option<&str>) -> Result<OnFailure> {
    if action != RunAction::Deploy {
        return match asked {
            None | Some("hold") => Ok(OnFailure::Hold),
            Some(_) => {
                let words = format!("a {} can only hold when something fails", action.as_str());
                Err(Failure::field("on_failure", words))
            }
        };
    }
    match asked {
        None | Some("automatic") => Ok(OnFailure::Automatic),
        Some("rollback") => Ok(OnFailure::Rollback),
        Some("hold") => Ok(OnFailure::Hold),
        Some("continue") => Ok(OnFailure::Continue),
        Some(_) => {
            let words = "give automatic, rollback, hold or continue";
            Err(Failure::field("on_failure", words))
        }
    }
}

/// The preview that a deploy is to be held to.
fn plan_id(action: RunAction, input: &RunInput) -> Result<Option<Uuid>> {
    let Some(plan) = &input.plan else {
        return Ok(None);
    };
    if action != RunAction::Deploy {
        return Err(Failure::field("plan", "only a deploy is held to a plan"));
    }
    let plan = plan.parse();
    plan.map(Some)
        .map_err(|_| Failure::field("plan", "this is not the id of a preview"))
}

fn choices(action: RunAction, input: &RunInput) -> Result<RunChoices> {
    let parallel = input.parallel.unwrap_or(4);
    if !(1..=MOST_PARALLEL).contains(&parallel) {
        return Err(Failure::field(
            "parallel",
            format!("give 1 to {MOST_PARALLEL}"),
        ));
    }
    if input.forget_creates && action != RunAction::Rollback {
        let words =
            "only a rollback begins without what nobody knows of; a run goes on with its resume";
        return Err(Failure::field("forget_creates", words));
    }
    if input.to_version.is_some() && action != RunAction::Rollback {
        let words = "only a rollback returns to a version";
        return Err(Failure::field("to_version", words));
    }
    if input.allow_mass_removal && action != RunAction::Refresh {
        let words = "only a refresh takes out of a state what is gone";
        return Err(Failure::field("allow_mass_removal", words));
    }
    if input.force && action == RunAction::Refresh {
        let words = "a refresh looks at every stack as it is";
        return Err(Failure::field("force", words));
    }
    let components = match &input.components {
        None => None,
        Some(names) => {
            let names = names.iter().map(|name| name.parse::<ComponentName>());
            let names = names.collect::<std::result::Result<Vec<_>, _>>();
            let names = names.map_err(|error| Failure::field("stacks", error.to_string()))?;
            if names.is_empty() {
                let words = "name one at least, or leave it out for all of them";
                return Err(Failure::field("stacks", words));
            }
            let different: BTreeSet<&ComponentName> = names.iter().collect();
            if different.len() < names.len() {
                return Err(Failure::field("stacks", "name each of them once"));
            }
            Some(names)
        }
    };
    Ok(RunChoices {
        force: input.force,
        parallel,
        on_failure: on_failure(action, input.on_failure.as_deref())?,
        components,
        to_version: input.to_version,
        forget_creates: input.forget_creates,
        allow_mass_removal: input.allow_mass_removal,
        typecheck: !input.transpile_only,
        message: message(input)?,
        skip_gate: skip_gate(action, input)?,
        rehearsal: told_cloud(input)?,
        ..RunChoices::default()
    })
}

/// What somebody says of a run. It comes with every list of runs.
fn message(input: &RunInput) -> Result<Option<String>> {
    let said = input.message.as_deref();
    said.map(|text| input::text("message", text, MOST_MESSAGE_LETTERS))
        .transpose()
}

/// Why a deploy goes past a gate. A reason that says nothing is none.
fn skip_gate(action: RunAction, input: &RunInput) -> Result<Option<String>> {
    let Some(reason) = input.skip_gate.as_deref() else {
        return Ok(None);
    };
    if action != RunAction::Deploy {
        let words = "only a deploy has a gate before it";
        return Err(Failure::field("skip_gate", words));
    }
    if reason.trim().is_empty() {
        return Err(Failure::field("skip_gate", "say why"));
    }
    input::text("skip_gate", reason, MOST_MESSAGE_LETTERS).map(Some)
}

/// What a simulated cloud is told. Real ones take no orders.
fn told_cloud(input: &RunInput) -> Result<RehearsalChoice> {
    let has_orders = !input.orders.is_empty() || input.latency_ms.is_some();
    if has_orders && !input.rehearsal {
        let message = "only the simulated cloud of a rehearsal takes orders";
        return Err(Failure::field("orders", message));
    }
    if input.orders.len() > MOST_ORDERS {
        return Err(Failure::field(
            "orders",
            format!("give up to {MOST_ORDERS}"),
        ));
    }
    if let Some(long) = input
        .orders
        .iter()
        .position(|order| order.len() > MOST_ORDER_BYTES)
    {
        let field = format!("orders[{long}]");
        return Err(Failure::field(
            field,
            format!("it has more than {MOST_ORDER_BYTES} bytes"),
        ));
    }
    if input.latency_ms.is_some_and(|time| time > MOST_LATENCY_MS) {
        return Err(Failure::field(
            "latency_ms",
            format!("give 0 to {MOST_LATENCY_MS}"),
        ));
    }
    Ok(RehearsalChoice {
        more_orders: input.orders.clone(),
        latency: input.latency_ms.map(|time| f64::from(time) / 1000.0),
        ..RehearsalChoice::default()
    })
}
