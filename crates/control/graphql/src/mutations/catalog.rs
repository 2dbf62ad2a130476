//! Changes of components, of rules about them, and of the semantic layer.

use std::collections::BTreeMap;

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{
    ComponentContract, ComponentInput, ParameterRules, PublishInput, RuleInput,
    SemanticMappingInput, SemanticTypeInput, operation,
};
use serde_json::{Map, Value};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{
    CloudNode, ComponentNode, ComponentVersionNode, PublishedComponentNode, RuleNode,
    SemanticMappingNode, SemanticTypeNode,
};

#[derive(Default)]
pub(crate) struct CatalogChanges;

/// A component as it is edited.
#[derive(InputObject)]
#[graphql(name = "ComponentInput")]
struct ComponentArgs {
    /// As manifests name it: lower-case letters, digits and `-`.
    name: String,
    #[graphql(default)]
    display_name: String,
    #[graphql(default)]
    description: String,
    /// A cloud of the semantic layer.
    provider: String,
    /// A type of the semantic layer, by its name or an alias.
    semantic_type: String,
    /// `typescript` or `python`.
    language: String,
    /// `inputs` and `outputs` as JSON Schemas of objects, and `resolvers` by input.
    contract: Json<ComponentContract>,
    /// What else its stack template says: priority, dependencies, variables, config, environments, estimate, network.
    settings: Option<Json<Map<String, Value>>>,
    /// Texts by path below its folder, such as `src/index.ts`, as an object.
    files: Json<BTreeMap<String, String>>,
    /// Whether it belongs to the platform; the operator alone has such.
    #[graphql(default)]
    system: bool,
}

impl From<ComponentArgs> for ComponentInput {
    fn from(given: ComponentArgs) -> Self {
        let Json(contract) = given.contract;
        let Json(files) = given.files;
        let settings = given.settings.map(|Json(settings)| settings);
        Self {
            display_name: given.display_name,
            description: given.description,
            provider: given.provider,
            semantic_type: given.semantic_type,
            language: given.language,
            contract,
            settings: settings.unwrap_or_default(),
            files,
            system: given.system,
        }
    }
}

/// How a component is published.
#[derive(InputObject)]
#[graphql(name = "PublishComponentInput")]
struct PublicationArgs {
    /// What changed, for whoever upgrades.
    changelog: String,
    /// Also when somebody who uses the component could not take the new version as they are.
    #[graphql(default)]
    allow_breaking: bool,
    /// How instances get over it, where it breaks the contract of the one before: `in-place`.
    upgrade_workflow: Option<String>,
}

/// A rule about a component.
#[derive(InputObject)]
#[graphql(name = "RuleInput")]
struct GovernanceRuleArgs {
    allowed: bool,
    /// `parameters`, `schema` and `expressions`.
    constraints: Option<Json<ParameterRules>>,
    /// Instances of the tenant and everything below it; any number when absent.
    max_instances: Option<u32>,
    /// Why, for whoever is refused.
    #[graphql(default)]
    reason: String,
}

impl From<GovernanceRuleArgs> for RuleInput {
    fn from(given: GovernanceRuleArgs) -> Self {
        let constraints = given.constraints.map(|Json(constraints)| constraints);
        Self {
            allowed: given.allowed,
            constraints: constraints.unwrap_or_default(),
            max_instances: given.max_instances,
            reason: given.reason,
        }
    }
}

/// A type of the semantic layer.
#[derive(InputObject)]
#[graphql(name = "SemanticTypeInput")]
struct SemanticTypeArgs {
    #[graphql(default)]
    aliases: Vec<String>,
    category: String,
    #[graphql(default)]
    description: String,
}

/// What a type is in a cloud.
#[derive(InputObject)]
#[graphql(name = "SemanticMappingInput")]
struct SemanticMappingArgs {
    /// As the cloud calls it.
    #[graphql(default)]
    names: Vec<String>,
    /// Types of Pulumi resources that are one.
    #[graphql(default)]
    resources: Vec<String>,
    #[graphql(default)]
    note: String,
}

#[Object]
impl CatalogChanges {
    /// Make a component.
    #[graphql(complexity = "100 + child_complexity")]
    async fn create_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: ComponentArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<ComponentNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (operation, name) = (operation::CREATE_COMPONENT, input.name.clone());
            let made = app.component_put(call, operation, tenant, &name, input.into(), None);
            Ok(ComponentNode::new(tenant, made.await?))
        })
        .await
    }

    /// Replace a component's draft, if it is still the one of `revision`.
    #[graphql(complexity = "100 + child_complexity")]
    async fn update_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: ComponentArgs,
        revision: Option<i64>,
    ) -> FieldResult<ComponentNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (operation, name) = (operation::UPDATE_COMPONENT, input.name.clone());
            let put = app.component_put(call, operation, tenant, &name, input.into(), revision);
            Ok(ComponentNode::new(tenant, put.await?))
        })
        .await
    }

    /// Take a component out of the catalog. Instances go on with their versions.
    async fn delete_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.component_delete(call, tenant, &name).await?;
            Ok(true)
        })
        .await
    }

    /// Make a version of a component's draft. It stays as it is from then on.
    #[graphql(complexity = "100 + child_complexity")]
    async fn publish_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: PublicationArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<PublishedComponentNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let input = PublishInput {
                changelog: input.changelog,
                allow_breaking: input.allow_breaking,
                upgrade_workflow: input.upgrade_workflow,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let published = app.component_publish(call, tenant, &name, input).await?;
            Ok(published.into())
        })
        .await
    }

    /// Say of a version that it should not be used any more; without a reason, that it may be again.
    async fn deprecate_component_version(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        version: i32,
        reason: Option<String>,
    ) -> FieldResult<ComponentVersionNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.version_deprecate(call, tenant, &name, version, reason);
            Ok(changed.await?.into())
        })
        .await
    }

    /// Set the rule about a component, or about all of them (`*`), for a tenant and everything below it.
    async fn set_governance_rule(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        component: String,
        input: GovernanceRuleArgs,
    ) -> FieldResult<RuleNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let set = app.governance_put(call, tenant, &component, input.into());
            Ok(RuleNode::new(tenant, set.await?))
        })
        .await
    }

    /// Delete a tenant's own rule about a component.
    async fn delete_governance_rule(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        component: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.governance_delete(call, tenant, &component).await?;
            Ok(true)
        })
        .await
    }

    /// Name a cloud for people.
    async fn put_cloud(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        display_name: String,
    ) -> FieldResult<CloudNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.semantic_cloud_put(call, tenant, &name, &display_name)
                .await?;
            Ok(CloudNode { name, display_name })
        })
        .await
    }

    /// Make or replace a semantic type.
    async fn put_semantic_type(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: SemanticTypeArgs,
    ) -> FieldResult<SemanticTypeNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let input = SemanticTypeInput {
                aliases: input.aliases,
                category: input.category,
                description: input.description,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let put = app.semantic_type_put(call, tenant, &name, input).await?;
            Ok(put.into())
        })
        .await
    }

    /// Delete a semantic type that nothing is bound to.
    async fn delete_semantic_type(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.semantic_type_delete(call, tenant, &name).await?;
            Ok(true)
        })
        .await
    }

    /// Say what a semantic type is in a cloud.
    async fn put_semantic_mapping(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        semantic_type: String,
        cloud: String,
        input: SemanticMappingArgs,
    ) -> FieldResult<SemanticMappingNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let input = SemanticMappingInput {
                names: input.names,
                resources: input.resources,
                note: input.note,
            };
            let place = (semantic_type.as_str(), cloud.as_str());
            let (app, call) = (asked.app(), asked.call()?);
            let put = app.semantic_mapping_put(call, tenant, place, input).await?;
            Ok(put.into())
        })
        .await
    }
}
