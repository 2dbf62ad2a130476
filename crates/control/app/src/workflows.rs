//! The installation's workflows and schedules, for whoever runs it.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_wire::{PlatformSchedule, PlatformSchedules, WorkflowEntry, WorkflowList};
use nimbus_core::{Error, ErrorCode, TenantId};
use nimbus_workflows::{
    Control, FlowFailure, FlowFilter, FlowId, FlowRecord, FlowState, ScheduleView, When,
};
use serde_json::json;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};

/// Which workflows.
#[derive(Clone, Debug, Default)]
pub struct WorkflowQuestion {
    pub workflow_type: Option<String>,
    /// Ids that begin so.
    pub prefix: Option<String>,
    pub ended: Option<bool>,
    pub after: Option<String>,
    pub limit: u32,
}

impl App {
    pub async fn workflow_list(
        &self,
        call: &Call,
        tenant: TenantId,
        question: WorkflowQuestion,
    ) -> Result<WorkflowList> {
        let operation = operation::LIST_WORKFLOWS;
        let permit = self.permit_platform(call, operation, tenant).await?;
        self.record_platform(call, tenant, &permit, None).await?;
        let filter = FlowFilter {
            id_prefix: question.prefix,
            flow: question.workflow_type,
            ended: question.ended,
        };
        let after = question.after.as_deref();
        let page = self
            .flow_control()?
            .list(&filter, after, question.limit)
            .await?;
        Ok(WorkflowList {
            items: page.flows.into_iter().map(entry).collect(),
            next: page.next,
        })
    }

    pub async fn workflow_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: &str,
    ) -> Result<WorkflowEntry> {
        let operation = operation::GET_WORKFLOW;
        let permit = self.permit_platform(call, operation, tenant).await?;
        let Ok(flow) = FlowId::parse(id) else {
            return Err(Failure::not_found());
        };
        self.record_platform(call, tenant, &permit, Some(id))
            .await?;
        match self.flow_control()?.status(&flow).await {
            Err(error) if error.code() == ErrorCode::WORKFLOW_UNKNOWN => Err(Failure::not_found()),
            found => Ok(entry(found?)),
        }
    }

    pub async fn schedule_list(&self, call: &Call, tenant: TenantId) -> Result<PlatformSchedules> {
        let operation = operation::LIST_SCHEDULES;
        let permit = self.permit_platform(call, operation, tenant).await?;
        self.record_platform(call, tenant, &permit, None).await?;
        let all = self.flow_control()?.schedules().await?;
        Ok(PlatformSchedules {
            items: all.into_iter().map(schedule).collect(),
        })
    }

    /// Pauses a schedule or lets it go on. What it started already goes on either way.
    pub async fn schedule_pause(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        paused: bool,
    ) -> Result<PlatformSchedule> {
        let operation = match paused {
            true => operation::PAUSE_SCHEDULE,
            false => operation::RESUME_SCHEDULE,
        };
        let permit = self.permit_platform(call, operation, tenant).await?;
        let control = self.flow_control()?;
        let found = find(control, name).await?;
        if found.schedule.paused == paused {
            return Ok(schedule(found));
        }
        let mut wanted = found.schedule;
        wanted.paused = paused;
        let record = permit
            .record()
            .on(name)
            .before(json!({"paused": !paused}))
            .after(json!({"paused": paused}));
        let store = &self.inner.store;
        store
            .tenant_tx(tenant, async |tx| {
                self.audit(tx, &call.context, record).await
            })
            .await?;
        control.put_schedule(&wanted).await?;
        Ok(schedule(find(control, name).await?))
    }

    /// The installation is the operator's: in another tenant there is none to be seen.
    pub(crate) async fn permit_platform(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
    ) -> Result<Permit> {
        let permit = self.permit(call, operation, tenant).await?;
        match self.inner.store.tenant_find(&[]).await? == tenant {
            true => Ok(permit),
            false => Err(Failure::not_found()),
        }
    }

    async fn record_platform(
        &self,
        call: &Call,
        tenant: TenantId,
        permit: &Permit,
        on: Option<&str>,
    ) -> Result<()> {
        let record = match on {
            Some(id) => permit.record().on(id),
            None => permit.record(),
        };
        let store = &self.inner.store;
        store
            .tenant_tx(tenant, async |tx| {
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    fn flow_control(&self) -> Result<&dyn Control> {
        match self.inner.flows.get() {
            Some(control) => Ok(&*control.0),
            None => {
                let message = "the workflow runtime of this server is not there yet";
                Err(Error::new(ErrorCode::WORKFLOW_RUNTIME, message)
                    .with_help("wait a moment; the server's log says what it waits for")
                    .into())
            }
        }
    }
}

async fn find(control: &dyn Control, name: &str) -> Result<ScheduleView> {
    let all = control.schedules().await?;
    let found = all.into_iter().find(|one| one.schedule.name == name);
    found.ok_or_else(Failure::not_found)
}

fn entry(record: FlowRecord) -> WorkflowEntry {
    let mut entry = WorkflowEntry {
        id: record.id.to_string(),
        workflow_type: record.flow,
        status: String::new(),
        created_at: record.created.to_string(),
        ended_at: record.ended.map(|at| at.to_string()),
        result: None,
        problem: None,
        code: None,
        attention: Vec::new(),
    };
    let mut failed = |failure: FlowFailure| {
        entry.problem = Some(failure.message);
        entry.code = Some(failure.code);
        entry.attention = failure.attention;
    };
    let status = match record.state {
        FlowState::Running => "running",
        FlowState::Stuck(reason) => {
            entry.problem = Some(reason);
            "stuck"
        }
        FlowState::Succeeded(value) => {
            entry.result = Some(value);
            "succeeded"
        }
        FlowState::Failed(failure) => {
            failed(failure);
            "failed"
        }
        FlowState::NeedsAttention(failure) => {
            failed(failure);
            "needs_attention"
        }
        FlowState::Cancelled => "cancelled",
    };
    status.clone_into(&mut entry.status);
    entry
}

fn schedule(view: ScheduleView) -> PlatformSchedule {
    let (cron, time_zone) = match view.schedule.when {
        When::Cron { fields, time_zone } => (fields, time_zone),
        When::Every(time) => (format!("every {} s", time.as_secs()), "UTC".to_owned()),
    };
    PlatformSchedule {
        name: view.schedule.name,
        workflow_type: view.schedule.flow,
        cron,
        time_zone,
        paused: view.schedule.paused,
        next_at: view.next.map(|at| at.to_string()),
        last: view.last.map(|id| id.to_string()),
    }
}
