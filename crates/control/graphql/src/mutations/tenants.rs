//! Changes of the tree of tenants.

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{TenantInput, TenantPatch};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::TenantNode;
use crate::scalars::{AnyJson, named, thing};

#[derive(Default)]
pub(crate) struct TenantChanges;

/// A tenant to be made.
#[derive(InputObject)]
#[graphql(name = "CreateTenantInput")]
struct NewTenantArgs {
    /// Below this one; below your own when absent.
    parent_id: Option<ID>,
    slug: String,
    name: String,
    settings: Option<AnyJson>,
}

/// What changes about a tenant.
#[derive(InputObject)]
#[graphql(name = "UpdateTenantInput")]
struct TenantChangeArgs {
    name: Option<String>,
    settings: Option<AnyJson>,
    /// Refuse if somebody changed it since it had this generation.
    expected_generation: Option<i64>,
}

#[Object]
impl TenantChanges {
    /// Make a tenant below another.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_tenant(
        &self,
        ctx: &Context<'_>,
        input: NewTenantArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<TenantNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let parent = asked.tenant(input.parent_id.as_ref()).await?;
            let new = TenantInput {
                slug: input.slug,
                name: input.name,
                settings: input.settings.map(|Json(settings)| settings),
            };
            let made = asked
                .app()
                .tenant_create(asked.call()?, parent, new)
                .await?;
            Ok(made.into())
        })
        .await
    }

    /// Rename a tenant or change its settings.
    async fn update_tenant(
        &self,
        ctx: &Context<'_>,
        id: ID,
        input: TenantChangeArgs,
    ) -> FieldResult<TenantNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let patch = TenantPatch {
                name: input.name,
                settings: input.settings.map(|Json(settings)| settings),
                expected_generation: input.expected_generation,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.tenant_update(call, thing(&id)?, patch).await?;
            Ok(changed.into())
        })
        .await
    }

    /// Limit what a tenant and all below it have.
    async fn set_tenant_quotas(
        &self,
        ctx: &Context<'_>,
        id: ID,
        quotas: AnyJson,
    ) -> FieldResult<TenantNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.tenant_set_quotas(call, thing(&id)?, quotas.0).await?;
            Ok(changed.into())
        })
        .await
    }

    /// Put a tenant below another.
    async fn move_tenant(
        &self,
        ctx: &Context<'_>,
        id: ID,
        parent_id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<TenantNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let parent = named("parentId", &parent_id)?;
            let (app, call) = (asked.app(), asked.call()?);
            let moved = app.tenant_move(call, thing(&id)?, parent).await?;
            Ok(moved.into())
        })
        .await
    }

    /// Delete a tenant and all below it.
    async fn delete_tenant(&self, ctx: &Context<'_>, id: ID) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            app.tenant_delete(call, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// Take the deletion of a tenant back.
    async fn restore_tenant(
        &self,
        ctx: &Context<'_>,
        parent_id: ID,
        id: ID,
        idempotency_key: Option<String>,
    ) -> FieldResult<TenantNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let (app, call) = (asked.app(), asked.call()?);
            let (parent, id) = (thing(&parent_id)?, thing(&id)?);
            let restored = app.tenant_restore(call, parent, id).await?;
            Ok(restored.into())
        })
        .await
    }
}
