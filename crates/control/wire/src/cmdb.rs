//! Configuration items: what a tenant has, and how one has to do with another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An item: something that a tenant has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationItem {
    pub id: String,
    pub name: String,
    /// The type of a resource, such as `aws:ec2/vpc:Vpc`, `nimbus:unit`, or a class that somebody made.
    pub class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it is in the semantic layer, whatever its cloud calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compartment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_resource_id: Option<String>,
    /// What the cloud says of it, without secrets. Of a unit these are its outputs.
    pub attributes: Map<String, Value>,
    /// Names of attributes that are too large to be kept here; the state has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urn: Option<String>,
    /// SHA-256 of the state in which it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<String>,
    /// `run` or `import`.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Whether it is in a simulated cloud.
    pub rehearsal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// By which imports name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// It is read by a program and managed by somebody else.
    pub external: bool,
    /// `active` or `decommissioned`.
    pub status: String,
    /// The run that changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Counts its changes.
    pub revision: i32,
    /// Whether a search for any word of it finds it; one with very many is found by the first of them.
    pub searched_whole: bool,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decommissioned_at: Option<String>,
}

/// Something that happened to an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemHistoryEntry {
    pub revision: i32,
    /// `created`, `updated`, `decommissioned`, `recommissioned` or `moved`.
    pub change: String,
    /// What is different, by field, with both values.
    pub changes: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub at: String,
}

/// Puts an item into a compartment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveItem {
    /// Its id; null takes the item out of any.
    pub compartment: Option<String>,
}

/// What items can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemClass {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_type: Option<String>,
    /// JSON Schema of what imported items of it say.
    pub attributes: Value,
    /// Which relationships people and imports may begin at its items; every one when it is empty.
    pub relationships: Vec<String>,
    pub description: String,
    /// Whether somebody made or described it.
    pub described: bool,
    pub updated_at: String,
}

/// A class as it is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SetItemClass {
    pub provider: Option<String>,
    pub attributes: Map<String, Value>,
    pub relationships: Vec<String>,
    pub description: String,
}

/// A folder for items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemCompartment {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    pub created_at: String,
}

/// A folder to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddCompartment {
    pub name: String,
    #[serde(default)]
    pub parent: Option<String>,
    /// What it is in its cloud, such as the id of a resource group.
    #[serde(default)]
    pub cloud_id: Option<String>,
    #[serde(default)]
    pub provider: Option<String>,
}

/// One item has to do with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemRelationship {
    pub id: String,
    pub source: String,
    pub target: String,
    /// Such as `contains` or `depends_on`: what the source does to the target.
    pub relationship: String,
    pub attributes: Value,
    /// Who says so: `run`, `import` or `person`.
    pub said_by: String,
    pub created_at: String,
}

/// A relationship to be made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelateItems {
    pub source: String,
    pub target: String,
    pub relationship: String,
    #[serde(default)]
    pub attributes: Map<String, Value>,
}

/// What is around an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemGraph {
    /// Nearest first.
    pub items: Vec<GraphItem>,
    pub relationships: Vec<ItemRelationship>,
    /// Whether this is everything as far as was asked; otherwise ask for more items, or begin further in.
    pub complete: bool,
}

/// An item of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphItem {
    /// How many relationships away.
    pub depth: u32,
    pub item: ConfigurationItem,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CmdbHit {
    /// `compartment`, `class` or `resource`.
    #[serde(rename = "type")]
    pub type_: String,
    pub id: String,
    pub name: String,
    /// The class of a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

/// A file of items to be imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportItems {
    /// `jsonl` or `csv`.
    pub format: String,
    pub content: String,
    /// Only check it.
    #[serde(default)]
    pub dry_run: bool,
}

/// An import that was tried: all of the file was taken, or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportJob {
    pub id: String,
    pub format: String,
    /// `succeeded` or `failed`.
    pub status: String,
    pub dry_run: bool,
    pub created: u64,
    pub updated: u64,
    pub decommissioned: u64,
    pub unchanged: u64,
    /// The first problems, by line.
    pub problems: Vec<LineProblem>,
    /// How many there are.
    pub problem_count: i32,
    pub requested_by: String,
    pub at: String,
}

/// What is wrong with a line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineProblem {
    pub line: u64,
    pub message: String,
}

/// From which state the items of a unit are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitSync {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    /// `*` for all of the environment, where its items could not be recorded at all.
    pub unit: String,
    pub items: i32,
    pub run: String,
    /// Why items are not what the state says, if they are not. The next run makes up for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub synced_at: String,
}
