//! Landing zones and environments in them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ComponentInstance;

/// A component with the parameters that it is deployed with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneComponent {
    pub component: String,
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

/// A landing zone as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneDraft {
    /// Lower-case letters, digits and `-`. Needed where the path does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// A cloud of the semantic layer.
    pub provider: String,
    /// One of the tenant's cloud accounts; needed before the zone is published.
    #[serde(default)]
    pub account: Option<String>,
    #[serde(default)]
    pub region: String,
    /// Services of the zone itself, which go into its `platform` environment.
    #[serde(default)]
    pub system_services: Vec<ZoneComponent>,
    /// How resolvers are configured for the zone once its services are there, by resolver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolvers: BTreeMap<String, Map<String, Value>>,
}

/// A landing zone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneSummary {
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub region: String,
    pub system_services: Vec<ZoneComponent>,
    /// `draft`, `published` or `retired`.
    pub status: String,
    /// Whether it is the operator's, for everybody.
    pub shared: bool,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
}

/// What environments of a zone have to have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneTemplate {
    pub name: String,
    pub description: String,
    pub mandatory_components: Vec<ZoneComponent>,
    pub updated_at: String,
}

/// A template as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetZoneTemplate {
    #[serde(default)]
    pub description: String,
    pub mandatory_components: Vec<ZoneComponent>,
}

/// A landing zone with its templates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneDetail {
    #[serde(flatten)]
    pub zone: ZoneSummary,
    pub templates: Vec<ZoneTemplate>,
    /// The environment of its own services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<ZoneEnvironment>,
    /// How resolvers are configured for it, each over those before it.
    #[serde(default)]
    pub resolver_configs: Vec<ZoneResolver>,
}

/// The configuration of a resolver for a zone or an environment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneResolver {
    /// Such as `ipam`.
    pub resolver: String,
    /// The tenant that it was made for.
    pub owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    pub config: Map<String, Value>,
}

/// An environment with what is in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneEnvironmentDetail {
    #[serde(flatten)]
    pub environment: ZoneEnvironment,
    /// How resolvers are configured in it, each over those before it.
    pub resolver_scope: Vec<ZoneResolver>,
    /// Components that are deployed in it, or about to be.
    pub instances: Vec<ComponentInstance>,
    /// What you may do with them.
    pub operations: Vec<String>,
}

/// How a zone is published.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishZone {
    /// Deploy its services to a simulated cloud.
    #[serde(default)]
    pub rehearsal: bool,
}

/// An environment to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewZoneEnvironment {
    /// One of the zone's templates; nothing is mandatory without one.
    #[serde(default)]
    pub template: Option<String>,
    /// Deploy to a simulated cloud.
    #[serde(default)]
    pub rehearsal: bool,
}

/// An environment in a landing zone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ZoneEnvironment {
    pub name: String,
    pub zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    pub mandatory_components: Vec<ZoneComponent>,
    /// Whether it is the zone's own.
    pub platform: bool,
    pub rehearsal: bool,
    /// `provisioning`, `configuring`, `active`, `failed`, `deleting` or `deleted`.
    pub status: String,
    /// What its mandatory components are a deployment of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// The run that it waits for, or waited for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}
