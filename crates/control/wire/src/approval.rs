//! Which environments need approval, runs that wait for it, and decisions on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Somebody who may decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepApprover {
    /// The id of a user.
    User(String),
    /// The id of a group: anybody who is in it when they decide.
    Group(String),
}

/// How many of the approvers have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepNeed {
    Any,
    /// Each of them; of a group, one of its members.
    All,
    /// So many different people.
    Quorum(u32),
}

/// One step of a policy. All have to be approved, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyStep {
    /// What people call it, such as `security`.
    pub name: String,
    pub approvers: Vec<StepApprover>,
    pub needs: StepNeed,
    /// How long they have, up to ninety days.
    pub timeout_seconds: u64,
    /// Who may decide as well when the time is over, with as much time again. With nobody here the request expires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalate_to: Vec<StepApprover>,
}

/// A policy to be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetApprovalPolicy {
    pub steps: Vec<PolicyStep>,
    /// Whether whoever asks may decide as well, where they are an approver.
    #[serde(default)]
    pub own_requests: bool,
    /// Whether runs on a simulated cloud need approval as well.
    #[serde(default)]
    pub rehearsals: bool,
}

/// Who has to agree before a run changes an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPolicy {
    /// Its name, or `*` for all that have no policy of their own.
    pub environment: String,
    pub steps: Vec<PolicyStep>,
    pub own_requests: bool,
    pub rehearsals: bool,
    pub set_by: String,
    pub set_at: String,
}

/// A run that waits for people, or waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub id: String,
    pub run: String,
    /// `R0001`: counted within the deployment.
    pub run_number: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    /// `deploy`, `destroy`, `rollback` or `refresh`.
    pub action: String,
    /// The preview whose plan is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// SHA-256 of that plan; of what was asked where there is none.
    pub plan_digest: String,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    pub status: String,
    /// As the policy had them when the run was asked for.
    pub steps: Vec<PolicyStep>,
    pub own_requests: bool,
    /// The name of the step that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Whether others may decide as well, because the first time was over.
    #[serde(default)]
    pub escalated: bool,
    /// Whether a decision of yours would count now.
    #[serde(default)]
    pub yours: bool,
    /// When the time of that step is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Oldest first.
    pub decisions: Vec<ApprovalVote>,
    pub requested_by: String,
    pub requested_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// What somebody decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalVote {
    /// The name of the step.
    pub step: String,
    pub by: String,
    /// Who had asked them to decide in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_user: Option<String>,
    /// `approve` or `reject`.
    pub verdict: String,
    pub comment: String,
    pub at: String,
}

/// What is said with an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantApproval {
    #[serde(default)]
    pub comment: String,
}

/// Why something is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenyApproval {
    pub reason: String,
}

/// Until when somebody decides in one's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetDelegation {
    /// RFC 3339; up to ninety days from now.
    pub until: String,
}

/// Somebody who decides in one's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDelegation {
    pub delegate: String,
    pub until: String,
}
