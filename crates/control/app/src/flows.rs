//! What durable workflows ask of the use cases, and how use cases tell workflows.
//!
//! A row is written first and its workflow is told after the commit, in the background: a runtime that is away keeps
//! nobody from anything. What it did not hear it is told when it is back ([`App::begin_open_flows`]), and every workflow
//! looks at its row by itself once in a while.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_approvals::{ApprovalChain, ApprovalState, Approver};
use nimbus_control_flows::{
    APPROVAL_DECISION, ApprovalStanding, BootstrapInput, BootstrapStanding, ExportedStates,
    PlatformWork, RUN_CHANGED, RemovedRecords, RunFlowInput, RunProgress, RunRows, RunStanding,
    ScheduledRun, ScheduledRunInput, approval_flow_of, new_run_flow,
};
use nimbus_control_store::{
    StoreError, StoredApproval, StoredDecision, StoredRun, TenantEnvironment, TenantTx, WorkTurn,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use nimbus_workflows::{Control, FlowId};
use serde_json::Value;
use tracing::warn;
use uuid::Uuid;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::run_view::resource_counts;

/// The way to workflows.
#[derive(Clone)]
pub(crate) struct FlowControl(pub(crate) Arc<dyn Control>);

impl fmt::Debug for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowControl(..)")
    }
}

impl App {
    /// From now on workflows are told what happens to runs. The first runtime stays.
    pub fn tell_workflows(&self, control: Arc<dyn Control>) {
        // An error is a server that has one already.
        let _ = self.inner.flows.set(FlowControl(control));
    }

    /// Starts the workflow of every run that has not ended and has none: those that were queued while the runtime was
    /// away, and those that a backup brought back. How many runs there were.
    ///
    /// # Errors
    ///
    /// When the database or the runtime does not answer.
    pub async fn begin_open_flows(&self) -> Result<usize> {
        let mut open = 0;
        for WorkTurn { tenant, .. } in self.inner.store.work_turns().await? {
            open += self.begin_flows_of(tenant).await?;
        }
        for tenant in self.inner.store.bootstrap_tenants().await? {
            self.begin_bootstraps_of(tenant).await?;
        }
        Ok(open)
    }

    /// A run's row has changed: its workflow looks at it.
    pub fn flow_hears(&self, tenant: TenantId, run: Uuid) {
        let Some(FlowControl(control)) = self.inner.flows.get().cloned() else {
            return;
        };
        let app = self.clone();
        tokio::spawn(async move {
            if let Err(failure) = app.tell_flow(&*control, tenant, run).await {
                unheard(tenant, &failure);
            }
        });
    }

    pub(crate) fn flow_begins(&self, tenant: TenantId, run: &StoredRun) {
        let Some(FlowControl(control)) = self.inner.flows.get().cloned() else {
            return;
        };
        let run = run.clone();
        tokio::spawn(async move {
            if let Err(failure) = begin(&*control, tenant, &run).await {
                unheard(tenant, &failure);
            }
        });
    }

    /// Several runs of a tenant were queued.
    pub(crate) fn flows_begin(&self, tenant: TenantId) {
        if self.inner.flows.get().is_none() {
            return;
        }
        let app = self.clone();
        tokio::spawn(async move {
            let begun = async {
                app.begin_flows_of(tenant).await?;
                app.begin_bootstraps_of(tenant).await
            };
            if let Err(failure) = begun.await {
                unheard(tenant, &failure);
            }
        });
    }

    async fn begin_flows_of(&self, tenant: TenantId) -> Result<usize> {
        let Some(FlowControl(control)) = self.inner.flows.get() else {
            return Ok(0);
        };
        let store = &self.inner.store;
        let open = store.tenant_tx(tenant, async |tx| tx.runs_all_open().await);
        let open = match open.await {
            // Deleted since.
            Err(StoreError::TenantUnknown) => return Ok(0),
            open => open?,
        };
        for run in &open {
            begin(&**control, tenant, run).await?;
        }
        Ok(open.len())
    }

    /// Starts the workflow of every environment that is on its way and has none.
    async fn begin_bootstraps_of(&self, tenant: TenantId) -> Result<()> {
        let Some(FlowControl(control)) = self.inner.flows.get() else {
            return Ok(());
        };
        let store = &self.inner.store;
        let begun = store.tenant_tx(tenant, async |tx| tx.environments_begun(None).await);
        let begun = match begun.await {
            Err(StoreError::TenantUnknown) => return Ok(()),
            begun => begun?,
        };
        for environment in &begun {
            control
                .start(bootstrap_of(tenant, environment).new_flow()?)
                .await?;
        }
        Ok(())
    }

    async fn tell_flow(&self, control: &dyn Control, tenant: TenantId, run: Uuid) -> Result<()> {
        let store = &self.inner.store;
        let run = store.tenant_tx(tenant, async |tx| tx.run_find(run).await);
        let run = run.await?;
        // One that goes on has another life, and so another workflow.
        if run.status != "ended" {
            begin(control, tenant, &run).await?;
        }
        let id = input_of(tenant, &run).flow_id()?;
        signal(control, &approval_flow_of(&id)?, APPROVAL_DECISION).await?;
        signal(control, &id, RUN_CHANGED).await?;
        let store = &self.inner.store;
        let waiting = store.tenant_tx(tenant, async |tx| tx.environments_begun(Some(run.id)).await);
        for environment in waiting.await? {
            let id = bootstrap_of(tenant, &environment).flow_id()?;
            signal(control, &id, RUN_CHANGED).await?;
        }
        Ok(())
    }
}

fn bootstrap_of(tenant: TenantId, environment: &TenantEnvironment) -> BootstrapInput {
    BootstrapInput {
        tenant,
        environment: environment.id,
        attempt: environment.bootstrap,
    }
}

fn input_of(tenant: TenantId, run: &StoredRun) -> RunFlowInput {
    RunFlowInput {
        tenant,
        run: run.id,
        life: run.life,
    }
}

async fn begin(control: &dyn Control, tenant: TenantId, run: &StoredRun) -> Result<()> {
    let action = if run.upgrades {
        "upgrade"
    } else {
        run.action.as_str()
    };
    if let Some(new) = new_run_flow(action, &input_of(tenant, run))? {
        control.start(new).await?;
    }
    Ok(())
}

/// A workflow that has not begun, or has ended, needs no signal.
async fn signal(control: &dyn Control, id: &FlowId, topic: &str) -> Result<()> {
    match control.signal(id, topic, Value::Null, None).await {
        Err(error) if error.code() == ErrorCode::WORKFLOW_UNKNOWN => Ok(()),
        sent => Ok(sent?),
    }
}

fn unheard(tenant: TenantId, failure: &Failure) {
    let error = failure.error.log_text();
    warn!(%error, %tenant, "a workflow was not told of a run; it looks by itself later");
}

#[async_trait]
impl PlatformWork for App {
    async fn remove_ended_sessions(&self) -> Result<u64, Error> {
        coded(Self::remove_ended_sessions(self).await)
    }

    async fn remove_old_records(&self) -> Result<RemovedRecords, Error> {
        Ok(RemovedRecords {
            notifications: coded(self.remove_read_notifications().await)?,
            deliveries: coded(self.tidy_deliveries().await)?,
            tenants: coded(self.purge_tenants().await)? as u64,
        })
    }

    async fn archive_audit(&self) -> Result<u64, Error> {
        coded(Self::archive_audit(self, Timestamp::now()).await)
    }

    async fn gather_digests(&self) -> Result<u64, Error> {
        coded(Self::gather_digests(self).await)
    }

    async fn export_states(&self) -> Result<ExportedStates, Error> {
        coded(Self::export_states(self).await)
    }

    async fn start_scheduled(
        &self,
        input: &ScheduledRunInput,
        key: &str,
    ) -> Result<ScheduledRun, Error> {
        coded(self.scheduled_start(input, key).await)
    }
}

#[async_trait]
impl RunRows for App {
    async fn run_standing(
        &self,
        tenant: TenantId,
        run: Uuid,
        life: i32,
    ) -> Result<Option<RunStanding>, Error> {
        let store = &self.inner.store;
        let found = store.tenant_tx(tenant, async |tx| {
            let run = tx.run_find(run).await?;
            // It went on before anybody looked how this life ended.
            if run.life != life {
                return Ok(None);
            }
            let progress = match run.began_at {
                Some(_) => Some(progress_of(tx, &run).await?),
                None => None,
            };
            Ok::<_, Failure>(Some(standing(run, progress)))
        });
        match found.await {
            Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => Ok(None),
            found => coded(found),
        }
    }

    async fn approval_standing(
        &self,
        tenant: TenantId,
        approval: Uuid,
    ) -> Result<Option<ApprovalStanding>, Error> {
        let now = Timestamp::now();
        let found = coded(self.approval_looked_at(tenant, approval, now).await)?;
        let Some(found) = found else {
            return Ok(None);
        };
        if found.status != "pending" {
            // Time may have ended the run, or people let it go on.
            self.inner.wakeup.notify_one();
        }
        let left = found.deadline.map(|deadline| {
            let left = deadline.0.duration_since(now).as_secs();
            u64::try_from(left).unwrap_or_default()
        });
        let store = &self.inner.store;
        let decisions = store.tenant_tx(tenant, async |tx| tx.decisions_on(&[approval]).await);
        let decisions = decisions.await.map_err(Error::from)?;
        Ok(Some(ApprovalStanding {
            pending: waited_for(&found, &decisions),
            approved: decisions
                .iter()
                .filter(|one| one.verdict == "approve")
                .map(|one| one.person.to_string())
                .collect(),
            status: found.status,
            seconds_left: left,
        }))
    }

    async fn bootstrap_standing(
        &self,
        tenant: TenantId,
        environment: Uuid,
        attempt: i32,
    ) -> Result<Option<BootstrapStanding>, Error> {
        coded(self.bootstrap_looked_at(tenant, environment, attempt).await)
    }

    async fn configure_resolvers(&self, tenant: TenantId, environment: Uuid) -> Result<(), Error> {
        coded(self.bootstrap_configure(tenant, environment).await)
    }

    async fn stop_run(&self, tenant: TenantId, run: Uuid) -> Result<(), Error> {
        coded(self.run_stopped_with_flow(tenant, run).await)?;
        self.inner.wakeup.notify_one();
        Ok(())
    }
}

/// The approvers of the step that is decided now who have said nothing to it.
fn waited_for(request: &StoredApproval, decisions: &[StoredDecision]) -> Vec<String> {
    let state = serde_json::from_value::<ApprovalState>(request.state.clone());
    let chain = serde_json::from_value::<ApprovalChain>(request.chain.clone());
    let (
        Ok(ApprovalState::Pending {
            step, escalated, ..
        }),
        Ok(chain),
    ) = (state, chain)
    else {
        return Vec::new();
    };
    let Some(step_of) = chain.steps.get(step) else {
        return Vec::new();
    };
    let spoken = |place: usize| {
        let here = decisions
            .iter()
            .filter(|one| usize::try_from(one.step) == Ok(step));
        here.flat_map(|one| &one.covers)
            .any(|covered| usize::try_from(*covered) == Ok(place))
    };
    let own = step_of.approvers.iter().enumerate();
    let own = own.filter(|(place, _)| !spoken(*place)).map(|(_, one)| one);
    let others = step_of.escalate_to.iter().filter(|_| escalated);
    own.chain(others)
        .map(|one| match one {
            Approver::User(user) => format!("user:{user}"),
            Approver::Group(group) => format!("group:{group}"),
        })
        .collect()
}

/// How many resources a run has changed, by its events.
async fn progress_of(tx: &mut TenantTx, run: &StoredRun) -> Result<RunProgress> {
    let counts = resource_counts(tx, run).await?;
    let of = |words: &[&str]| -> u64 {
        let known = words.iter().filter_map(|word| counts.by_op.get(*word));
        known.sum()
    };
    Ok(RunProgress {
        created: of(&["create", "create-replacement", "import"]),
        updated: of(&["update"]),
        deleted: of(&["delete", "delete-replaced"]),
        failed: counts.failed,
        total: counts.total,
    })
}

fn standing(run: StoredRun, progress: Option<RunProgress>) -> RunStanding {
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    RunStanding {
        problem: run
            .problem
            .as_ref()
            .map(|problem| (text(problem, "code"), text(problem, "message"))),
        status: run.status,
        result: run.result,
        approval: run.approval,
        progress,
    }
}

fn coded<T>(done: Result<T>) -> Result<T, Error> {
    done.map_err(|failure| failure.error)
}
