//! What is told live, each kind as its watchers read it.
//!
//! Every one of them has the id that is the same wherever the event is read, and the cursor to come back with.

use async_graphql::{ID, Json, SimpleObject};
use nimbus_control_app::LiveEvent;
use serde_json::Value;

use crate::scalars::{AnyJson, GraphTime};

/// A resource of a tenant changed.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ResourceChangeEvent")]
pub(crate) struct ResourceChangeNode {
    id: ID,
    /// Such as `deployment.updated`.
    #[graphql(name = "type")]
    kind: String,
    tenant_id: ID,
    resource_id: Option<String>,
    resource_type: Option<String>,
    /// What it is now, of what changed.
    changes: AnyJson,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for ResourceChangeNode {
    fn from(event: &LiveEvent) -> Self {
        Self {
            id: event.id.to_string().into(),
            kind: event.kind.clone(),
            tenant_id: event.tenant_id.to_string().into(),
            resource_id: word(event, "resource_id"),
            resource_type: word(event, "resource_type"),
            changes: part(event, "changes"),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

/// A run or a unit went from one state to the next.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "StateChangeEvent")]
pub(crate) struct StateChangeNode {
    id: ID,
    /// `run.status_changed` or `unit.status_changed`.
    #[graphql(name = "type")]
    kind: String,
    tenant_id: ID,
    /// The run's id or the unit's name.
    resource_id: Option<String>,
    deployment: Option<String>,
    environment: Option<String>,
    /// The id of the run in which it happened.
    run: Option<String>,
    /// The state that it is in now.
    status: Option<String>,
    changes: AnyJson,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for StateChangeNode {
    fn from(event: &LiveEvent) -> Self {
        let of_run = event.kind.starts_with("run.");
        let run = if of_run { "resource_id" } else { "run" };
        let status = event.data["changes"]["status"].as_str();
        Self {
            id: event.id.to_string().into(),
            kind: event.kind.clone(),
            tenant_id: event.tenant_id.to_string().into(),
            resource_id: word(event, "resource_id"),
            deployment: word(event, "deployment"),
            environment: word(event, "environment"),
            run: word(event, run),
            status: status.map(str::to_owned),
            changes: part(event, "changes"),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

/// A unit is not as its last run left it.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "DriftEvent")]
pub(crate) struct DriftNode {
    id: ID,
    tenant_id: ID,
    deployment: Option<String>,
    environment: Option<String>,
    /// The component that drifted.
    unit: Option<String>,
    /// The number of the run that found it, such as `R0007`.
    run: Option<String>,
    rehearsal: bool,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for DriftNode {
    fn from(event: &LiveEvent) -> Self {
        Self {
            id: event.id.to_string().into(),
            tenant_id: event.tenant_id.to_string().into(),
            deployment: word(event, "deployment"),
            environment: word(event, "environment"),
            unit: word(event, "resource_id"),
            run: word(event, "run"),
            rehearsal: event.data["rehearsal"].as_bool().unwrap_or_default(),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

/// Something awaits a decision.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ApprovalEvent")]
pub(crate) struct ApprovalNode {
    id: ID,
    tenant_id: ID,
    /// What is to be decided.
    request_id: Option<String>,
    /// What is known of it.
    data: AnyJson,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for ApprovalNode {
    fn from(event: &LiveEvent) -> Self {
        Self {
            id: event.id.to_string().into(),
            tenant_id: event.tenant_id.to_string().into(),
            request_id: word(event, "resource_id"),
            data: Json(event.data.clone()),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

/// Something that a person is notified of.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Notification")]
pub(crate) struct NotificationNode {
    id: ID,
    tenant_id: ID,
    title: Option<String>,
    text: Option<String>,
    /// Everything that it says.
    data: AnyJson,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for NotificationNode {
    fn from(event: &LiveEvent) -> Self {
        Self {
            id: event.id.to_string().into(),
            tenant_id: event.tenant_id.to_string().into(),
            title: word(event, "title"),
            text: word(event, "text"),
            data: Json(event.data.clone()),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

/// Something that happened in a tenant, as Socket.IO tells it.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "TenantEvent")]
pub(crate) struct TenantEventNode {
    id: ID,
    #[graphql(name = "type")]
    kind: String,
    tenant_id: ID,
    data: AnyJson,
    timestamp: GraphTime,
    trace_id: Option<String>,
    /// Give this as `since` to go on after it.
    cursor: String,
}

impl From<&LiveEvent> for TenantEventNode {
    fn from(event: &LiveEvent) -> Self {
        Self {
            id: event.id.to_string().into(),
            kind: event.kind.clone(),
            tenant_id: event.tenant_id.to_string().into(),
            data: Json(event.data.clone()),
            timestamp: GraphTime(event.timestamp.clone()),
            trace_id: event.trace_id.clone(),
            cursor: event.cursor.to_string(),
        }
    }
}

fn word(event: &LiveEvent, name: &str) -> Option<String> {
    event.data[name].as_str().map(str::to_owned)
}

/// What is too large is left out of an event, and what is left out is nothing.
fn part(event: &LiveEvent, name: &str) -> AnyJson {
    match &event.data[name] {
        Value::Null => Json(Value::Object(serde_json::Map::new())),
        some => Json(some.clone()),
    }
}
