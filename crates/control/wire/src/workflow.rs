//! Durable workflows of an installation and the schedules that start some of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One execution of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowEntry {
    /// `run:TENANT:RUN:LIFE`, with `/approval` for the approval of a run, or `schedule:NAME:TIME`.
    pub id: String,
    /// Such as `ComponentDeployWorkflow`.
    pub workflow_type: String,
    /// `running`, `stuck`, `succeeded`, `failed`, `needs_attention` or `cancelled`.
    pub status: String,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed or is stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The code of the failure, with a page in the documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What could not be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<String>,
}

/// Some of them, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowList {
    pub items: Vec<WorkflowEntry>,
    /// What to give as `after` for the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a workflow says to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowAnswer {
    /// Such as `get_deployment_progress`.
    pub query: String,
    pub answer: Value,
}

/// A run that a tenant lets start by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomSchedule {
    pub name: String,
    /// `refresh`, `preview` or `deploy`.
    pub action: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    /// Five fields as cron has them.
    pub cron: String,
    pub time_zone: String,
    pub paused: bool,
    /// In whose name runs are asked for.
    pub requested_by: String,
    /// What the ids of its workflows begin with.
    pub workflow_prefix: String,
    pub updated_at: String,
}

/// A schedule to be made or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSchedule {
    /// `refresh`, `preview` or `deploy`.
    pub action: String,
    pub deployment: String,
    pub environment: String,
    #[serde(default)]
    pub rehearsal: bool,
    /// Five fields as cron has them; two starts lie 15 minutes apart at least.
    pub cron: String,
    /// Such as `Europe/Vienna`; UTC when absent.
    #[serde(default)]
    pub time_zone: Option<String>,
    #[serde(default)]
    pub paused: bool,
}

/// Something that the platform does by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformSchedule {
    pub name: String,
    pub workflow_type: String,
    /// Five fields as cron has them, or `every N s`.
    pub cron: String,
    pub time_zone: String,
    pub paused: bool,
    /// Absent while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
    /// The workflow that it started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformSchedules {
    pub items: Vec<PlatformSchedule>,
}
