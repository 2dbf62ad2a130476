//! Deployments, their environments and versions, and what is asked of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// A deployment, without its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deployment {
    pub id: String,
    pub organization: String,
    pub project: String,
    pub template: String,
    /// Counts changes of the manifest; also the `ETag`.
    pub revision: i64,
    pub created_by: String,
    pub created_at: String,
    pub updated_at: String,
    /// When it was taken out of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
    /// How many stacks its manifest switches on.
    #[serde(default)]
    pub stacks: usize,
    /// Environments that are switched on, in the order of the manifest.
    #[serde(default)]
    pub environments: Vec<String>,
}

/// What a deployment is made from: a template and values for it, or a manifest as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeployment {
    /// `D` and up to 15 capital letters and digits; made from the time when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default)]
    pub organization: String,
    #[serde(default)]
    pub project: String,
    #[serde(default)]
    pub domain: String,
    /// `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Account of each environment.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// Variables of the template.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Also stacks that the template leaves off.
    #[serde(default)]
    pub all_stacks: bool,
    /// A whole manifest, in YAML, which says all of this itself; give nothing else with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// A manifest as it is written, in YAML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestText {
    pub manifest: String,
}

/// All environments of a deployment, in the order of its manifest. They are as many as that names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environments {
    pub items: Vec<Environment>,
}

/// One environment of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    pub name: String,
    pub enabled: bool,
    pub account: String,
    pub region: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<Run>,
    /// Its current version, where `rehearsal` was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Who is changing it now, where `rehearsal` was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_by: Option<String>,
    /// Where its stacks stand, where `rehearsal` was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackStanding>,
}

/// Where a stack of an environment stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackStanding {
    pub name: String,
    /// `deployed`, `not_deployed`, `rolled_back`, `incomplete` or `drifted`.
    pub state: String,
    pub resources: u64,
    /// What its last run took.
    pub seconds: u64,
    /// Its state's number in the stack's own history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<usize>,
}

/// A version of an environment, to which a rollback can return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentVersion {
    pub version: u32,
    /// The run that left it, such as `R0003`.
    pub run: String,
    /// `deploy`, `destroy` or `rollback`.
    pub kind: String,
    pub at: String,
    pub user: String,
    /// State of each unit: its number in the unit's own history.
    pub units: BTreeMap<String, usize>,
}

/// The gates of a deployment's environments, in the order of its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentGates {
    pub items: Vec<EnvironmentGate>,
}

/// What has to be true of an environment before the next one follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentGate {
    pub environment: String,
    pub items: Vec<GateStanding>,
}

/// An item of a gate and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateStanding {
    /// Such as `load-tests`.
    pub item: String,
    pub done: bool,
    /// Who or what says so, or what is missing.
    pub note: String,
}

/// Somebody says that an item of a gate is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignGate {
    /// Who looked at what.
    #[serde(default)]
    pub note: String,
    /// In the gate of rehearsals.
    #[serde(default)]
    pub rehearsal: bool,
}

/// What a run is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    pub environment: String,
    /// On a simulated cloud: nothing real is touched.
    #[serde(default)]
    pub rehearsal: bool,
    /// Also stacks that did not change.
    #[serde(default)]
    pub force: bool,
    /// So many stacks at once, 1 to 32; 4 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// Only these; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Vec<String>>,
    /// `automatic`, `rollback`, `hold` or `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Skip checking the types of TypeScript programs.
    #[serde(default)]
    pub transpile_only: bool,
    /// The version that a rollback returns to; the one before when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<u32>,
    /// Of a rollback: creates of unknown outcome were looked for in the cloud, in vain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forget_creates: bool,
    /// Of a refresh: believe it when much of what is recorded is gone. It needs `deployment:state:repair`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_mass_removal: bool,
    /// The id of a preview that succeeded: the deploy does what it showed, or nothing if anything moved since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Deploy although the environment before is not ready, for this reason. It is recorded with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_gate: Option<String>,
    /// Why, in your words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of a rehearsal: what the simulated cloud does wrong, such as `on: create, type: aws:s3/bucket:Bucket, do: fail`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<String>,
    /// Of a rehearsal: milliseconds that every call of the simulated cloud takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u32>,
}
