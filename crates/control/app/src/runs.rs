//! Runs: asked for, queued, watched, cancelled, paused and gone on with.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    ListPage, NewRun, RowPlace, RunEnd, RunFilter, StoredEvent, StoredRun, TenantTx,
};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs::{RunChoices, RunRequest};
use serde_json::json;
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::repeat::RequestKey;

/// Most units at once that a caller may ask for.
const MOST_PARALLEL: usize = 32;

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
    pub message: Option<String>,
}

/// A run, and how many of the tenant's runs come before it while it waits.
#[derive(Clone, Debug)]
pub struct QueuedRun {
    pub run: StoredRun,
    pub position: Option<i64>,
}

/// What somebody wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSignal {
    Cancel,
    Pause,
    Resume,
}

impl RunSignal {
    fn operation(self) -> Operation {
        match self {
            Self::Cancel => operation::CANCEL_RUN,
            Self::Pause => operation::PAUSE_RUN,
            Self::Resume => operation::RESUME_RUN,
        }
    }
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
                // The server's own credentials are nobody's.
                if !input.rehearsal
                    && tx.cloud_credentials(environment.as_str()).await?.is_empty()
                {
                    let message = format!("the tenant has no cloud account for {environment}");
                    return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                        .with_help(
                            "give one with PUT /api/v1/tenants/{tenant}/cloud-accounts/{name}, or ask with `rehearsal: true`",
                        )
                        .into());
                }
                // Locked, for runs are numbered within a deployment.
                let stored = tx.deployment_lock(deployment).await?;
                let manifest = read_manifest(&stored.manifest)?;
                let Some(target) = manifest.environments.get(&environment) else {
                    return Err(manifest.unknown_environment(environment).into());
                };
                let command = target
                    .checks
                    .values()
                    .any(|check| check.rehearse || !input.rehearsal);
                if action == RunAction::Deploy && command {
                    let message =
                        "the manifest has checks, which are commands, and a server runs none";
                    return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                        .with_help("take them out, or deploy from a machine of your own")
                        .into());
                }
                let user = tx.user_get(call.who.user).await.map(|user| user.email);
                let request = RunRequest {
                    action,
                    deployment: manifest.metadata.id.clone(),
                    environment,
                    rehearsal: input.rehearsal,
                    // Somebody of a tenant above is not among this tenant's users.
                    user: user.unwrap_or_else(|_| call.who.user.to_string()),
                    host: "server".to_owned(),
                    choices: choices.clone(),
                    manifest: String::new(),
                    manifest_parts: std::collections::BTreeMap::new(),
                    plan: String::new(),
                };
                let request = serde_json::to_value(&request)
                    .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
                let new = NewRun {
                    deployment: stored.id,
                    action: action.as_str().to_owned(),
                    environment: environment.to_string(),
                    rehearsal: input.rehearsal,
                    request,
                    requested_by: call.who.user,
                };
                let run = tx.run_queue(&new).await?;
                let position = self.position(tx, &run).await?;
                let answer = json!({"run": run.id.to_string()});
                self.keep_answer(tx, call, operation, key.as_ref(), &answer)
                    .await?;
                let record = permit.record().on(&run.deployment).after(json!({
                    "run": run.id.to_string(),
                    "environment": run.environment,
                    "rehearsal": run.rehearsal,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(QueuedRun { run, position })
            })
            .await?;
        // After the commit: a worker that looks sooner would find nothing.
        self.inner.bell.notify_one();
        Ok(queued)
    }

    pub async fn run_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: RunFilter,
        page: ListPage<RowPlace>,
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
                    Wanted::Row(end) => tx.run_set(run, &end).await?,
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
        self.inner.bell.notify_one();
        Ok(changed)
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
        let key = match run.action.as_str() {
            "destroy" => "stack:instance:destroy",
            "preview" => "component:preview",
            _ => "stack:instance:deploy",
        };
        let mut resource = permit.resource.clone();
        resource.environment = Some(run.environment.clone());
        if self.has(call, key, &resource) {
            return Ok(());
        }
        let message = format!("this needs the permission {key} in {}", run.environment);
        Err(Failure::new(ErrorCode::NOT_PERMITTED, message))
    }

    pub(crate) async fn position(&self, tx: &mut TenantTx, run: &StoredRun) -> Result<Option<i64>> {
        match run.status.as_str() {
            "queued" => Ok(Some(tx.run_position(run).await?)),
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
    let goes_on = run.began_at.map(|_| "resume");
    let resumable = matches!(run.result.as_deref(), Some("interrupted" | "failed"));
    Ok(match (signal, run.status.as_str()) {
        (RunSignal::Cancel, "queued" | "paused") => row("ended", None, Some("cancelled")),
        (RunSignal::Cancel, "running") => Wanted::Wish("cancel"),
        (RunSignal::Pause, "queued") => row("paused", None, None),
        (RunSignal::Pause, "running") => Wanted::Wish("pause"),
        (RunSignal::Pause, "paused") => Wanted::Nothing,
        (RunSignal::Resume, "paused") => row("queued", goes_on, None),
        (RunSignal::Resume, "ended") if resumable && goes_on.is_some() => {
            row("queued", goes_on, None)
        }
        (_, status) => {
            let result = run.result.as_deref().unwrap_or_default();
            let message = format!("the run is {status} {result}");
            return Err(Failure::new(ErrorCode::RUN_NOT_OPEN, message.trim_end()));
        }
    })
}

fn action_of(operation: Operation) -> Result<RunAction> {
    match operation.id {
        "deployments.deploy" | "stacks.deploy" => Ok(RunAction::Deploy),
        "deployments.destroy" => Ok(RunAction::Destroy),
        "deployments.preview" => Ok(RunAction::Preview),
        "deployments.rollback" => Ok(RunAction::Rollback),
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

fn choices(action: RunAction, input: &RunInput) -> Result<RunChoices> {
    let parallel = input.parallel.unwrap_or(4);
    if !(1..=MOST_PARALLEL).contains(&parallel) {
        return Err(Failure::field(
            "parallel",
            format!("give 1 to {MOST_PARALLEL}"),
        ));
    }
    let components = match &input.components {
        None => None,
        Some(names) => {
            let names = names.iter().map(|name| name.parse::<ComponentName>());
            let names = names.collect::<std::result::Result<Vec<_>, _>>();
            Some(names.map_err(|error| Failure::field("stacks", error.to_string()))?)
        }
    };
    Ok(RunChoices {
        force: input.force,
        parallel,
        on_failure: on_failure(action, input.on_failure.as_deref())?,
        components,
        to_version: input.to_version,
        typecheck: !input.transpile_only,
        message: input.message.clone(),
        ..RunChoices::default()
    })
}
