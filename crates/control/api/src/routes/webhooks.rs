//! Receivers of a tenant's notifications, and what was sent.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    CreatedWebhook, DeliveryFilter, StoredDelivery, describe_delivery, describe_delivery_detail,
    describe_webhook, operation,
};
use nimbus_control_wire::{Delivery, DeliveryDetail, ResentDeliveries, SetWebhook, Webhook};
use nimbus_core::TenantId;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{ApiResult, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, WholeList, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_WEBHOOKS, list).gives::<WholeList<Webhook>>(),
        Route::new(operation::CREATE_WEBHOOK, create)
            .takes::<SetWebhook>()
            .gives::<Webhook>(),
        Route::new(operation::UPDATE_WEBHOOK, update)
            .takes::<SetWebhook>()
            .gives::<Webhook>(),
        Route::new(operation::DELETE_WEBHOOK, delete),
        Route::new(operation::ROTATE_WEBHOOK, rotate).gives::<Webhook>(),
        Route::new(operation::TEST_WEBHOOK, test).gives::<Delivery>(),
        Route::new(operation::RESEND_WEBHOOK, resend_dead).gives::<ResentDeliveries>(),
        Route::new(operation::LIST_DELIVERIES, list_deliveries)
            .asks::<DeliveryQuery>()
            .gives::<Page<Delivery>>(),
        Route::new(operation::GET_DELIVERY, delivery).gives::<DeliveryDetail>(),
        Route::new(operation::RESEND_DELIVERY, resend).gives::<Delivery>(),
    ]
}

/// Which deliveries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeliveryQuery {
    /// `pending`, `delivered`, `dead` or `dropped`.
    status: Option<String>,
    /// `webhook` or `email`.
    channel: Option<String>,
    /// Of this webhook.
    webhook: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

fn shown(created: CreatedWebhook) -> Webhook {
    describe_webhook(created.webhook, Some(created.secret))
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<Webhook>>> {
    let found = state.app.webhook_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, |row| {
        describe_webhook(row, None)
    })))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<SetWebhook>,
) -> ApiResult<(StatusCode, Json<Webhook>)> {
    let created = state.app.webhook_create(&call, tenant, body).await?;
    Ok((StatusCode::CREATED, Json(shown(created))))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, webhook)): Segments<(TenantId, Uuid)>,
    JsonBody(body): JsonBody<SetWebhook>,
) -> ApiResult<Json<Webhook>> {
    let changed = state
        .app
        .webhook_update(&call, tenant, webhook, body)
        .await?;
    Ok(Json(describe_webhook(changed, None)))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, webhook)): Segments<(TenantId, Uuid)>,
) -> ApiResult<StatusCode> {
    state.app.webhook_delete(&call, tenant, webhook).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn rotate(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, webhook)): Segments<(TenantId, Uuid)>,
) -> ApiResult<Json<Webhook>> {
    let rotated = state.app.webhook_rotate(&call, tenant, webhook).await?;
    Ok(Json(shown(rotated)))
}

async fn test(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, webhook)): Segments<(TenantId, Uuid)>,
) -> ApiResult<Json<Delivery>> {
    let sent = state.app.webhook_test(&call, tenant, webhook).await?;
    Ok(Json(describe_delivery(sent)))
}

async fn resend_dead(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, webhook)): Segments<(TenantId, Uuid)>,
) -> ApiResult<Json<ResentDeliveries>> {
    let resent = state.app.webhook_resend(&call, tenant, webhook).await?;
    Ok(Json(ResentDeliveries { resent }))
}

async fn list_deliveries(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<DeliveryQuery>,
) -> ApiResult<Json<Page<Delivery>>> {
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let webhook = query.webhook.as_deref().map(|text| id("webhook", text));
    let filter = DeliveryFilter {
        status: query.status,
        channel: query.channel,
        webhook: webhook.transpose()?,
    };
    let found = state.app.delivery_list(&call, tenant, filter, page).await?;
    let at = |row: &StoredDelivery| place(row.created_at, row.id);
    Ok(Json(Page::part_as(found, limit, at, describe_delivery)))
}

async fn delivery(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, delivery)): Segments<(TenantId, Uuid)>,
) -> ApiResult<Json<DeliveryDetail>> {
    let found = state.app.delivery_get(&call, tenant, delivery).await?;
    Ok(Json(describe_delivery_detail(found)))
}

async fn resend(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, delivery)): Segments<(TenantId, Uuid)>,
) -> ApiResult<Json<Delivery>> {
    let again = state.app.delivery_resend(&call, tenant, delivery).await?;
    Ok(Json(describe_delivery(again)))
}
