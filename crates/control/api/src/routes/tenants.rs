//! Tenants.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{TenantFilter, TenantInput, TenantPatch, operation};
use nimbus_core::TenantId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ApiResult, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{
    Effective, MoveTenant, NewTenantBody, Page, PatchTenant, SetQuotas, TenantBody, place,
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_TENANTS, list)
            .asks::<TenantQuery>()
            .gives::<Page<TenantBody>>(),
        Route::new(operation::GET_TENANT, get).gives::<TenantBody>(),
        Route::new(operation::CREATE_TENANT, create)
            .takes::<NewTenantBody>()
            .gives::<TenantBody>(),
        Route::new(operation::UPDATE_TENANT, update)
            .takes::<PatchTenant>()
            .gives::<TenantBody>(),
        Route::new(operation::MOVE_TENANT, r#move)
            .takes::<MoveTenant>()
            .gives::<TenantBody>(),
        Route::new(operation::DELETE_TENANT, delete),
        Route::new(operation::SET_QUOTAS, set_quotas)
            .takes::<SetQuotas>()
            .gives::<TenantBody>(),
        Route::new(operation::TENANT_EFFECTIVE, effective).gives::<Effective>(),
        Route::new(operation::LIST_DELETED_TENANTS, deleted)
            .asks::<DeletedQuery>()
            .gives::<Page<TenantBody>>(),
        Route::new(operation::RESTORE_TENANT, restore).gives::<TenantBody>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TenantQuery {
    /// Only those whose name or slug has this in it.
    text: Option<String>,
    /// Only those with this slug, wherever they are.
    slug: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeletedQuery {
    /// Only those that had this slug.
    slug: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

/// Slugs are not unique in the tree, so a place in the list is a slug and an id.
struct TenantCursor(String, TenantId);

impl std::str::FromStr for TenantCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (slug, id) = text.split_once('/').ok_or(())?;
        Ok(Self(slug.to_owned(), id.parse().map_err(|_| ())?))
    }
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantQuery>,
) -> ApiResult<Json<Page<TenantBody>>> {
    let page = page::<TenantCursor>(query.after, query.limit)?;
    let filter = TenantFilter {
        text: query.text,
        slug: query.slug,
        after: page.after.map(|TenantCursor(slug, id)| (slug, id)),
        limit: page.limit,
        ..TenantFilter::default()
    };
    let (tenants, next) = state.app.tenant_list(&call, filter).await?;
    Ok(Json(Page {
        items: tenants.into_iter().map(TenantBody::from).collect(),
        next: next.map(|(slug, id)| format!("{slug}/{id}")),
    }))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<TenantBody>> {
    Ok(Json(state.app.tenant_get(&call, tenant).await?.into()))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(parent): Segments<TenantId>,
    JsonBody(body): JsonBody<NewTenantBody>,
) -> ApiResult<(StatusCode, Json<TenantBody>)> {
    let input = TenantInput {
        slug: body.slug,
        name: body.name,
        settings: body.settings,
    };
    let tenant = state.app.tenant_create(&call, parent, input).await?;
    Ok((StatusCode::CREATED, Json(tenant.into())))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<PatchTenant>,
) -> ApiResult<Json<TenantBody>> {
    let patch = TenantPatch {
        name: body.name,
        settings: body.settings,
        expected_generation: body.expected_generation,
    };
    Ok(Json(
        state.app.tenant_update(&call, tenant, patch).await?.into(),
    ))
}

async fn r#move(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<MoveTenant>,
) -> ApiResult<Json<TenantBody>> {
    let parent = id("parent_id", &body.parent_id)?;
    Ok(Json(
        state.app.tenant_move(&call, tenant, parent).await?.into(),
    ))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<StatusCode> {
    state.app.tenant_delete(&call, tenant).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn set_quotas(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<SetQuotas>,
) -> ApiResult<Json<TenantBody>> {
    Ok(Json(
        state
            .app
            .tenant_set_quotas(&call, tenant, body.quotas)
            .await?
            .into(),
    ))
}

async fn effective(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<Effective>> {
    let effective = state.app.tenant_effective(&call, tenant).await?;
    Ok(Json(effective.into()))
}

async fn deleted(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(parent): Segments<TenantId>,
    ListFilter(query): ListFilter<DeletedQuery>,
) -> ApiResult<Json<Page<TenantBody>>> {
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let deleted = state
        .app
        .tenant_deleted(&call, parent, query.slug, page)
        .await?;
    Ok(Json(Page::part(deleted, limit, |tenant| {
        let at = tenant.deleted.map_or(tenant.updated_at, |(at, _)| at);
        place(at, tenant.id.into())
    })))
}

async fn restore(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((parent, tenant)): Segments<(TenantId, TenantId)>,
) -> ApiResult<Json<TenantBody>> {
    let restored = state.app.tenant_restore(&call, parent, tenant).await?;
    Ok(Json(restored.into()))
}
