//! Components, their versions and instances, rules about them, and the semantic layer.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{ComponentFilter, DeployedComponent, StoredComponent, StoredVersion};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{
    CloudNode, ComponentInstanceNode, ComponentNode, ComponentVersionNode, RuleNode,
    SemanticMappingNode, SemanticTypeNode, VersionChangesNode,
};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};

#[derive(Default)]
pub(crate) struct CatalogQueries;

/// Which components.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "ComponentFilter")]
struct ComponentChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// Only those of this cloud.
    provider: Option<String>,
    /// Only those of this semantic type.
    semantic_type: Option<String>,
    /// Only those with this in name or description.
    text: Option<String>,
}

#[Object]
impl CatalogQueries {
    /// Components by name: a tenant's own, and the operator's.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn components(
        &self,
        ctx: &Context<'_>,
        filter: Option<ComponentChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ComponentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = ComponentFilter {
                provider: given.provider,
                semantic_type: given.semantic_type,
                text: given.text,
            };
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.component_list(call, tenant, filter, page).await?;
            let place = |row: &StoredComponent| row.name.clone();
            Ok(connection(rows, limit, place, |row| {
                ComponentNode::new(tenant, row)
            }))
        })
        .await
    }

    /// A component.
    async fn component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<Option<ComponentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.component_get(call, tenant, &name).await?;
            Ok(Some(ComponentNode::whole(tenant, found)))
        })
        .await
    }

    /// Versions of a component, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn component_versions(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ComponentVersionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<i32>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.version_list(call, tenant, &name, page).await?;
            let place = |row: &StoredVersion| row.version.to_string();
            Ok(connection(rows, limit, place, ComponentVersionNode::from))
        })
        .await
    }

    /// A version of a component.
    async fn component_version(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        version: i32,
    ) -> FieldResult<Option<ComponentVersionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.version_get(call, tenant, &name, version).await?;
            Ok(Some(ComponentVersionNode::whole(found)))
        })
        .await
    }

    /// What is different in a version from another one, from the one before when that is absent.
    #[graphql(complexity = "100 + child_complexity")]
    async fn component_version_changes(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        version: i32,
        since: Option<i32>,
    ) -> FieldResult<Option<VersionChangesNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let since = since.unwrap_or_else(|| version.saturating_sub(1));
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.version_difference(call, tenant, &name, since, version);
            Ok(Some(found.await?.into()))
        })
        .await
    }

    /// Where a component is deployed.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn component_instances(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ComponentInstanceNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<Uuid>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.component_instances(call, tenant, &name, page).await?;
            let place = |row: &DeployedComponent| row.id.to_string();
            Ok(connection(rows, limit, place, ComponentInstanceNode::from))
        })
        .await
    }

    /// Every rule about components that holds for a tenant, from the operator's down.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn governance_rules(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<RuleNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().governance_list(asked.call()?, tenant).await?;
            let rows = rows.into_iter();
            Ok(rows.map(|row| RuleNode::new(tenant, row)).collect())
        })
        .await
    }

    /// Clouds that there are.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn clouds(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<CloudNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().semantic_clouds(asked.call()?, tenant).await?;
            Ok(rows.into_iter().map(CloudNode::from).collect())
        })
        .await
    }

    /// What things can be, whatever a cloud calls them.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn semantic_types(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<SemanticTypeNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().semantic_types(asked.call()?, tenant).await?;
            Ok(rows.into_iter().map(SemanticTypeNode::from).collect())
        })
        .await
    }

    /// What each type is in a cloud, or in all of them.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn semantic_mappings(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        provider: Option<String>,
    ) -> FieldResult<Vec<SemanticMappingNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.semantic_mappings(call, tenant, provider).await?;
            Ok(rows.into_iter().map(SemanticMappingNode::from).collect())
        })
        .await
    }

    /// What a resource of a program is, such as `aws:ec2/vpc:Vpc`.
    async fn resource_meaning(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        resource: String,
    ) -> FieldResult<Option<SemanticMappingNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.semantic_classify(call, tenant, &resource).await?;
            Ok(Some(found.into()))
        })
        .await
    }
}
