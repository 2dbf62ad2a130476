//! Components, rules about them and the semantic layer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a component takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// JSON Schema 2020-12 of an object with a property for each input.
    #[serde(default = "object")]
    pub inputs: Value,
    /// JSON Schema 2020-12 of an object with a property for each output.
    #[serde(default = "object")]
    pub outputs: Value,
    /// Inputs that a resolver answers, by name.
    #[serde(default)]
    pub resolvers: BTreeMap<String, Binding>,
}

fn object() -> Value {
    serde_json::json!({"type": "object"})
}

/// Which resolver answers an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// `ipam`, `naming`, `image_catalog` or `secret`.
    pub resolver: String,
    /// Which of the resolver's outputs.
    pub output: String,
    /// What the resolver is asked with.
    #[serde(default)]
    pub inputs: Map<String, Value>,
}

/// A component as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentDraft {
    /// As manifests name it: lower-case letters, digits and `-`. Needed where the path does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// A cloud of the semantic layer.
    pub provider: String,
    /// A type of the semantic layer, by its name or an alias.
    pub semantic_type: String,
    /// `typescript` or `python`.
    pub language: String,
    pub contract: Contract,
    /// What else its stack template says: priority, dependencies, variables, config, environments, estimate, network.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Texts of its files by path below its folder, such as `src/index.ts`.
    pub files: BTreeMap<String, String>,
    /// Whether it belongs to the platform; the operator alone has such.
    #[serde(default)]
    pub system: bool,
}

/// A component as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CatalogComponent {
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    /// Whether it is the operator's, for everybody.
    pub shared: bool,
    pub system: bool,
    /// The newest version; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    pub revision: i64,
    pub updated_at: String,
}

/// A component with everything that there is of it. Of another's component the draft is not shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentDetail {
    #[serde(flatten)]
    pub component: CatalogComponent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<ComponentDraft>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ComponentVersion>,
}

/// A published version. It stays as it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentVersion {
    pub name: String,
    pub version: i32,
    /// Major when the contract broke somebody's use, minor when it has more, patch otherwise.
    pub semantic_version: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    pub contract: Contract,
    pub settings: Map<String, Value>,
    /// Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
    /// SHA-256 over everything that a deployment is made from.
    pub digest: String,
    pub changelog: String,
    pub changes: Vec<ContractDifference>,
    pub published_at: String,
    pub published_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
    /// How instances get over it, where it breaks the contract of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_workflow: Option<String>,
}

/// Publishes a draft.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishComponent {
    /// What changed, for whoever upgrades.
    pub changelog: String,
    /// Also when somebody who uses the component could not take the new version as they are.
    #[serde(default)]
    pub allow_breaking: bool,
    /// How instances get over it, where it breaks the contract of the one before: `in-place`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_workflow: Option<String>,
}

/// What became of a publication.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PublishedComponent {
    /// False when the newest version is the same already.
    pub created: bool,
    pub version: ComponentVersion,
}

/// Says of a version that it should not be used any more.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeprecateVersion {
    /// Why, and what to use instead; absent takes it back.
    #[serde(default)]
    pub reason: Option<String>,
}

/// One difference between two contracts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractDifference {
    /// `inputs.size`, `outputs.url`, `resolvers.name`.
    pub place: String,
    pub message: String,
    pub breaking: bool,
}

/// A file that is not the same in two versions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: String,
    /// In the unified form.
    pub text: String,
}

/// What is different between two versions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VersionChanges {
    pub from: i32,
    pub to: i32,
    pub breaking: bool,
    pub contract: Vec<ContractDifference>,
    pub files: Vec<ChangedFile>,
}

/// A component of a deployment in an environment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentInstance {
    pub id: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub component: String,
    /// The version that it stays with; absent for a program of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// `pending`, `deploying`, `deployed`, `failed`, `destroying`, `destroyed` or `upgrading`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The run that upgrades it, while that is to come or under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_run: Option<String>,
    /// The version that it goes back to when that run comes to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_from: Option<i32>,
    pub updated_at: String,
}

/// What a rule says of parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// Limits of single parameters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Limits>,
    /// JSON Schema 2020-12 over all parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Expressions that have to be true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<ConstraintExpression>,
}

/// The limits of one parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
}

/// An expression of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstraintExpression {
    /// CEL over `params`, `environment`, `component` and `rehearsal`.
    pub expression: String,
    /// What whoever is refused is told.
    #[serde(default)]
    pub message: String,
}

/// A rule to be set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRule {
    pub allowed: bool,
    #[serde(default)]
    pub constraints: Constraints,
    /// Instances of the tenant and everything below it; any number when absent.
    #[serde(default)]
    pub max_instances: Option<u32>,
    /// Why, for whoever is refused.
    #[serde(default)]
    pub reason: String,
}

/// A rule that holds for a tenant.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GovernanceRule {
    pub id: String,
    /// A component's name, or `*` for all that have no rule of their own at that tenant.
    pub component: String,
    pub allowed: bool,
    pub constraints: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<i32>,
    pub reason: String,
    /// The tenant that it is set for.
    pub tenant: String,
    pub tenant_name: String,
    /// Whether it comes from further up.
    pub inherited: bool,
    pub set_by: String,
    pub set_at: String,
}

/// A cloud.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cloud {
    pub name: String,
    pub display_name: String,
}

/// A cloud's name for people.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetCloud {
    pub display_name: String,
}

/// What a thing is, whatever a cloud calls it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResourceKind {
    pub name: String,
    pub aliases: Vec<String>,
    pub category: String,
    pub description: String,
}

/// A type as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetResourceKind {
    #[serde(default)]
    pub aliases: Vec<String>,
    pub category: String,
    #[serde(default)]
    pub description: String,
}

/// What a type is in a cloud.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KindInCloud {
    pub semantic_type: String,
    pub provider: String,
    /// As the cloud calls it; none where it has nothing of the kind.
    pub names: Vec<String>,
    /// Types of Pulumi resources that are one.
    pub resources: Vec<String>,
    pub note: String,
}

/// What a type is in a cloud, as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetKindInCloud {
    #[serde(default)]
    pub names: Vec<String>,
    #[serde(default)]
    pub resources: Vec<String>,
    #[serde(default)]
    pub note: String,
}
