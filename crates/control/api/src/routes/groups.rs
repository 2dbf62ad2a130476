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

use super::Answer;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{Body, Filter, PageQuery, Segments, page};
use crate::route::Route;
use crate::wire::{Group, NewGroup, Page, PatchGroup, User};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_GROUPS, list)
            .asks::<GroupQuery>()
            .gives::<Page<Group>>(),
        Route::new(operation::CREATE_GROUP, create)
            .takes::<NewGroup>()
            .gives::<Group>(),
        Route::new(operation::UPDATE_GROUP, update)
            .takes::<PatchGroup>()
            .gives::<Group>(),
        Route::new(operation::LIST_MEMBERS, members)
            .asks::<PageQuery>()
            .gives::<Page<User>>(),
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
    Filter(query): Filter<GroupQuery>,
) -> Answer<Json<Page<Group>>> {
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
    Body(body): Body<NewGroup>,
) -> Answer<(StatusCode, Json<Group>)> {
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
) -> Answer<StatusCode> {
    state.app.group_delete(&call, tenant, group).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn add(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group, user)): Segments<(TenantId, Uuid, UserId)>,
) -> Answer<StatusCode> {
    state.app.group_add(&call, tenant, group, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group, user)): Segments<(TenantId, Uuid, UserId)>,
) -> Answer<StatusCode> {
    state.app.group_remove(&call, tenant, group, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, group)): Segments<(TenantId, Uuid)>,
    Body(body): Body<PatchGroup>,
) -> Answer<Json<Group>> {
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
    Filter(query): Filter<PageQuery>,
) -> Answer<Json<Page<User>>> {
    let page = query.page()?;
    let limit = page.limit;
    let members = state.app.group_members(&call, tenant, group, page).await?;
    Ok(Json(Page::part(members, limit, |user| user.email.clone())))
}
