//! Landing zones and environments in them.

use async_graphql::{Context, ID, Object};
use nimbus_control_app::{LandingZone, TenantEnvironment};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ZoneEnvironmentNode, ZoneNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page};

#[derive(Default)]
pub(crate) struct ZoneQueries;

#[Object]
impl ZoneQueries {
    /// Landing zones by name: a tenant's own, and the operator's.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn zones(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ZoneNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let rows = asked.app().zone_list(asked.call()?, tenant, page).await?;
            let place = |row: &LandingZone| row.name.clone();
            Ok(connection(rows, limit, place, |row| {
                ZoneNode::new(tenant, row)
            }))
        })
        .await
    }

    /// A landing zone with its templates.
    async fn zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<Option<ZoneNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked.app().zone_get(asked.call()?, tenant, &name).await?;
            Ok(Some(ZoneNode::whole(tenant, found)))
        })
        .await
    }

    /// Environments of a tenant in landing zones, or in one of them.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn zone_environments(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: Option<String>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ZoneEnvironmentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<Uuid>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.zone_environments(call, tenant, zone, page).await?;
            let place = |row: &TenantEnvironment| row.id.to_string();
            Ok(connection(rows, limit, place, ZoneEnvironmentNode::from))
        })
        .await
    }

    /// An environment in a landing zone.
    async fn zone_environment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: String,
        environment: String,
    ) -> FieldResult<Option<ZoneEnvironmentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.zone_environment_get(call, tenant, &zone, &environment);
            Ok(Some(found.await?.into()))
        })
        .await
    }
}
