//! Schedules are the server's own, so they go on while no process of ours runs.
//!
//! What was put is kept word for word in the memo of what is started; the rest of the server's schedule is
//! made from it and never read back.

use std::time::Duration;

use futures::future::try_join_all;
use nimbus_core::Error;
use nimbus_workflows::{FlowId, FlowSchedule, ScheduleView, When};
use serde_json::Value;
use temporalio_client::grpc::WorkflowService as _;
use temporalio_client::tonic::{Code, IntoRequest as _};
use temporalio_common::protos::temporal::api::common::v1::{Memo, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::ScheduleOverlapPolicy;
use temporalio_common::protos::temporal::api::schedule::v1::schedule_action::Action;
use temporalio_common::protos::temporal::api::schedule::v1::{
    IntervalSpec, Schedule, ScheduleAction, SchedulePolicies, ScheduleSpec, ScheduleState,
};
use temporalio_common::protos::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    CreateScheduleRequest, DeleteScheduleRequest, DescribeScheduleRequest,
    DescribeScheduleResponse, ListSchedulesRequest, UpdateScheduleRequest,
};
use uuid::Uuid;

use crate::options::unavailable;
use crate::payload::{to_payload, to_payloads, to_value};
use crate::server::{TemporalServer, refused, timestamp};

/// The name of what was put, in the memo.
const MEMO: &str = "nimbus.schedule";
/// A start that was missed longer ago is not made up for.
const CATCH_UP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl TemporalServer {
    pub(crate) async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error> {
        schedule.check()?;
        let translated = self.translate(schedule)?;
        let create = CreateScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.schedule_id(&schedule.name),
            schedule: Some(translated.clone()),
            request_id: Uuid::new_v4().to_string(),
            ..CreateScheduleRequest::default()
        };
        let mut api = self.api();
        match api.create_schedule(create.into_request()).await {
            Ok(_) => return Ok(()),
            Err(status) if status.code() == Code::AlreadyExists => {}
            Err(status) => return Err(refused(&status)),
        }
        let update = UpdateScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.schedule_id(&schedule.name),
            schedule: Some(translated),
            request_id: Uuid::new_v4().to_string(),
            ..UpdateScheduleRequest::default()
        };
        let updated = api.update_schedule(update.into_request()).await;
        updated.map(|_| ()).map_err(|status| refused(&status))
    }

    /// By name. One that was put a moment ago may not be listed yet.
    pub(crate) async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let mut ids = self.schedule_ids().await?;
        ids.sort();
        ids.dedup();
        let views = try_join_all(ids.into_iter().map(|id| self.schedule(id))).await?;
        Ok(views.into_iter().flatten().collect())
    }

    pub(crate) async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        let request = DeleteScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.schedule_id(name),
            ..DeleteScheduleRequest::default()
        };
        let mut api = self.api();
        match api.delete_schedule(request.into_request()).await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == Code::NotFound => Ok(()),
            Err(status) => Err(refused(&status)),
        }
    }

    /// Others may have schedules in the namespace.
    fn schedule_id(&self, name: &str) -> String {
        format!("{}:{name}", self.options.queue)
    }

    async fn schedule_ids(&self) -> Result<Vec<String>, Error> {
        let ours = self.schedule_id("");
        let mut ids = Vec::new();
        let mut token = Vec::new();
        loop {
            let request = ListSchedulesRequest {
                namespace: self.namespace(),
                maximum_page_size: 1000,
                next_page_token: token,
                ..ListSchedulesRequest::default()
            };
            let mut api = self.api();
            let page = api.list_schedules(request.into_request());
            let page = page.await.map_err(|status| refused(&status))?.into_inner();
            let found = page.schedules.into_iter().map(|entry| entry.schedule_id);
            ids.extend(found.filter(|id| id.starts_with(&ours)));
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(ids);
            }
        }
    }

    /// Nothing if it was deleted; the index may be a moment behind.
    async fn schedule(&self, schedule_id: String) -> Result<Option<ScheduleView>, Error> {
        let request = DescribeScheduleRequest {
            namespace: self.namespace(),
            schedule_id,
        };
        let mut api = self.api();
        match api.describe_schedule(request.into_request()).await {
            Ok(found) => view(found.into_inner()).map(Some),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(refused(&status)),
        }
    }

    fn translate(&self, schedule: &FlowSchedule) -> Result<Schedule, Error> {
        let put = serde_json::to_value(schedule).map_err(unavailable)?;
        let start = NewWorkflowExecutionInfo {
            // The server adds the time.
            workflow_id: format!("{}at", schedule.id_prefix()),
            workflow_type: Some(WorkflowType {
                name: schedule.flow.clone(),
            }),
            task_queue: Some(self.queue()),
            input: Some(to_payloads(&schedule.input)),
            workflow_task_timeout: self.options.patience.try_into().ok(),
            memo: Some(Memo {
                fields: [(MEMO.to_owned(), to_payload(&put))].into(),
            }),
            ..NewWorkflowExecutionInfo::default()
        };
        Ok(Schedule {
            spec: Some(spec(&schedule.when)),
            action: Some(ScheduleAction {
                action: Some(Action::StartWorkflow(start)),
            }),
            policies: Some(SchedulePolicies {
                overlap_policy: ScheduleOverlapPolicy::Skip.into(),
                catchup_window: CATCH_UP.try_into().ok(),
                ..SchedulePolicies::default()
            }),
            state: Some(ScheduleState {
                paused: schedule.paused,
                ..ScheduleState::default()
            }),
        })
    }
}

fn spec(when: &When) -> ScheduleSpec {
    match when {
        When::Cron { fields, time_zone } => ScheduleSpec {
            cron_string: cron(fields),
            timezone_name: time_zone.clone(),
            ..ScheduleSpec::default()
        },
        When::Every(interval) => ScheduleSpec {
            interval: vec![IntervalSpec {
                interval: Duration::from_secs(interval.as_secs()).try_into().ok(),
                phase: None,
            }],
            ..ScheduleSpec::default()
        },
    }
}

/// In cron, a day of the month and a day of the week are one or the other; to the server they are both.
/// So that is two schedules in one.
fn cron(fields: &str) -> Vec<String> {
    let parts: Vec<_> = fields.split_whitespace().collect();
    match parts[..] {
        [minute, hour, day, month, weekday] if !any(day) && !any(weekday) => vec![
            format!("{minute} {hour} {day} {month} *"),
            format!("{minute} {hour} * {month} {weekday}"),
        ],
        _ => vec![parts.join(" ")],
    }
}

fn any(field: &str) -> bool {
    field == "*" || field == "?"
}

fn view(found: DescribeScheduleResponse) -> Result<ScheduleView, Error> {
    let kept = found.schedule.unwrap_or_default();
    let paused = kept.state.is_some_and(|state| state.paused);
    let Some(Action::StartWorkflow(start)) = kept.action.and_then(|action| action.action) else {
        return Err(unavailable("a schedule starts no workflow"));
    };
    let put = start.memo.and_then(|mut memo| memo.fields.remove(MEMO));
    let put = put.map_or(Ok(Value::Null), |put| to_value(&[put]));
    let put: Result<FlowSchedule, _> = put.and_then(serde_json::from_value);
    let put = put.map_err(|error| unavailable(format!("a schedule is not ours: {error}")))?;
    let info = found.info.unwrap_or_default();
    let next = info.future_action_times.first().filter(|_| !paused);
    let last = info.recent_actions.into_iter().next_back();
    let last = last.and_then(|action| action.start_workflow_result);
    Ok(ScheduleView {
        // Somebody may have paused it with the server's own tools.
        schedule: FlowSchedule { paused, ..put },
        next: next.and_then(|time| timestamp(time.seconds, time.nanos)),
        last: last.map(|run| FlowId::parse(run.workflow_id)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kinds_of_days_are_either_of_them() {
        assert_eq!(cron("0  2 * * *"), ["0 2 * * *"]);
        assert_eq!(cron("0 2 1 * *"), ["0 2 1 * *"]);
        assert_eq!(cron("0 2 * * MON"), ["0 2 * * MON"]);
        assert_eq!(cron("0 2 1 6 MON"), ["0 2 1 6 *", "0 2 * 6 MON"]);
    }
}
