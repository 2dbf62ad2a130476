//! A run as lists and answers have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub id: String,
    /// `R0001`: counted within the deployment.
    pub number: String,
    pub deployment: String,
    pub environment: String,
    /// `deploy`, `destroy`, `preview`, `rollback` or `refresh`.
    pub action: String,
    pub rehearsal: bool,
    /// `queued`, `running`, `paused` or `ended`.
    pub status: String,
    /// How many runs of the tenant come before it, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// `succeeded`, `failed`, `interrupted`, `rolled_back`, `needs_attention` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it could not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<RunProblem>,
    /// What somebody wants of it: `cancel`, `pause`, `resume` or `forget_creates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<String>,
    pub requested_by: String,
    /// The name by which who asked is known, such as an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The preview whose plan it is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The approval that it waits for, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// What happens when a unit fails: `automatic`, `rollback`, `hold` or `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Why it was deployed although the environment before was not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_gate: Option<String>,
    pub queued_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The number of its newest event.
    pub last_seq: i64,
    pub links: RunLinks,
}

/// Why a run could not go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunProblem {
    /// `NIM-0880`; its page is in the documentation.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLinks {
    #[serde(rename = "self")]
    pub this: String,
    pub detail: String,
    pub events: String,
    /// A WebSocket.
    pub progress: String,
    pub log: String,
    pub cancel: String,
    pub deployment: String,
}
