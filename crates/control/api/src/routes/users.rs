//! Users, service accounts and their sessions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{UserInput, UserPatch, operation};
use nimbus_core::{TenantId, UserId};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments, page};
use crate::route::Route;
use crate::wire::{EndedSessionsBody, NewUserBody, Page, PatchUser, SessionBody, UserBody};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_USERS, list)
            .asks::<UserQuery>()
            .gives::<Page<UserBody>>(),
        Route::new(operation::GET_USER, get).gives::<UserBody>(),
        Route::new(operation::CREATE_USER, create)
            .takes::<NewUserBody>()
            .gives::<UserBody>(),
        Route::new(operation::UPDATE_USER, update)
            .takes::<PatchUser>()
            .gives::<UserBody>(),
        Route::new(operation::DELETE_USER, delete),
        Route::new(operation::LIST_SESSIONS, sessions)
            .asks::<PageQuery>()
            .gives::<Page<SessionBody>>(),
        Route::new(operation::REVOKE_SESSION, revoke_session),
        Route::new(operation::REVOKE_SESSIONS, revoke_sessions).gives::<EndedSessionsBody>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserQuery {
    /// Only the one with this address, or of this name for a service account.
    email: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<UserQuery>,
) -> ApiResult<Json<Page<UserBody>>> {
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let users = state
        .app
        .user_list(&call, tenant, query.email, page)
        .await?;
    Ok(Json(Page::part(users, limit, |user| user.email.clone())))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user)): Segments<(TenantId, UserId)>,
) -> ApiResult<Json<UserBody>> {
    Ok(Json(state.app.user_get(&call, tenant, user).await?.into()))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewUserBody>,
) -> ApiResult<(StatusCode, Json<UserBody>)> {
    let input = UserInput {
        service_account: body.service_account,
        email: body.email,
        display_name: body.display_name,
        password: body.password,
    };
    let user = state.app.user_create(&call, tenant, input).await?;
    Ok((StatusCode::CREATED, Json(user.into())))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user)): Segments<(TenantId, UserId)>,
    JsonBody(body): JsonBody<PatchUser>,
) -> ApiResult<Json<UserBody>> {
    let patch = UserPatch {
        display_name: body.display_name,
        disabled: body.disabled,
        password: body.password,
    };
    Ok(Json(
        state
            .app
            .user_update(&call, tenant, user, patch)
            .await?
            .into(),
    ))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user)): Segments<(TenantId, UserId)>,
) -> ApiResult<StatusCode> {
    state.app.user_delete(&call, tenant, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn sessions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user)): Segments<(TenantId, UserId)>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<SessionBody>>> {
    let page = query.page()?;
    let limit = page.limit;
    let sessions = state.app.user_sessions(&call, tenant, user, page).await?;
    Ok(Json(Page::of_sessions(sessions, limit, call.who.session)))
}

async fn revoke_session(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user, session)): Segments<(TenantId, UserId, Uuid)>,
) -> ApiResult<StatusCode> {
    state
        .app
        .user_revoke_session(&call, tenant, user, session)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn revoke_sessions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, user)): Segments<(TenantId, UserId)>,
) -> ApiResult<Json<EndedSessionsBody>> {
    let ended = state.app.user_revoke_sessions(&call, tenant, user).await?;
    Ok(Json(EndedSessionsBody { ended }))
}
