//! The calls to the server that are about one workflow, and what its answers mean.

use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use nimbus_workflows::{Fail, FlowFailure, FlowId, FlowRecord, FlowState, NewFlow, Started};
use serde_json::Value;
use temporalio_client::grpc::WorkflowService as _;
use temporalio_client::tonic::{Code, IntoRequest as _, Status};
use temporalio_client::{Client, Connection};
use temporalio_common::protos::temporal::api::common::v1::{
    Payloads, WorkflowExecution, WorkflowType,
};
use temporalio_common::protos::temporal::api::enums::v1::{
    HistoryEventFilterType, WorkflowExecutionStatus, WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy, WorkflowTaskFailedCause,
};
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_common::protos::temporal::api::query::v1::WorkflowQuery;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest, QueryWorkflowRequest,
    RequestCancelWorkflowExecutionRequest, SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
};
use uuid::Uuid;

use crate::options::{TemporalOptions, invalid, unavailable};
use crate::payload::{RecordedFailure, read_failure, terminated, to_payloads, to_value};

/// How many events from the end say whether a workflow is stuck.
const RECENT: i32 = 20;

/// The server.
#[derive(Clone)]
pub(crate) struct TemporalServer {
    pub(crate) client: Client,
    pub(crate) options: TemporalOptions,
}

/// The library's client would show the API key.
impl std::fmt::Debug for TemporalServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporalServer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl TemporalServer {
    /// The calls of the server's API, tried again while it is away for a moment.
    pub(crate) fn api(&self) -> Connection {
        self.client.connection().clone()
    }

    pub(crate) fn namespace(&self) -> String {
        self.options.namespace.clone()
    }

    pub(crate) fn queue(&self) -> TaskQueue {
        TaskQueue {
            name: self.options.queue.clone(),
            ..TaskQueue::default()
        }
    }

    pub(crate) async fn check_namespace(&self) -> Result<(), Error> {
        let request = DescribeNamespaceRequest {
            namespace: self.namespace(),
            ..DescribeNamespaceRequest::default()
        };
        let mut api = self.api();
        let found = api.describe_namespace(request.into_request()).await;
        found.map(|_| ()).map_err(|status| refused(&status))
    }

    /// Starts a workflow once.
    pub(crate) async fn start(&self, new: &NewFlow) -> Result<Started, Error> {
        let request = StartWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_id: new.id.to_string(),
            workflow_type: Some(WorkflowType {
                name: new.flow.clone(),
            }),
            task_queue: Some(self.queue()),
            input: Some(to_payloads(&new.input)),
            workflow_task_timeout: self.options.patience.try_into().ok(),
            request_id: Uuid::new_v4().to_string(),
            workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
            workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
            ..StartWorkflowExecutionRequest::default()
        };
        let mut api = self.api();
        match api.start_workflow_execution(request.into_request()).await {
            Ok(_) => Ok(Started::New),
            Err(status) if status.code() == Code::AlreadyExists => self.same(new).await,
            Err(status) => Err(refused(&status)),
        }
    }

    /// Whether what has the name is the same.
    async fn same(&self, new: &NewFlow) -> Result<Started, Error> {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace(),
            execution: Some(execution(&new.id)),
            maximum_page_size: 1,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let mut api = self.api();
        let history = api.get_workflow_execution_history(request.into_request());
        let history = history.await.map_err(|status| about(&new.id, &status))?;
        let events = history.into_inner().history.unwrap_or_default().events;
        let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) =
            events.into_iter().next().and_then(|event| event.attributes)
        else {
            return Err(unavailable("a history does not begin with a start"));
        };
        let flow = started.workflow_type.unwrap_or_default().name;
        if flow == new.flow && value(started.input).as_ref() == Some(&new.input) {
            return Ok(Started::Before);
        }
        Err(FlowRecord::taken(&new.id))
    }

    /// The key makes the server take the same signal only once.
    pub(crate) async fn signal(
        &self,
        id: &FlowId,
        topic: &str,
        payload: &Value,
        key: Option<&str>,
    ) -> Result<(), Error> {
        let key = key.map_or_else(|| Uuid::new_v4().to_string(), |key| format!("key:{key}"));
        let request = SignalWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(execution(id)),
            signal_name: topic.to_owned(),
            input: Some(to_payloads(payload)),
            request_id: key,
            ..SignalWorkflowExecutionRequest::default()
        };
        let mut api = self.api();
        let sent = api.signal_workflow_execution(request.into_request()).await;
        self.unless_ended(id, sent.map(|_| ())).await
    }

    /// Asks whoever executes the workflow. The server refuses what was asked when the workflow does.
    pub(crate) async fn ask(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error> {
        let request = QueryWorkflowRequest {
            namespace: self.namespace(),
            execution: Some(execution(id)),
            query: Some(WorkflowQuery {
                query_type: query.to_owned(),
                ..WorkflowQuery::default()
            }),
            ..QueryWorkflowRequest::default()
        };
        let mut api = self.api();
        match api.query_workflow(request.into_request()).await {
            Ok(answer) => Ok(value(answer.into_inner().query_result)),
            Err(status) if status.code() == Code::InvalidArgument => {
                self.record(id).await.map(|_| None)
            }
            Err(status) => Err(about(id, &status)),
        }
    }

    pub(crate) async fn cancel(&self, id: &FlowId) -> Result<(), Error> {
        let request = RequestCancelWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(execution(id)),
            request_id: Uuid::new_v4().to_string(),
            ..RequestCancelWorkflowExecutionRequest::default()
        };
        let mut api = self.api();
        let asked = api.request_cancel_workflow_execution(request.into_request());
        let asked = asked.await;
        self.unless_ended(id, asked.map(|_| ())).await
    }

    /// To the server, a workflow that has ended is not there; to us, nothing happens to it.
    async fn unless_ended(&self, id: &FlowId, done: Result<(), Status>) -> Result<(), Error> {
        match done {
            Ok(()) => Ok(()),
            Err(status) if status.code() == Code::NotFound => self.record(id).await.map(|_| ()),
            Err(status) => Err(refused(&status)),
        }
    }

    pub(crate) async fn record(&self, id: &FlowId) -> Result<FlowRecord, Error> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.namespace(),
            execution: Some(execution(id)),
        };
        let mut api = self.api();
        let found = api.describe_workflow_execution(request.into_request());
        let found = found
            .await
            .map_err(|status| about(id, &status))?
            .into_inner();
        let info = found.workflow_execution_info.unwrap_or_default();
        let state = if info.status == i32::from(WorkflowExecutionStatus::Running) {
            let again = found
                .pending_workflow_task
                .is_some_and(|task| task.attempt > 1);
            match again {
                true => self.stuck(id).await?,
                false => FlowState::Running,
            }
        } else {
            self.end(id, false).await?.unwrap_or(FlowState::Running)
        };
        Ok(FlowRecord {
            id: id.clone(),
            flow: info.r#type.unwrap_or_default().name,
            ended: info
                .close_time
                .filter(|_| state.is_ended())
                .and_then(|time| timestamp(time.seconds, time.nanos)),
            created: info
                .start_time
                .and_then(|time| timestamp(time.seconds, time.nanos))
                .unwrap_or_default(),
            state,
        })
    }

    /// A task that failed and was not completed since says why.
    async fn stuck(&self, id: &FlowId) -> Result<FlowState, Error> {
        let request = GetWorkflowExecutionHistoryReverseRequest {
            namespace: self.namespace(),
            execution: Some(execution(id)),
            maximum_page_size: RECENT,
            ..GetWorkflowExecutionHistoryReverseRequest::default()
        };
        let mut api = self.api();
        let history = api.get_workflow_execution_history_reverse(request.into_request());
        let history = history
            .await
            .map_err(|status| about(id, &status))?
            .into_inner();
        for event in history.history.unwrap_or_default().events {
            match event.attributes {
                Some(Attributes::WorkflowTaskCompletedEventAttributes(_)) => break,
                Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) => {
                    // Something came while the task was under way; it is simply done again.
                    if failed.cause() == WorkflowTaskFailedCause::UnhandledCommand {
                        break;
                    }
                    let message = failed.failure.unwrap_or_default().message;
                    return Ok(FlowState::Stuck(message));
                }
                _ => {}
            }
        }
        Ok(FlowState::Running)
    }

    /// How a workflow ended; with `wait`, as soon as it does. Nothing: it has not yet.
    pub(crate) async fn end(&self, id: &FlowId, wait: bool) -> Result<Option<FlowState>, Error> {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace(),
            execution: Some(execution(id)),
            wait_new_event: wait,
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let mut request = request.into_request();
        if wait {
            // The server answers with nothing after a while.
            request.set_timeout(Duration::from_secs(70));
        }
        let mut api = self.api();
        let history = api.get_workflow_execution_history(request).await;
        let history = history.map_err(|status| about(id, &status))?.into_inner();
        let events = history.history.unwrap_or_default().events;
        Ok(events
            .into_iter()
            .next_back()
            .and_then(|event| ended(id, event)))
    }
}

fn execution(id: &FlowId) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: id.to_string(),
        run_id: String::new(),
    }
}

fn value(payloads: Option<Payloads>) -> Option<Value> {
    to_value(&payloads.unwrap_or_default().payloads).ok()
}

fn ended(id: &FlowId, event: HistoryEvent) -> Option<FlowState> {
    let failed = |failure| Some(FlowState::ended(Err(Fail::App(failure))));
    match event.attributes? {
        Attributes::WorkflowExecutionCompletedEventAttributes(end) => {
            Some(FlowState::Succeeded(value(end.result).unwrap_or_default()))
        }
        Attributes::WorkflowExecutionCanceledEventAttributes(_) => Some(FlowState::Cancelled),
        Attributes::WorkflowExecutionFailedEventAttributes(end) => {
            match read_failure(&end.failure.unwrap_or_default()) {
                RecordedFailure::Failed(failure) => failed(failure),
                RecordedFailure::Cancelled => Some(FlowState::Cancelled),
                RecordedFailure::Lost
                | RecordedFailure::Terminated
                | RecordedFailure::UnknownStep => failed(terminated(id.as_str())),
            }
        }
        Attributes::WorkflowExecutionTerminatedEventAttributes(_) => {
            failed(terminated(id.as_str()))
        }
        Attributes::WorkflowExecutionTimedOutEventAttributes(_) => {
            let message = format!("{id} was given a time limit in Temporal, and took longer");
            let mut failure = FlowFailure::new(ErrorCode::WORKFLOW_TIMEOUT, message).lasting();
            failure.attention = terminated(id.as_str()).attention;
            failed(failure)
        }
        _ => None,
    }
}

pub(crate) fn timestamp(seconds: i64, nanos: i32) -> Option<Timestamp> {
    Timestamp::new(seconds, nanos).ok()
}

/// An answer to a question about one workflow.
fn about(id: &FlowId, status: &Status) -> Error {
    if status.code() == Code::NotFound && !is_namespace(status) {
        return FlowRecord::unknown(id);
    }
    refused(status)
}

/// A namespace that is not there is no missing workflow.
fn is_namespace(status: &Status) -> bool {
    status.message().starts_with("Namespace")
}

pub(crate) fn refused(status: &Status) -> Error {
    match status.code() {
        Code::InvalidArgument => invalid(format!(
            "the Temporal server refuses it: {}",
            status.message()
        )),
        code => unavailable(format!("{code:?}: {}", status.message())),
    }
}
