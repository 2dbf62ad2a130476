//! Groups and their members.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app as app;
use nimbus_control_app::operation;
use nimbus_core::{TenantId, UserId};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments, page};
use crate::route::Route;
use crate::wire::{GroupBody, NewGroupBody, Page, PatchGroup, UserBody};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_GROUPS, list)
            .asks::<GroupQuery>()
            .gives::<Page<GroupBody>>(),
        Route::new(operation::CREATE_GROUP, create)
            .takes::<NewGroupBody>()
            .gives::<GroupBody>(),
        Route::new(operation::UPDATE_GROUP, update)
            .takes::<PatchGroup>()
            .gives::<GroupBody>(),
        Route::new(operation::LIST_MEMBERS, members)
            .asks::<PageQuery>()
            .gives::<Page<UserBody>>(),
        Route::new(operation::DELETE_GROUP, delete),
        Route::new(operation::ADD_MEMBER, add),
        Route::new(operation::REMOVE_MEMBER, remove),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GroupQuery {
    /// Only the one of this name.
    name: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<GroupQuery>,
) -> ApiResult<Json<Page<GroupBody>>> {
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let groups = state
        .app
        .group_list(&call, tenant, query.name, page)
        .await?;
    Ok(Json(Page::part(groups, limit, |group| group.name.clone())))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewGroupBody>,
) -> ApiResult<(StatusCode, Json<GroupBody>)> {
    let new = app::NewGroup {
        name: body.name,
        description: body.description,
    };
    let group = state.app.group_create(&call, tenant, new).await?;
    Ok((StatusCode::CREATED, Json(group.into())))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group)): Segments<(TenantId, Uuid)>,
) -> ApiResult<StatusCode> {
    state.app.group_delete(&call, tenant, group).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn add(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group, user)): Segments<(TenantId, Uuid, UserId)>,
) -> ApiResult<StatusCode> {
    state.app.group_add(&call, tenant, group, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group, user)): Segments<(TenantId, Uuid, UserId)>,
) -> ApiResult<StatusCode> {
    state.app.group_remove(&call, tenant, group, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group)): Segments<(TenantId, Uuid)>,
    JsonBody(body): JsonBody<PatchGroup>,
) -> ApiResult<Json<GroupBody>> {
    let patch = app::GroupPatch {
        name: body.name,
        description: body.description,
    };
    let group = state.app.group_update(&call, tenant, group, patch).await?;
    Ok(Json(group.into()))
}

async fn members(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group)): Segments<(TenantId, Uuid)>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<UserBody>>> {
    let page = query.page()?;
    let limit = page.limit;
    let members = state.app.group_members(&call, tenant, group, page).await?;
    Ok(Json(Page::part(members, limit, |user| user.email.clone())))
}
