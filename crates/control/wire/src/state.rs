//! What was deployed: resources and outputs of units.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an environment of a deployment consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentState {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub units: Vec<UnitStateView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitStateView {
    pub unit: String,
    /// The name of its Pulumi stack.
    pub stack: String,
    pub modified_at: String,
    pub resources: Vec<ResourceView>,
}

/// A resource as the state has it, without its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceView {
    pub urn: String,
    #[serde(rename = "type")]
    pub type_: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    pub custom: bool,
    pub protect: bool,
    /// It was read and belongs to somebody else.
    pub external: bool,
}

/// Outputs of an environment, by unit. A secret is `{"secret": true}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentOutputs {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub units: BTreeMap<String, BTreeMap<String, Value>>,
}

/// States of an environment in the official format, by unit, for `pulumi stack import`. Secrets are encrypted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateExport {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub exported_at: String,
    pub units: BTreeMap<String, Value>,
}
