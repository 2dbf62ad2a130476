//! What a person needs in order to decide on a plan, and what people wrote down meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What of a plan has to be read first, whether it still holds, and what a failure would leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanReview {
    /// Worst first.
    pub risks: Vec<PlanRisk>,
    pub seal: Vec<SealItem>,
    pub forecast: RollbackForecast,
    /// Everything up to this event of the plan is in it.
    pub seq: i64,
}

/// Something that should be read before a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRisk {
    /// The same for the same risk of another plan.
    pub key: String,
    /// `not_planned`, `data`, `delete`, `replace`, `access`, `public` or `unknown`.
    pub kind: String,
    pub unit: String,
    pub title: String,
    pub about: String,
    /// Whether a rollback brings back what was there.
    pub reversible: bool,
    /// How many resources or values it is about.
    pub count: u64,
}

/// One thing that a plan was made from, and whether it is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealItem {
    /// `programs`, `manifest`, `state`, `steps` or `newest`.
    pub kind: String,
    pub name: String,
    /// What it was.
    pub proof: String,
    /// What moved; absent while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
}

/// What would be undone after a failure, and what could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RollbackForecast {
    /// Units that would go back, in the order in which they would.
    pub units: Vec<String>,
    /// Steps whose resource would be a new one, without what was in the old.
    pub one_way: Vec<OneWayStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayStep {
    pub unit: String,
    pub urn: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub name: String,
    /// `delete` or `replace`.
    pub op: String,
    /// Whether something is in it that cannot be made again.
    pub data: bool,
}

/// Who has looked at what in plans of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewMark {
    /// Such as `unit:network` or a risk's key.
    pub item: String,
    /// Of what was looked at: a mark holds where the same would change.
    pub digest: String,
    pub person: String,
    /// Their address, where the tenant knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub at: String,
}

/// That somebody looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMark {
    /// Of what was looked at, up to 100 characters.
    pub digest: String,
}

/// Something that a person has begun to write. Nobody else sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftView {
    pub id: String,
    /// What it will be, such as `deployment`.
    pub kind: String,
    pub content: Value,
    pub updated_at: String,
    /// It is forgotten then, unless it is changed.
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drafts {
    pub items: Vec<DraftView>,
}

/// A draft as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutDraft {
    pub kind: String,
    pub content: Value,
}
