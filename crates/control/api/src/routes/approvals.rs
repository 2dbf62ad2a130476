//! Runs that wait for people, which environments need that, and who decides in whose place.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    ApprovalAnswer, ApprovalEntry, ApprovalFilter, describe_approval, operation,
};
use nimbus_control_wire::{
    Approval, ApprovalDelegation, ApprovalPolicy, DenyApproval, GrantApproval, SetApprovalPolicy,
    SetDelegation,
};
use nimbus_core::UserId;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, WholeList, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_APPROVALS, list)
            .asks::<ApprovalQuery>()
            .gives::<Page<Approval>>(),
        Route::new(operation::GET_APPROVAL, get)
            .asks::<TenantChoice>()
            .gives::<Approval>(),
        Route::new(operation::GRANT_APPROVAL, grant)
            .asks::<TenantChoice>()
            .takes::<GrantApproval>()
            .gives::<Approval>(),
        Route::new(operation::DENY_APPROVAL, deny)
            .asks::<TenantChoice>()
            .takes::<DenyApproval>()
            .gives::<Approval>(),
        Route::new(operation::LIST_APPROVAL_POLICIES, policies)
            .asks::<TenantChoice>()
            .gives::<WholeList<ApprovalPolicy>>(),
        Route::new(operation::PUT_APPROVAL_POLICY, put_policy)
            .asks::<TenantChoice>()
            .takes::<SetApprovalPolicy>()
            .gives::<ApprovalPolicy>(),
        Route::new(operation::DELETE_APPROVAL_POLICY, delete_policy).asks::<TenantChoice>(),
        Route::new(operation::LIST_DELEGATIONS, delegations)
            .asks::<TenantChoice>()
            .gives::<WholeList<ApprovalDelegation>>(),
        Route::new(operation::PUT_DELEGATION, put_delegation)
            .asks::<TenantChoice>()
            .takes::<SetDelegation>()
            .gives::<ApprovalDelegation>(),
        Route::new(operation::DELETE_DELEGATION, delete_delegation).asks::<TenantChoice>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    status: Option<String>,
    deployment: Option<String>,
    environment: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ApprovalQuery>,
) -> ApiResult<Json<Page<Approval>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let filter = ApprovalFilter {
        status: query.status,
        deployment: query.deployment,
        environment: query.environment,
    };
    let page = page(query.after, query.limit)?;
    let limit = page.limit as usize;
    let found = app.approval_list(&call, tenant, filter, page).await?;
    let at = |entry: &ApprovalEntry| place(entry.request.requested_at, entry.request.id);
    let next = found.last().filter(|_| found.len() >= limit).map(at);
    let items = found.into_iter().map(describe_approval);
    Ok(Json(Page {
        items: items.collect::<Result<_, _>>()?,
        next,
    }))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(approval): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Approval>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.approval_get(&call, tenant, approval).await?;
    Ok(Json(describe_approval(found)?))
}

async fn grant(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(approval): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<GrantApproval>,
) -> ApiResult<Json<Approval>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let answer = ApprovalAnswer::Grant {
        comment: body.comment,
    };
    let decided = app.approval_decide(&call, tenant, approval, answer).await?;
    Ok(Json(describe_approval(decided)?))
}

async fn deny(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(approval): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<DenyApproval>,
) -> ApiResult<Json<Approval>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let answer = ApprovalAnswer::Deny {
        reason: body.reason,
    };
    let decided = app.approval_decide(&call, tenant, approval, answer).await?;
    Ok(Json(describe_approval(decided)?))
}

/// All of them: a tenant has as many as environments.
async fn policies(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WholeList<ApprovalPolicy>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let items = app.approval_policy_list(&call, tenant).await?;
    Ok(Json(WholeList { items }))
}

async fn put_policy(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(environment): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetApprovalPolicy>,
) -> ApiResult<Json<ApprovalPolicy>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let put = app.approval_policy_put(&call, tenant, &environment, body);
    Ok(Json(put.await?))
}

async fn delete_policy(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(environment): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.approval_policy_delete(&call, tenant, &environment)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn delegations(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WholeList<ApprovalDelegation>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let items = app.delegation_list(&call, tenant).await?;
    Ok(Json(WholeList { items }))
}

async fn put_delegation(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(user): Segments<UserId>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetDelegation>,
) -> ApiResult<Json<ApprovalDelegation>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let put = app.delegation_put(&call, tenant, user, &body.until);
    Ok(Json(put.await?))
}

async fn delete_delegation(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(user): Segments<UserId>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.delegation_delete(&call, tenant, user).await?;
    Ok(StatusCode::NO_CONTENT)
}
