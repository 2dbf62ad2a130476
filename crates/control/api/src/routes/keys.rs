//! API keys.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{KeyInput, operation};
use nimbus_core::TenantId;
use uuid::Uuid;

use super::{ApiResult, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments};
use crate::route::Route;
use crate::wire::{ApiKeyBody, NewKeyBody, Page, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_KEYS, list)
            .asks::<PageQuery>()
            .gives::<Page<ApiKeyBody>>(),
        Route::new(operation::CREATE_KEY, create)
            .takes::<NewKeyBody>()
            .gives::<ApiKeyBody>(),
        Route::new(operation::REVOKE_KEY, revoke),
    ]
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<ApiKeyBody>>> {
    let page = query.page()?;
    let limit = page.limit;
    let keys = state.app.key_list(&call, tenant, page).await?;
    Ok(Json(Page::part(keys, limit, |key| {
        place(key.created_at, key.id)
    })))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewKeyBody>,
) -> ApiResult<(StatusCode, Json<ApiKeyBody>)> {
    let input = KeyInput {
        service_account: id("service_account_id", &body.service_account_id)?,
        name: body.name,
        scopes: body.scopes,
        expires_in_days: body.expires_in_days,
    };
    let created = state.app.key_create(&call, tenant, input).await?;
    Ok((StatusCode::CREATED, Json(created.into())))
}

async fn revoke(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, key)): Segments<(TenantId, Uuid)>,
) -> ApiResult<StatusCode> {
    state.app.key_revoke(&call, tenant, key).await?;
    Ok(StatusCode::NO_CONTENT)
}
