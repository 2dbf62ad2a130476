//! Landing zones, what environments are made from in them, and environments.

use async_graphql::{ID, Json, SimpleObject};
use nimbus_control_app::{
    EnvironmentTemplate, LandingZone, PlacedComponent, TenantEnvironment, ZoneEnvironmentView,
    ZoneView,
};
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalog::is_others;
use super::{ComponentInstanceNode, ResolverConfigurationNode};
use crate::scalars::{AnyJson, GraphTime, maybe_time};

/// A component with the parameters that it is deployed with.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "PlacedComponent")]
struct PlacedNode {
    component: String,
    parameters: AnyJson,
}

/// A row that another version wrote says less, and not something wrong.
fn placed(stored: Value) -> Vec<PlacedNode> {
    let components: Vec<PlacedComponent> = serde_json::from_value(stored).unwrap_or_default();
    let components = components.into_iter();
    components
        .map(|one| PlacedNode {
            component: one.component,
            parameters: Json(Value::Object(one.parameters)),
        })
        .collect()
}

/// A landing zone: where environments live.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "LandingZone")]
pub(crate) struct ZoneNode {
    name: String,
    display_name: String,
    description: String,
    /// A cloud of the semantic layer.
    provider: String,
    /// The name of a cloud account of the same tenant.
    account: Option<String>,
    region: String,
    /// Services of the zone itself, which are in its `platform` environment.
    system_services: Vec<PlacedNode>,
    /// `draft`, `published` or `retired`.
    status: String,
    /// Whether it is the operator's, for everybody.
    shared: bool,
    updated_at: GraphTime,
    published_at: Option<GraphTime>,
    /// What environments can be made from. Only where one zone is asked for.
    templates: Option<Vec<ZoneTemplateNode>>,
    /// The environment of its own services. Only where one zone of your own is asked for.
    platform: Option<ZoneEnvironmentNode>,
    /// How resolvers are configured for it, each over those before it. Only where one zone is asked for.
    resolver_configs: Option<Vec<ResolverConfigurationNode>>,
}

impl ZoneNode {
    pub(crate) fn new(tenant: TenantId, row: LandingZone) -> Self {
        Self {
            shared: is_others(row.tenant_id, tenant),
            name: row.name,
            display_name: row.display_name,
            description: row.description,
            provider: row.provider,
            account: row.account,
            region: row.region,
            system_services: placed(row.system_services),
            status: row.status,
            updated_at: row.updated_at.into(),
            published_at: maybe_time(row.published_at),
            templates: None,
            platform: None,
            resolver_configs: None,
        }
    }

    pub(crate) fn whole(tenant: TenantId, view: ZoneView) -> Self {
        let templates = view.templates.into_iter();
        let configs = view.resolver_configs.into_iter();
        Self {
            templates: Some(templates.map(ZoneTemplateNode::from).collect()),
            platform: view.platform.map(ZoneEnvironmentNode::from),
            resolver_configs: Some(configs.map(ResolverConfigurationNode::from).collect()),
            ..Self::new(tenant, view.zone)
        }
    }
}

/// What environments of a zone have to have.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ZoneTemplate")]
pub(crate) struct ZoneTemplateNode {
    name: String,
    description: String,
    mandatory_components: Vec<PlacedNode>,
    updated_at: GraphTime,
}

impl From<EnvironmentTemplate> for ZoneTemplateNode {
    fn from(row: EnvironmentTemplate) -> Self {
        Self {
            name: row.name,
            description: row.description,
            mandatory_components: placed(row.mandatory_components),
            updated_at: row.updated_at.into(),
        }
    }
}

/// An environment in a landing zone.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ZoneEnvironment")]
pub(crate) struct ZoneEnvironmentNode {
    id: ID,
    name: String,
    zone: String,
    template: Option<String>,
    mandatory_components: Vec<PlacedNode>,
    /// Whether it is the zone's own.
    platform: bool,
    rehearsal: bool,
    /// `provisioning`, `configuring`, `active`, `failed`, `deleting` or `deleted`.
    status: String,
    /// What its mandatory components are a deployment of.
    deployment_id: Option<String>,
    /// The run that it waits for, or waited for last.
    run_id: Option<ID>,
    created_at: GraphTime,
    updated_at: GraphTime,
    /// How resolvers are configured in it, each over those before it. Only where one environment is asked for.
    resolver_scope: Option<Vec<ResolverConfigurationNode>>,
    /// Components that are deployed in it, or about to be. Only where one environment is asked for.
    instances: Option<Vec<ComponentInstanceNode>>,
    /// What you may do with them. Only where one environment is asked for.
    operations: Option<Vec<String>>,
}

impl From<ZoneEnvironmentView> for ZoneEnvironmentNode {
    fn from(view: ZoneEnvironmentView) -> Self {
        let scope = view.resolver_scope.into_iter();
        let instances = view.instances.into_iter();
        let operations = view.operations.into_iter();
        Self {
            resolver_scope: Some(scope.map(ResolverConfigurationNode::from).collect()),
            instances: Some(instances.map(ComponentInstanceNode::from).collect()),
            operations: Some(operations.map(str::to_owned).collect()),
            ..Self::from(view.environment)
        }
    }
}

impl From<TenantEnvironment> for ZoneEnvironmentNode {
    fn from(row: TenantEnvironment) -> Self {
        Self {
            id: row.id.to_string().into(),
            name: row.name,
            zone: row.zone_name,
            template: row.template,
            mandatory_components: placed(row.mandatory_components),
            platform: row.is_platform,
            rehearsal: row.rehearsal,
            status: row.status,
            deployment_id: row.deployment,
            run_id: row.run.map(|run| run.to_string().into()),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
            resolver_scope: None,
            instances: None,
            operations: None,
        }
    }
}
