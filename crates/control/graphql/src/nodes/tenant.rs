//! Tenants, and what holds at one.

use async_graphql::{ComplexObject, Context, ID, Json, SimpleObject};
use nimbus_control_app::{EffectiveTenant, Tenant};
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};

use crate::act::{FieldResult, asked};
use crate::loaders::{ChildrenKey, TenantKey, load};
use crate::page::{items_cost, size};
use crate::refusal::refused;
use crate::scalars::{AnyJson, GraphTime};

/// A tenant.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Tenant", complex)]
pub(crate) struct TenantNode {
    #[graphql(skip)]
    key: TenantId,
    id: ID,
    /// Absent for the operator's own.
    parent_id: Option<ID>,
    slug: String,
    name: String,
    isolation_type: String,
    /// Its own; those in force are what `effectiveTenant` shows.
    settings: AnyJson,
    quotas: AnyJson,
    /// Rises with every change.
    generation: i64,
    created_at: GraphTime,
    updated_at: GraphTime,
    /// When it was deleted; absent for one that was not.
    deleted_at: Option<GraphTime>,
    /// When it is gone for good.
    gone_at: Option<GraphTime>,
    #[graphql(skip)]
    parent_key: Option<TenantId>,
}

impl From<Tenant> for TenantNode {
    fn from(tenant: Tenant) -> Self {
        Self {
            key: tenant.id,
            parent_key: tenant.parent,
            id: tenant.id.to_string().into(),
            parent_id: tenant.parent.map(|parent| parent.to_string().into()),
            slug: tenant.slug,
            name: tenant.name,
            isolation_type: tenant.isolation,
            settings: Json(tenant.settings),
            quotas: Json(tenant.quotas),
            generation: tenant.generation,
            created_at: tenant.created_at.into(),
            updated_at: tenant.updated_at.into(),
            deleted_at: tenant.deleted.map(|(at, _)| at.into()),
            gone_at: tenant.deleted.map(|(_, at)| at.into()),
        }
    }
}

#[ComplexObject]
impl TenantNode {
    /// The tenant above it, if you may see that one.
    async fn parent(&self, ctx: &Context<'_>) -> FieldResult<Option<TenantNode>> {
        let Some(parent) = self.parent_key else {
            return Ok(None);
        };
        Ok(load(ctx, TenantKey(parent)).await?.map(TenantNode::from))
    }

    /// The first tenants below it by slug, 1 to 500. For more than those ask `tenants` with `filter: {parentId}`.
    #[graphql(complexity = "items_cost(first, child_complexity)")]
    async fn children(
        &self,
        ctx: &Context<'_>,
        first: Option<u32>,
    ) -> FieldResult<Vec<TenantNode>> {
        let trace_id = asked(ctx)?.caller.context.trace_id;
        let first = size(first).map_err(|failure| refused(&failure, trace_id))?;
        let found = load(ctx, ChildrenKey(self.key, first)).await?;
        Ok(found.into_iter().flatten().map(TenantNode::from).collect())
    }
}

/// Settings and limits in force at a tenant, whoever in the tree they come from.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "EffectiveTenant")]
pub(crate) struct EffectiveNode {
    settings: Vec<SettingNode>,
    quotas: Vec<QuotaNode>,
}

#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "EffectiveSetting")]
struct SettingNode {
    key: String,
    value: AnyJson,
    /// Whether it comes from further up the tree.
    inherited: bool,
}

#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "EffectiveQuota")]
struct QuotaNode {
    resource: String,
    quota: i64,
    /// By the tenant and all below it.
    used: i64,
    inherited: bool,
}

impl From<EffectiveTenant> for EffectiveNode {
    fn from(effective: EffectiveTenant) -> Self {
        let settings = effective.settings.into_iter().map(|one| SettingNode {
            key: one.key,
            value: Json(one.value),
            inherited: one.inherited,
        });
        let quotas = effective.quotas.into_iter().map(|one| QuotaNode {
            resource: one.resource,
            quota: one.quota,
            used: one.used,
            inherited: one.inherited,
        });
        Self {
            settings: settings.collect(),
            quotas: quotas.collect(),
        }
    }
}
