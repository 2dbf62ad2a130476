//! What to know before one decides on a plan, who has looked at what, and drafts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::operation;
use nimbus_control_wire::{
    DraftView, Drafts, PlanReview, PutDraft, ReviewMark, SetMark, SystemView,
};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::Page;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::RUN_REVIEW, review)
            .asks::<TenantChoice>()
            .gives::<PlanReview>(),
        Route::new(operation::LIST_MARKS, marks)
            .asks::<MarkQuery>()
            .gives::<Page<ReviewMark>>(),
        Route::new(operation::SET_MARK, set_mark)
            .asks::<TenantChoice>()
            .takes::<SetMark>(),
        Route::new(operation::REMOVE_MARK, remove_mark).asks::<TenantChoice>(),
        Route::new(operation::LIST_DRAFTS, drafts)
            .asks::<TenantChoice>()
            .gives::<Drafts>(),
        Route::new(operation::PUT_DRAFT, put_draft)
            .asks::<TenantChoice>()
            .takes::<PutDraft>()
            .gives::<DraftView>(),
        Route::new(operation::DELETE_DRAFT, delete_draft).asks::<TenantChoice>(),
        Route::new(operation::SHOW_SYSTEM, system)
            .asks::<TenantChoice>()
            .gives::<SystemView>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MarkQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn review(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<PlanReview>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.run_review(&call, tenant, run).await?))
}

async fn marks(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<MarkQuery>,
) -> ApiResult<Json<Page<ReviewMark>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.mark_list(&call, tenant, run, page).await?;
    // As `MarkCursor` reads it.
    let place = |mark: &ReviewMark| format!("{}.{}", mark.person, mark.item);
    Ok(Json(Page::part(found, limit, place)))
}

async fn set_mark(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((run, item)): Segments<(Uuid, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetMark>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.mark_set(&call, tenant, run, &item, Some(&body.digest))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove_mark(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((run, item)): Segments<(Uuid, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.mark_set(&call, tenant, run, &item, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn drafts(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Drafts>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.draft_list(&call, tenant).await?))
}

async fn put_draft(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(draft): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<PutDraft>,
) -> ApiResult<Json<DraftView>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.draft_put(&call, tenant, &draft, body).await?))
}

async fn delete_draft(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(draft): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.draft_delete(&call, tenant, &draft).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn system(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<SystemView>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.system_show(&call, tenant).await?))
}
