//! A run as its screen shows it: where every unit stands, what failed first, how long it usually takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Everything about a run up to one of its events, except for its resources and its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetail {
    pub run: Run,
    /// Everything up to this event is in it.
    pub seq: i64,
    /// The server's clock, for durations that count on.
    pub server_time: String,
    /// The address of whoever asked for it, where the tenant knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by_name: Option<String>,
    pub planned_minutes: u64,
    /// Half of the last twelve runs like this one took no longer; absent when there were fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_seconds: Option<u64>,
    /// How often it was started or gone on with.
    pub attempts: u32,
    /// Whether it undoes its work.
    pub undoing: bool,
    /// What made it undo its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Units by layer; a layer needs only those before it.
    pub layers: Vec<Vec<String>>,
    pub units: Vec<RunUnit>,
    pub checks: Vec<RunCheck>,
    pub totals: RunTotals,
    /// What failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// What a person must look at.
    pub attention: Vec<String>,
}

/// One unit of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUnit {
    pub name: String,
    pub layer: usize,
    /// Units of this run that have to be done before it.
    pub needs: Vec<String>,
    pub needed_by: Vec<String>,
    /// `waiting`, `running`, `succeeded`, `skipped`, `failed`, `not_started`, `rolling_back` or `rolled_back`.
    pub status: String,
    /// What the plan says: `run`, `skip`, or `depends` on what comes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Why it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// It could not be rolled back: a person must look.
    pub attention: bool,
    pub planned_minutes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// By operation, once it ended.
    pub changes: BTreeMap<String, u64>,
    /// As far as it has come.
    pub resources: ResourceCounts,
}

/// How many steps on resources there are, by where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceCounts {
    pub total: u64,
    pub planned: u64,
    pub started: u64,
    pub done: u64,
    pub failed: u64,
    /// Those that are done, or planned in a preview, by operation.
    pub by_op: BTreeMap<String, u64>,
}

/// A check of what was deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCheck {
    pub name: String,
    /// `running`, `passed`, `failed`, `warned` or `skipped`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTotals {
    /// By status.
    pub units: BTreeMap<String, u64>,
    pub resources: ResourceCounts,
    pub warnings: u64,
    pub errors: u64,
}

/// What failed first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureCause {
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    pub message: String,
    /// The resource that failed, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<UnitResource>,
}

/// Resources of one unit of a run, in the order in which they were first seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitResources {
    /// Everything up to this event is in it.
    pub seq: i64,
    pub unit: RunUnit,
    pub resources: Vec<UnitResource>,
    /// Give this as `after` for more; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A step on one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitResource {
    pub urn: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub name: String,
    pub op: String,
    /// `planned`, `started`, `done` or `failed`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What it changes: of a plan, and of a run that updates or replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<PropertyRow>,
}

/// One property that a step changes. Values are JSON; secrets are never in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PropertyRow {
    pub path: String,
    /// Absent when it is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Absent when it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Not known before something else was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// It is why the resource has to be replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

/// Part of a run's log, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLogPage {
    pub lines: Vec<RunLogLine>,
    /// Give this as `before` for what came before; absent when there are no lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<i64>,
    /// Give this as `after` for what comes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<i64>,
    /// Whether there are more in the direction that was asked for.
    pub more: bool,
}

/// Something that a program, a provider, a check or the engine had to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLogLine {
    pub seq: i64,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// `debug`, `info`, `warning` or `error`.
    pub level: String,
    pub message: String,
}
