//! API keys.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{KeyInput, operation};
use nimbus_core::TenantId;
use uuid::Uuid;

use super::{Answer, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{Body, Filter, PageQuery, Segments};
use crate::route::Route;
use crate::wire::{ApiKey, NewKey, Page, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_KEYS, list)
            .asks::<PageQuery>()
            .gives::<Page<ApiKey>>(),
        Route::new(operation::CREATE_KEY, create)
            .takes::<NewKey>()
            .gives::<ApiKey>(),
        Route::new(operation::REVOKE_KEY, revoke),
    ]
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    Filter(query): Filter<PageQuery>,
) -> Answer<Json<Page<ApiKey>>> {
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
    Body(body): Body<NewKey>,
) -> Answer<(StatusCode, Json<ApiKey>)> {
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
) -> Answer<StatusCode> {
    state.app.key_revoke(&call, tenant, key).await?;
    Ok(StatusCode::NO_CONTENT)
}
