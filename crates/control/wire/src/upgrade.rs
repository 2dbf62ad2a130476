//! Upgrades of components: what one would mean, of one instance, and in waves over many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deploys or destroys an instance.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunInstance {
    /// Why, for whoever looks at the run.
    #[serde(default)]
    pub message: Option<String>,
}

/// Upgrades an instance, or previews it with another version.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeInstance {
    /// An upgrade goes to the newest version that can be used when absent; a preview is of the version that it has.
    #[serde(default)]
    pub version: Option<i32>,
    /// Why, for whoever looks at the run.
    #[serde(default)]
    pub message: Option<String>,
}

/// An instance, and whose it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetMember {
    pub id: String,
    pub tenant: String,
    pub tenant_name: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    /// The version that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    pub status: String,
}

/// What a version would mean for an instance.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImpactedInstance {
    #[serde(flatten)]
    pub instance: FleetMember,
    /// Whether it has the version already.
    pub current: bool,
    /// Whether nothing stands in the way.
    pub fits: bool,
    /// It cannot be upgraded as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
    /// There is no way to the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Parameters that do not fit the version's contract.
    pub parameters: Vec<String>,
    /// What takes outputs that change or go.
    pub dependents: Vec<String>,
    /// Rules that would refuse it.
    pub rules: Vec<String>,
    /// Versions on the way that name an upgrade workflow, as `2: in-place`.
    pub workflows: Vec<String>,
}

/// What a version would mean for every instance of a component.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentImpact {
    pub component: String,
    pub to_version: i32,
    /// Instances that can take it.
    pub fit: usize,
    /// Instances that cannot.
    pub unfit: usize,
    /// Instances that have it already.
    pub current: usize,
    pub instances: Vec<ImpactedInstance>,
}

/// Previews of instances with a version that they do not have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewComponent {
    pub version: i32,
    /// Only of these environments; all of them when absent.
    #[serde(default)]
    pub environments: Option<Vec<String>>,
    /// On simulated clouds instead of real ones.
    #[serde(default)]
    pub rehearsal: bool,
}

/// A preview that was asked for, or why it was not.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PreviewedInstance {
    #[serde(flatten)]
    pub instance: FleetMember,
    /// The run, in the tenant of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How instances are divided. One of these, or none of them for a wave for each place in the order of environments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RolloutWaves {
    /// So many in each wave; whatever is left is one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Vec<u32>>,
    /// So much of all of them has been started with each wave, in percent; whatever is left is one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentages: Option<Vec<u8>>,
    /// These environments in each wave; whatever is left is one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environments: Option<Vec<Vec<String>>>,
}

/// A roll-out to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartRollout {
    /// The newest version that can be used when absent.
    pub version: Option<i32>,
    pub waves: RolloutWaves,
    /// So many instances may fail before nothing further starts.
    pub max_failures: u32,
    /// Wait for somebody before each wave but the first.
    pub pause_between_waves: bool,
    /// Only instances of these environments; all of them when absent.
    pub environments: Option<Vec<String>>,
    /// Instances on simulated clouds instead of real ones.
    pub rehearsal: bool,
    /// Leave out instances that cannot take the version, instead of refusing.
    pub skip_unfit: bool,
    /// Only make the plan; it begins when somebody lets it go on.
    pub plan_only: bool,
    /// Why, for whoever looks at it.
    pub message: Option<String>,
}

/// A roll-out as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSummary {
    pub id: String,
    pub component: String,
    pub to_version: i32,
    /// `planned`, `running`, `paused`, `stopped`, `failed` or `succeeded`.
    pub status: String,
    /// The wave that it is at, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Why it waits: `asked` or `between_waves`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<String>,
    pub max_failures: u32,
    pub pause_between_waves: bool,
    pub message: String,
    pub requested_by: String,
    pub requested_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// An instance of a roll-out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RolloutMember {
    /// Counted from 1.
    pub wave: u32,
    pub instance: String,
    pub tenant: String,
    pub tenant_name: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub from_version: i32,
    /// `waiting`, `starting`, `running`, `succeeded`, `failed` or `skipped`.
    pub status: String,
    /// The run, in the tenant of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A roll-out with its instances, by wave.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RolloutDetail {
    #[serde(flatten)]
    pub rollout: RolloutSummary,
    pub waves: u32,
    pub instances: Vec<RolloutMember>,
}
