//! Resolvers: their registry, configuration, pools, images and leases.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    AddressPool, CatalogImage, HeldLease, ImageInput, LeaseFilter, PoolInput, PoolUsage,
    ResolverConfigInput, ResolverConfiguration, RowCursor, StoredResolver, ZoneRef, operation,
};
use nimbus_core::TenantId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, WholeList, place, time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_RESOLVERS, list).gives::<WholeList<ResolverBody>>(),
        Route::new(operation::LIST_RESOLVER_CONFIGURATIONS, configurations)
            .gives::<WholeList<ResolverConfigBody>>(),
        Route::new(operation::CONFIGURE_RESOLVER, configure).takes::<ConfigureResolver>(),
        Route::new(operation::LIST_POOLS, pools).gives::<WholeList<PoolBody>>(),
        Route::new(operation::CREATE_POOL, create_pool)
            .takes::<NewPool>()
            .gives::<PoolBody>(),
        Route::new(operation::GET_POOL, pool)
            .asks::<PoolQuery>()
            .gives::<PoolBody>(),
        Route::new(operation::DELETE_POOL, delete_pool),
        Route::new(operation::RESERVE_BLOCK, reserve)
            .takes::<BlockBody>()
            .gives::<PoolBody>(),
        Route::new(operation::UNRESERVE_BLOCK, unreserve)
            .takes::<BlockBody>()
            .gives::<PoolBody>(),
        Route::new(operation::LIST_LEASES, leases)
            .asks::<LeaseQuery>()
            .gives::<Page<LeaseBody>>(),
        Route::new(operation::RELEASE_LEASE, release).asks::<ReleaseQuery>(),
        Route::new(operation::LIST_IMAGES, images).gives::<WholeList<ImageBody>>(),
        Route::new(operation::PUT_IMAGE, put_image)
            .takes::<NewImage>()
            .gives::<ImageBody>(),
        Route::new(operation::DELETE_IMAGE, delete_image),
    ]
}

/// A resolver with its typed inputs and outputs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Resolver")]
pub(crate) struct ResolverBody {
    id: String,
    resolver_type: String,
    display_name: String,
    description: String,
    input_schema: Value,
    output_schema: Value,
    is_system: bool,
}

impl From<StoredResolver> for ResolverBody {
    fn from(row: StoredResolver) -> Self {
        Self {
            id: row.id.to_string(),
            resolver_type: row.resolver_type,
            display_name: row.display_name,
            description: row.description,
            input_schema: row.input_schema,
            output_schema: row.output_schema,
            is_system: row.is_system,
        }
    }
}

/// The configuration of a resolver at one place. Each lies over those before it in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ResolverConfig")]
pub(crate) struct ResolverConfigBody {
    resolver: String,
    /// The tenant that it was made for.
    owner: String,
    owner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_zone_id: Option<String>,
    /// The zone's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    config: Map<String, Value>,
}

impl From<ResolverConfiguration> for ResolverConfigBody {
    fn from(one: ResolverConfiguration) -> Self {
        let (zone_id, zone) = zone_parts(one.place.landing_zone);
        Self {
            resolver: one.resolver.to_string(),
            owner: one.owner_name,
            owner_id: one.owner.to_string(),
            landing_zone_id: zone_id,
            landing_zone: zone,
            environment: one.place.environment,
            config: one.config,
        }
    }
}

/// What a resolver is to be configured with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigureResolver {
    /// For the landing zone of this name; for all of them without one.
    landing_zone: Option<String>,
    /// For this environment; for all that say nothing themselves without one.
    environment: Option<String>,
    /// An empty one removes what is there.
    config: Map<String, Value>,
}

/// A pool of addresses.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AddressPool")]
pub(crate) struct PoolBody {
    id: String,
    name: String,
    /// The tenant whose pool it is.
    owner: String,
    owner_id: String,
    cidr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_zone_id: Option<String>,
    /// The name of the zone whose environments alone may take from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_zone: Option<String>,
    /// `blocks` or `addresses`.
    purpose: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
    reserved: Vec<String>,
    created_at: String,
    /// Of a pool of the tenant's own, when it is asked for by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageBody>,
}

/// How much of a pool is used. Numbers of addresses are texts: those of IPv6 are too large for JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PoolUsage")]
pub(crate) struct UsageBody {
    addresses: String,
    free: String,
    used_percent: f64,
    /// The shortest prefix that is still to be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_free_prefix: Option<u8>,
    leased: i64,
    committed: i64,
}

impl From<PoolUsage> for UsageBody {
    fn from(usage: PoolUsage) -> Self {
        let used = (usage.size - usage.free.min(usage.size)) as f64 / usage.size as f64;
        Self {
            addresses: usage.size.to_string(),
            free: usage.free.to_string(),
            used_percent: (used * 10_000.0).round() / 100.0,
            largest_free_prefix: usage.largest_free,
            leased: usage.leased,
            committed: usage.committed,
        }
    }
}

impl From<AddressPool> for PoolBody {
    fn from(pool: AddressPool) -> Self {
        let definition = pool.definition;
        let (zone_id, zone) = zone_parts(pool.landing_zone);
        Self {
            id: pool.id.to_string(),
            name: definition.name,
            owner: pool.owner_name,
            owner_id: pool.owner.to_string(),
            cidr: definition.cidr.to_string(),
            parent: definition.parent,
            landing_zone_id: zone_id,
            landing_zone: zone,
            purpose: definition.purpose.as_str().to_owned(),
            gateway: definition.gateway.map(|gateway| gateway.to_string()),
            reserved: definition
                .reserved
                .iter()
                .map(ToString::to_string)
                .collect(),
            created_at: time(pool.created_at),
            usage: None,
        }
    }
}

/// A pool to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPool {
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
    #[serde(default)]
    reserved: Vec<String>,
}

/// A block of addresses.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlockBody {
    cidr: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PoolQuery {
    /// What rehearsals have of it.
    #[serde(default)]
    rehearsal: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LeaseQuery {
    resolver: Option<String>,
    /// Only those of this pool.
    pool: Option<String>,
    deployment: Option<String>,
    /// `leased`, `committed` or `released`.
    status: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReleaseQuery {
    /// Even if something that is deployed may have it.
    #[serde(default)]
    force: bool,
}

/// Something that was taken for a unit. A secret is shown by its reference.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ResolverLease")]
pub(crate) struct LeaseBody {
    id: String,
    /// The tenant that has it.
    held_by: String,
    deployment: String,
    environment: String,
    component: String,
    rehearsal: bool,
    resolver: String,
    question: String,
    /// `leased`, `committed` or `released`.
    status: String,
    /// The plan or run that holds it.
    holder: String,
    /// The run that committed it, and the one after which the unit no longer had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_run: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_run: Option<u64>,
    outputs: Map<String, Value>,
    taken_at: String,
}

impl From<HeldLease> for LeaseBody {
    fn from(held: HeldLease) -> Self {
        let lease = held.lease;
        Self {
            id: lease.id.to_string(),
            held_by: held.held_by.to_string(),
            deployment: lease.unit.deployment,
            environment: lease.unit.environment,
            component: lease.unit.component,
            rehearsal: held.rehearsal,
            resolver: lease.resolver.to_string(),
            question: lease.question,
            status: lease.status.as_str().to_owned(),
            holder: lease.holder.to_string(),
            from_run: lease.from_run,
            until_run: lease.until_run,
            outputs: lease.outputs,
            taken_at: time(held.taken_at),
        }
    }
}

/// An image of the catalog.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CatalogImage")]
pub(crate) struct ImageBody {
    /// Absent for one that is shipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The tenant whose entry it is; absent for one that is shipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    cloud: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    os_family: String,
    os_version: String,
    architecture: String,
    image_id: String,
    image_name: String,
    deprecated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
}

impl From<CatalogImage> for ImageBody {
    fn from(entry: CatalogImage) -> Self {
        let image = entry.image;
        Self {
            id: entry.id.map(|id| id.to_string()),
            owner: entry.owner_name,
            cloud: image.cloud,
            region: image.region,
            os_family: image.os_family,
            os_version: image.os_version,
            architecture: image.architecture,
            image_id: image.image_id,
            image_name: image.image_name,
            deprecated: image.deprecated,
            replaced_by: image.replaced_by,
        }
    }
}

/// An image to be kept; it replaces the tenant's own of the same system.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewImage {
    cloud: String,
    region: Option<String>,
    os_family: String,
    os_version: String,
    /// `x86_64`, if nothing is said, or `arm64`.
    architecture: Option<String>,
    image_id: String,
    image_name: Option<String>,
    #[serde(default)]
    deprecated: bool,
    /// The version to take instead.
    replaced_by: Option<String>,
}

/// A zone's id and name.
fn zone_parts(zone: Option<ZoneRef>) -> (Option<String>, Option<String>) {
    zone.map(|zone| (zone.id.to_string(), zone.name)).unzip()
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<ResolverBody>>> {
    let found = state.app.resolver_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, Into::into)))
}

/// All of them: each lies over those before it.
async fn configurations(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<ResolverConfigBody>>> {
    let found = state.app.resolver_configurations(&call, tenant).await?;
    Ok(Json(WholeList::of(found, Into::into)))
}

async fn configure(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, resolver)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<ConfigureResolver>,
) -> ApiResult<StatusCode> {
    let input = ResolverConfigInput {
        landing_zone: body.landing_zone,
        environment: body.environment,
        config: body.config,
    };
    let configured = state
        .app
        .resolver_configure(&call, tenant, &resolver, input);
    configured.await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pools(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<PoolBody>>> {
    let found = state.app.pool_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, Into::into)))
}

async fn create_pool(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewPool>,
) -> ApiResult<(StatusCode, Json<PoolBody>)> {
    let input = PoolInput {
        name: body.name,
        cidr: body.cidr,
        parent: body.parent,
        landing_zone: body.landing_zone,
        purpose: body.purpose,
        gateway: body.gateway,
        reserved: body.reserved,
    };
    let made = state.app.pool_create(&call, tenant, input).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

async fn pool(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    ListFilter(query): ListFilter<PoolQuery>,
) -> ApiResult<Json<PoolBody>> {
    let found = state.app.pool_usage(&call, tenant, &name, query.rehearsal);
    let (pool, usage) = found.await?;
    Ok(Json(PoolBody {
        usage: usage.map(Into::into),
        ..pool.into()
    }))
}

async fn delete_pool(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
) -> ApiResult<StatusCode> {
    state.app.pool_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn reserve(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<BlockBody>,
) -> ApiResult<Json<PoolBody>> {
    let app = &state.app;
    let pool = app.pool_reserve(&call, tenant, &name, &body.cidr, true);
    Ok(Json(pool.await?.into()))
}

async fn unreserve(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<BlockBody>,
) -> ApiResult<Json<PoolBody>> {
    let app = &state.app;
    let pool = app.pool_reserve(&call, tenant, &name, &body.cidr, false);
    Ok(Json(pool.await?.into()))
}

async fn leases(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<LeaseQuery>,
) -> ApiResult<Json<Page<LeaseBody>>> {
    let page = page::<RowCursor>(query.after, query.limit)?;
    let limit = page.limit;
    let filter = LeaseFilter {
        resolver: query.resolver,
        deployment: query.deployment,
        status: query.status,
        pool: None,
        environments: None,
    };
    let found = state
        .app
        .lease_list(&call, tenant, query.pool, filter, page);
    let found = found.await?;
    let after = |held: &HeldLease| place(held.taken_at, held.lease.id);
    Ok(Json(Page::part(found, limit, after)))
}

async fn release(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, id)): Segments<(TenantId, Uuid)>,
    ListFilter(query): ListFilter<ReleaseQuery>,
) -> ApiResult<StatusCode> {
    let released = state.app.lease_release(&call, tenant, id, query.force);
    released.await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn images(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<ImageBody>>> {
    let found = state.app.image_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, Into::into)))
}

async fn put_image(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewImage>,
) -> ApiResult<Json<ImageBody>> {
    let input = ImageInput {
        cloud: body.cloud,
        region: body.region,
        os_family: body.os_family,
        os_version: body.os_version,
        architecture: body.architecture,
        image_id: body.image_id,
        image_name: body.image_name,
        deprecated: body.deprecated,
        replaced_by: body.replaced_by,
    };
    let kept = state.app.image_put(&call, tenant, input).await?;
    Ok(Json(kept.into()))
}

async fn delete_image(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, id)): Segments<(TenantId, Uuid)>,
) -> ApiResult<StatusCode> {
    state.app.image_delete(&call, tenant, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
