//! Set-up, signing in and out, and the caller's own things.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_app as app;
use nimbus_control_app::{Failure, LoginInput, SetupInput, operation, permission};
use nimbus_control_auth::csrf;
use nimbus_control_auth::operation::{Need, OPERATIONS};
use uuid::Uuid;

use super::ApiResult;
use crate::caller::{RequestCircumstances, SignedCall, ensure_own_origin};
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments};
use crate::route::Route;
use crate::wire::{
    ChangePassword, CompleteSetup, EndedSessionsBody, Login, Me, Page, PermissionBody, Refresh,
    SessionBody, SetupStatusBody, SignedInBody,
};
use crate::{ApiState, cookies};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::SETUP_STATUS, setup_status).gives::<SetupStatusBody>(),
        Route::new(operation::SETUP_COMPLETE, setup_complete)
            .takes::<CompleteSetup>()
            .gives::<SignedInBody>(),
        Route::new(operation::LOGIN, login)
            .takes::<Login>()
            .gives::<SignedInBody>(),
        Route::new(operation::REFRESH, refresh)
            .takes::<Refresh>()
            .gives::<SignedInBody>(),
        Route::new(operation::REFRESH_TOKEN, refresh)
            .takes::<Refresh>()
            .gives::<SignedInBody>(),
        Route::new(operation::LOGOUT, logout),
        Route::new(operation::ME, me).gives::<Me>(),
        Route::new(operation::OWN_SESSIONS, own_sessions)
            .asks::<PageQuery>()
            .gives::<Page<SessionBody>>(),
        Route::new(operation::REVOKE_OTHER_SESSIONS, revoke_other_sessions)
            .gives::<EndedSessionsBody>(),
        Route::new(operation::REVOKE_OWN_SESSION, revoke_own_session),
        Route::new(operation::CHANGE_PASSWORD, change_password).takes::<ChangePassword>(),
        Route::new(operation::DESCRIBE_API, describe),
        Route::new(operation::LIST_PERMISSIONS, permissions)
            .asks::<PageQuery>()
            .gives::<Page<PermissionBody>>(),
    ]
}

async fn setup_status(State(state): State<ApiState>) -> ApiResult<Json<SetupStatusBody>> {
    let completed_at = match state.app.setup_status().await? {
        app::SetupStatus::Open => None,
        app::SetupStatus::Complete { at } => Some(at.0.to_string()),
    };
    Ok(Json(SetupStatusBody {
        completed: completed_at.is_some(),
        completed_at,
    }))
}

async fn setup_complete(
    State(state): State<ApiState>,
    RequestCircumstances(context): RequestCircumstances,
    JsonBody(body): JsonBody<CompleteSetup>,
) -> ApiResult<Response> {
    state.limits.take_sign_in(context.ip)?;
    let input = SetupInput {
        token: body.token,
        email: body.email,
        display_name: body.display_name,
        password: body.password,
    };
    let signed_in = state.app.setup_complete(&context, input).await?;
    Ok(answer(&state, signed_in, false))
}

async fn login(
    State(state): State<ApiState>,
    RequestCircumstances(context): RequestCircumstances,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Login>,
) -> ApiResult<Response> {
    state.limits.take_sign_in(context.ip)?;
    if body.cookies {
        ensure_own_origin(&state, &headers)?;
    }
    let input = LoginInput {
        tenant: body.tenant,
        email: body.email,
        password: body.password,
    };
    let signed_in = state.app.login(&context, input).await?;
    Ok(answer(&state, signed_in, body.cookies))
}

async fn refresh(
    State(state): State<ApiState>,
    RequestCircumstances(context): RequestCircumstances,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Refresh>,
) -> ApiResult<Response> {
    let (token, by_cookie) = match &body.refresh_token {
        Some(token) => (token.as_str(), false),
        None => {
            ensure_own_origin(&state, &headers)?;
            let token =
                cookies::read(&headers, cookies::REFRESH).ok_or_else(Failure::not_signed_in)?;
            (token, true)
        }
    };
    let signed_in = state.app.refresh(&context, token).await?;
    Ok(answer(&state, signed_in, by_cookie))
}

/// Tokens in the body for programs, in cookies for the console; never in both.
fn answer(state: &ApiState, signed_in: app::SignedIn, by_cookie: bool) -> Response {
    let body = SignedInBody {
        tenant_id: signed_in.tenant.to_string(),
        user_id: signed_in.user.to_string(),
        token_type: "Bearer",
        expires_in: signed_in.access_seconds,
        access_token: (!by_cookie).then(|| signed_in.access_token.clone()),
        refresh_token: (!by_cookie).then(|| signed_in.refresh_token.clone()),
        csrf_token: by_cookie.then(|| csrf::code(state.app.server_keys(), signed_in.session)),
    };
    let mut response = Json(body).into_response();
    if by_cookie {
        cookies::set(response.headers_mut(), &signed_in, is_secure(state));
    }
    response
}

fn is_secure(state: &ApiState) -> bool {
    state
        .origins
        .iter()
        .all(|origin| origin.starts_with("https://"))
}

async fn logout(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
) -> ApiResult<Response> {
    state.app.logout(&call).await?;
    let mut response = axum::http::StatusCode::NO_CONTENT.into_response();
    cookies::clear(response.headers_mut(), is_secure(&state));
    Ok(response)
}

async fn me(State(state): State<ApiState>, SignedCall(call): SignedCall) -> ApiResult<Json<Me>> {
    let (user, tenant) = state.app.me(&call).await?;
    let assignments = &call.who.caller.assignments;
    let limit = call.who.caller.limit.as_ref();
    Ok(Json(Me {
        user: user.into(),
        tenant: tenant.into(),
        roles: assignments
            .iter()
            .map(|assignment| assignment.role.name.clone())
            .collect(),
        permissions: assignments
            .iter()
            .flat_map(|assignment| assignment.role.keys())
            .filter(|key| limit.is_none_or(|limit| limit.contains(*key)))
            .map(str::to_owned)
            .collect(),
        impersonating: None,
    }))
}

async fn own_sessions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<SessionBody>>> {
    let page = query.page()?;
    let limit = page.limit;
    let sessions = state.app.own_sessions(&call, page).await?;
    Ok(Json(Page::of_sessions(sessions, limit, call.who.session)))
}

async fn revoke_other_sessions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
) -> ApiResult<Json<EndedSessionsBody>> {
    let ended = state.app.end_other_sessions(&call).await?;
    Ok(Json(EndedSessionsBody { ended }))
}

async fn revoke_own_session(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(session): Segments<Uuid>,
) -> ApiResult<axum::http::StatusCode> {
    state.app.end_own_session(&call, session).await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}

async fn change_password(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    JsonBody(body): JsonBody<ChangePassword>,
) -> ApiResult<axum::http::StatusCode> {
    state.limits.take_sign_in(call.context.ip)?;
    state
        .app
        .change_password(&call, body.current_password, body.new_password)
        .await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}

async fn permissions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<PermissionBody>>> {
    let page = query.page::<String>()?;
    state
        .app
        .note_read(&call, operation::LIST_PERMISSIONS)
        .await?;
    let mut all: Vec<_> = permission::PERMISSIONS.iter().collect();
    all.sort_by_key(|permission| permission.key);
    let after = page.after.as_deref().unwrap_or_default();
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let rest = all.into_iter().filter(|one| one.key > after);
    let part: Vec<_> = rest.take(limit).collect();
    let place = |permission: &&permission::Permission| permission.key.to_owned();
    Ok(Json(Page::part_as(part, page.limit, place, |permission| {
        let operations = OPERATIONS.iter();
        let operations =
            operations.filter(|operation| operation.need == Need::Permission(permission.key));
        PermissionBody {
            key: permission.key,
            tier: permission.tier.as_str().to_owned(),
            description: permission.description,
            operations: operations.map(|operation| operation.id).collect(),
        }
    })))
}

/// The same for everybody, and no secret.
async fn describe() -> Json<serde_json::Value> {
    Json(crate::openapi())
}
