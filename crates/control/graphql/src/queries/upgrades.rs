//! Components that are deployed, what a version would mean for them, and roll-outs.

use async_graphql::{Context, ID, Object};
use nimbus_control_app::{
    DeployedComponent, FleetFilter, InstanceFilter, RowCursor, describe_impact, describe_rollout,
    describe_rollout_detail,
};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ComponentInstanceNode, ImpactNode, RolloutNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct UpgradeQueries;

#[Object]
impl UpgradeQueries {
    /// Components that are deployed, or about to be; in one environment, or of one deployment.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn deployed_components(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        environment: Option<String>,
        deployment_id: Option<String>,
        component: Option<String>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ComponentInstanceNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<Uuid>(pagination)?;
            let limit = page.limit;
            let filter = InstanceFilter {
                deployment: deployment_id,
                environment,
                component,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.instance_list(call, tenant, filter, page).await?;
            let place = |row: &DeployedComponent| row.id.to_string();
            Ok(connection(rows, limit, place, ComponentInstanceNode::from))
        })
        .await
    }

    /// A component that is deployed, or about to be.
    async fn deployed_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<ComponentInstanceNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.instance_get(call, tenant, thing(&id)?).await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// What a version of a component would mean for its instances, in a tenant and all below it. The newest one that can be
    /// used when no version is named.
    #[graphql(complexity = "100 + whole_cost(child_complexity)")]
    async fn component_impact(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        version: Option<i32>,
        environment: Option<String>,
        rehearsal: Option<bool>,
    ) -> FieldResult<Option<ImpactNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let filter = FleetFilter {
                environments: environment.map(|name| vec![name]),
                rehearsal,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.fleet_impact(call, tenant, &name, version, filter);
            Ok(Some(describe_impact(found.await?).into()))
        })
        .await
    }

    /// Roll-outs of components, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn rollouts(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        component: Option<String>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<RolloutNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let mut rows = Vec::new();
            for row in app.rollout_list(call, tenant, component, page).await? {
                let (at, id) = (row.requested_at, row.id);
                rows.push((RowCursor { at, id }.to_string(), describe_rollout(row)?));
            }
            let place = |(place, _): &(String, _)| place.clone();
            Ok(connection(rows, limit, place, |(_, row)| row.into()))
        })
        .await
    }

    /// A roll-out with its instances.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn rollout(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<RolloutNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.rollout_get(call, tenant, thing(&id)?).await?;
            Ok(Some(describe_rollout_detail(found)?.into()))
        })
        .await
    }
}
