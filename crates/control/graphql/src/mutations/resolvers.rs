//! Changes of resolvers: how they are configured, their pools and images, and leases that are given back by hand.

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{ImageInput, PoolInput, ResolverConfigInput};
use serde_json::{Map, Value};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{ImageNode, PoolNode};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct ResolverChanges;

/// What a resolver is to be configured with.
#[derive(InputObject)]
#[graphql(name = "ResolverConfigurationInput")]
struct ResolverConfigArgs {
    /// For the landing zone of this name; for all of them without one.
    landing_zone: Option<String>,
    /// For this environment; for all that say nothing themselves without one.
    environment: Option<String>,
    /// An object; an empty one removes what is there.
    config: Json<Map<String, Value>>,
}

/// A pool to be made.
#[derive(InputObject)]
#[graphql(name = "AddressPoolInput")]
struct PoolArgs {
    name: String,
    cidr: String,
    /// The pool that it is a block of.
    parent: Option<String>,
    /// The name of the landing zone whose environments alone may take from it; all may without one.
    landing_zone: Option<String>,
    /// `blocks`, if nothing is said, or `addresses`.
    purpose: Option<String>,
    /// Of a pool of addresses; its first one if nothing is said.
    gateway: Option<String>,
    reserved: Option<Vec<String>>,
}

impl From<PoolArgs> for PoolInput {
    fn from(given: PoolArgs) -> Self {
        Self {
            name: given.name,
            cidr: given.cidr,
            parent: given.parent,
            landing_zone: given.landing_zone,
            purpose: given.purpose,
            gateway: given.gateway,
            reserved: given.reserved.unwrap_or_default(),
        }
    }
}

/// An image to be kept; it replaces the tenant's own of the same system.
#[derive(InputObject)]
#[graphql(name = "CatalogImageInput")]
struct CatalogImageArgs {
    cloud: String,
    region: Option<String>,
    os_family: String,
    os_version: String,
    /// `x86_64`, if nothing is said, or `arm64`.
    architecture: Option<String>,
    image_id: String,
    image_name: Option<String>,
    #[graphql(default)]
    deprecated: bool,
    /// The version to take instead.
    replaced_by: Option<String>,
}

impl From<CatalogImageArgs> for ImageInput {
    fn from(given: CatalogImageArgs) -> Self {
        Self {
            cloud: given.cloud,
            region: given.region,
            os_family: given.os_family,
            os_version: given.os_version,
            architecture: given.architecture,
            image_id: given.image_id,
            image_name: given.image_name,
            deprecated: given.deprecated,
            replaced_by: given.replaced_by,
        }
    }
}

async fn keep_block(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    pool: String,
    cidr: String,
    keep: bool,
) -> FieldResult<PoolNode> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let changed = app.pool_reserve(call, tenant, &pool, &cidr, keep).await?;
        Ok(changed.into())
    })
    .await
}

#[Object]
impl ResolverChanges {
    /// Set the configuration of a resolver at one place.
    async fn configure_resolver(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        resolver: String,
        input: ResolverConfigArgs,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let Json(config) = input.config;
            let input = ResolverConfigInput {
                landing_zone: input.landing_zone,
                environment: input.environment,
                config,
            };
            let (app, call) = (asked.app(), asked.call()?);
            app.resolver_configure(call, tenant, &resolver, input)
                .await?;
            Ok(true)
        })
        .await
    }

    /// Make a pool of addresses.
    async fn create_address_pool(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: PoolArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<PoolNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.pool_create(call, tenant, input.into()).await?;
            Ok(made.into())
        })
        .await
    }

    /// Delete a pool from which nothing is leased.
    async fn delete_address_pool(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.pool_delete(call, tenant, &name).await?;
            Ok(true)
        })
        .await
    }

    /// Keep a block of a pool for nobody.
    async fn reserve_block(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pool: String,
        cidr: String,
    ) -> FieldResult<PoolNode> {
        keep_block(ctx, tenant_id, pool, cidr, true).await
    }

    /// Give a block of a pool free again.
    async fn unreserve_block(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pool: String,
        cidr: String,
    ) -> FieldResult<PoolNode> {
        keep_block(ctx, tenant_id, pool, cidr, false).await
    }

    /// Give a lease back by hand, with `force` also one that may be in use.
    async fn release_lease(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        #[graphql(default)] force: bool,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.lease_release(call, tenant, thing(&id)?, force).await?;
            Ok(true)
        })
        .await
    }

    /// Make or replace an image of the tenant's own.
    async fn put_image(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: CatalogImageArgs,
    ) -> FieldResult<ImageNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let kept = app.image_put(call, tenant, input.into()).await?;
            Ok(kept.into())
        })
        .await
    }

    /// Delete an image of the tenant's own.
    async fn delete_image(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.image_delete(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }
}
