//! Entries of the audit trail, the question for them, and what a check of it found.

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(crate) struct AuditEntryBody {
    sequence: u64,
    timestamp: String,
    actor_kind: &'static str,
    user_id: String,
    original_user: Option<String>,
    action: String,
    resource_type: String,
    resource_id: Option<String>,
    outcome: &'static str,
    priority: &'static str,
    old_value: Option<Value>,
    new_value: Option<Value>,
    trace_id: Option<String>,
    ip_address: Option<String>,
    hash: String,
}

impl From<app::AuditEntry> for AuditEntryBody {
    fn from(entry: app::AuditEntry) -> Self {
        let value = |text: Option<&str>| text.and_then(|text| serde_json::from_str(text).ok());
        Self {
            sequence: entry.sequence,
            timestamp: entry.at.to_string(),
            actor_kind: entry.record.actor.kind.as_str(),
            old_value: value(entry.record.old_value()),
            new_value: value(entry.record.new_value()),
            outcome: entry.record.outcome.as_str(),
            priority: entry.record.priority.as_str(),
            hash: entry.hash.to_string(),
            user_id: entry.record.actor.id,
            original_user: entry.record.actor.original,
            action: entry.record.action,
            resource_type: entry.record.resource_type,
            resource_id: entry.record.resource_id,
            trace_id: entry.record.trace_id,
            ip_address: entry.record.ip_address,
        }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditQuery {
    pub(crate) action: Option<String>,
    pub(crate) resource_type: Option<String>,
    pub(crate) resource_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) trace_id: Option<String>,
    /// RFC 3339, included.
    pub(crate) from: Option<String>,
    /// RFC 3339, not included.
    pub(crate) until: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) newest_first: bool,
    pub(crate) limit: Option<u32>,
    /// Of an export: `jsonl` or `csv`.
    pub(crate) format: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditVerdict {
    pub(crate) intact: bool,
    pub(crate) entries: Option<u64>,
    pub(crate) checkpoints: Option<u64>,
    /// How many of the entries are in the archive.
    pub(crate) archived: u64,
    /// What is wrong, and the entry that it shows at.
    pub(crate) fault: Option<String>,
    pub(crate) fault_sequence: Option<u64>,
    /// With which the checkpoints can be verified elsewhere.
    pub(crate) public_key: String,
}
