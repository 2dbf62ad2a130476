//! The types of the public event stream.

use std::collections::BTreeMap;

use nimbus_engine_model::PropertyPath;
use serde::Serialize;
use serde_json::Value;

/// How an operation ended.
pub(super) const SUCCEEDED: &str = "succeeded";
pub(super) const FAILED: &str = "failed";
pub(super) const CANCELED: &str = "canceled";

#[derive(Clone, Debug, Serialize)]
pub(super) struct PublicEvent {
    pub(super) sequence: u64,
    /// Seconds since 1970.
    pub(super) timestamp: i64,
    #[serde(flatten)]
    pub(super) payload: Payload,
}

#[derive(Clone, Debug, Serialize)]
pub(super) enum Payload {
    #[serde(rename = "cancelEvent")]
    Cancel {},
    #[serde(rename = "diagnosticEvent")]
    Diagnostic(DiagnosticEvent),
    #[serde(rename = "preludeEvent")]
    Prelude(PreludeEvent),
    #[serde(rename = "summaryEvent")]
    Summary(SummaryEvent),
    #[serde(rename = "resourcePreEvent")]
    ResourcePre(StepEnvelope),
    #[serde(rename = "resOutputsEvent")]
    ResourceOutputs(StepEnvelope),
    #[serde(rename = "resOpFailedEvent")]
    ResourceFailed(FailedStep),
    #[serde(rename = "policyEvent")]
    Policy(PolicyEvent),
    #[serde(rename = "policyRemediationEvent")]
    PolicyRemediation(PolicyRemediationEvent),
    #[serde(rename = "policyLoadEvent")]
    PolicyLoad {},
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiagnosticEvent {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) urn: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) prefix: &'static str,
    pub(super) message: String,
    pub(super) color: &'static str,
    pub(super) severity: &'static str,
    #[serde(rename = "streamID", skip_serializing_if = "is_zero")]
    pub(super) stream_id: i32,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) ephemeral: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct PreludeEvent {
    pub(super) config: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SummaryEvent {
    pub(super) maybe_corrupt: bool,
    pub(super) duration_seconds: u64,
    pub(super) resource_changes: BTreeMap<&'static str, usize>,
    #[serde(rename = "PolicyPacks")]
    pub(super) policy_packs: BTreeMap<String, String>,
    pub(super) is_preview: bool,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct StepEnvelope {
    pub(super) metadata: StepMetadata,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) planning: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct FailedStep {
    pub(super) metadata: StepMetadata,
    pub(super) status: i32,
    pub(super) steps: i32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepMetadata {
    pub(super) op: &'static str,
    pub(super) urn: String,
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) old: Option<StateMetadata>,
    pub(super) new: Option<StateMetadata>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) diffs: Vec<String>,
    /// `null` when the provider said nothing; empty when it said that nothing differs.
    pub(super) detailed_diff: Option<BTreeMap<String, DiffMetadata>>,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) logical: bool,
    pub(super) provider: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiffMetadata {
    pub(super) diff_kind: &'static str,
    pub(super) input_diff: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateMetadata {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) urn: String,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) custom: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) delete: bool,
    pub(super) id: String,
    pub(super) parent: String,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) protect: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) taint: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) external: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) retain_on_delete: bool,
    pub(super) inputs: serde_json::Map<String, Value>,
    pub(super) outputs: serde_json::Map<String, Value>,
    pub(super) provider: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) init_errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hide_diffs: Vec<PropertyPath>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyEvent {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_urn: String,
    pub(super) message: String,
    pub(super) color: &'static str,
    pub(super) policy_name: String,
    pub(super) policy_pack_name: String,
    pub(super) policy_pack_version: String,
    pub(super) policy_pack_version_tag: String,
    pub(super) enforcement_level: &'static str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyRemediationEvent {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_urn: String,
    pub(super) color: &'static str,
    pub(super) policy_name: String,
    pub(super) policy_pack_name: String,
    pub(super) policy_pack_version: String,
    pub(super) policy_pack_version_tag: String,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) before: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) after: serde_json::Map<String, Value>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}
