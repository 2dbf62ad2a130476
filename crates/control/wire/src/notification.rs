//! What somebody is told in person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that its reader is told in person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    pub id: String,
    /// `approval_required`, `approval_completed`, `run_failed` or `run_needs_attention`; there may be more.
    pub kind: String,
    pub title: String,
    pub text: String,
    /// The approval that it is about, which may be gone, as may everything else that is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    pub created_at: String,
    /// When it was first noted as read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
}

/// How many were noted as read that were not before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadNotifications {
    pub read: u64,
}
