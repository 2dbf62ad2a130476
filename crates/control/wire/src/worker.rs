//! Workers on other machines, and what they tell and ask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerAbilities {
    /// `off`, `best_effort` or `strict`: how it keeps programs apart.
    pub sandbox: String,
    /// What its machine lacks for a strict sandbox.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Languages of programs whose runtimes it found.
    #[serde(default)]
    pub languages: Vec<String>,
}

/// A worker, as it said of itself and as it was last heard of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerView {
    pub id: String,
    pub name: String,
    /// `present`, `draining`, `away` or `left`.
    pub status: String,
    pub version: String,
    /// Runs at once.
    pub slots: u32,
    /// Runs that it said it carries out.
    pub running: u32,
    pub abilities: WorkerAbilities,
    pub joined_at: String,
    pub seen_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerList {
    pub items: Vec<WorkerView>,
}

/// A worker that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinWorker {
    /// Of its data directory, the same after a restart.
    pub id: String,
    pub name: String,
    pub version: String,
    pub slots: u32,
    pub abilities: WorkerAbilities,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerBeat {
    /// Runs that it carries out.
    pub running: u32,
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerOrders {
    /// Take no more runs.
    pub drain: bool,
}

/// A worker asks for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeRun {
    /// Customers that have all their places on this worker.
    #[serde(default)]
    pub full: Vec<String>,
}

/// The run that a worker was given, if there was one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenRunView {
    /// The run as its row has it, with `tenant` and `customer`; null when nothing waits.
    pub taken: Option<Value>,
}

/// What a worker asks about the run that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerCall {
    pub tenant: String,
    /// Under which it was taken.
    pub epoch: i64,
    pub call: Value,
}

/// The answer to that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerAnswer {
    pub answer: Value,
}
