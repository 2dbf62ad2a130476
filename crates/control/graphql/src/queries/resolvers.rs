//! Resolvers, their pools, images and configurations, and what was leased from them.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{HeldLease, LeaseFilter, RowCursor};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ImageNode, LeaseNode, PoolNode, ResolverConfigurationNode, ResolverNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};

#[derive(Default)]
pub(crate) struct ResolverQueries;

/// Which leases.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "ResolverLeaseFilter")]
struct LeaseChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// Such as `ipam`.
    resolver: Option<String>,
    /// The name of a pool.
    pool: Option<String>,
    deployment: Option<String>,
    /// `leased`, `committed` or `released`.
    status: Option<String>,
}

#[Object]
impl ResolverQueries {
    /// Resolvers that there are.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn resolvers(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<ResolverNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().resolver_list(asked.call()?, tenant).await?;
            Ok(rows.into_iter().map(ResolverNode::from).collect())
        })
        .await
    }

    /// Every configuration that is in force for a tenant, each over those before it.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn resolver_configurations(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<ResolverConfigurationNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.resolver_configurations(call, tenant).await?.into_iter();
            Ok(rows.map(ResolverConfigurationNode::from).collect())
        })
        .await
    }

    /// Pools that a tenant may use, its own first.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn address_pools(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<PoolNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().pool_list(asked.call()?, tenant).await?;
            Ok(rows.into_iter().map(PoolNode::from).collect())
        })
        .await
    }

    /// A pool and how much of it is used; of rehearsals, if asked for.
    #[graphql(complexity = "20 + child_complexity")]
    async fn address_pool(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        #[graphql(default)] rehearsal: bool,
    ) -> FieldResult<Option<PoolNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (pool, usage) = app.pool_usage(call, tenant, &name, rehearsal).await?;
            Ok(Some(PoolNode::with_usage(pool, usage)))
        })
        .await
    }

    /// Leases from a tenant's own pools, sequences and secrets, whoever has them.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn resolver_leases(
        &self,
        ctx: &Context<'_>,
        filter: Option<LeaseChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<LeaseNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = LeaseFilter {
                resolver: given.resolver,
                deployment: given.deployment,
                status: given.status,
                pool: None,
                environments: None,
            };
            let page = page::<RowCursor>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app
                .lease_list(call, tenant, given.pool, filter, page)
                .await?;
            let place = |held: &HeldLease| {
                let (at, id) = (held.taken_at, held.lease.id);
                RowCursor { at, id }.to_string()
            };
            Ok(connection(rows, limit, place, LeaseNode::from))
        })
        .await
    }

    /// Images that a tenant may use: its own, those of tenants above it, and those that are shipped.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn images(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<ImageNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().image_list(asked.call()?, tenant).await?;
            Ok(rows.into_iter().map(ImageNode::from).collect())
        })
        .await
    }
}
