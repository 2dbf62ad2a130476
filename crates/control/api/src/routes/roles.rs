//! Roles, assignments and explanations.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app as app;
use nimbus_control_app::{
    AssignmentInput, Failure, PermissionQuestion, RoleInput, RoleView, operation,
};
use nimbus_control_auth::role::Environments;
use nimbus_core::TenantId;
use serde_json::json;
use uuid::Uuid;

use super::{ApiResult, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments};
use crate::route::Route;
use crate::wire::{
    Explain, Explanation, GrantBody, NewAssignment, NewRole, Page, ReplaceRole, RoleAssignmentBody,
    RoleBody, place,
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_ROLES, list)
            .asks::<PageQuery>()
            .gives::<Page<RoleBody>>(),
        Route::new(operation::CREATE_ROLE, create)
            .takes::<NewRole>()
            .gives::<RoleBody>(),
        Route::new(operation::UPDATE_ROLE, update)
            .takes::<ReplaceRole>()
            .gives::<RoleBody>(),
        Route::new(operation::DELETE_ROLE, delete),
        Route::new(operation::LIST_ASSIGNMENTS, assignments)
            .asks::<PageQuery>()
            .gives::<Page<RoleAssignmentBody>>(),
        Route::new(operation::ASSIGN_ROLE, assign)
            .takes::<NewAssignment>()
            .gives::<RoleAssignmentBody>(),
        Route::new(operation::UNASSIGN_ROLE, unassign),
        Route::new(operation::EXPLAIN, explain)
            .takes::<Explain>()
            .gives::<Explanation>(),
    ]
}

impl From<RoleView> for RoleBody {
    fn from(view: RoleView) -> Self {
        let grants = view.role.grants.into_iter().map(|grant| GrantBody {
            permissions: grant.permissions,
            environments: match grant.environments {
                Environments::Any => None,
                Environments::Only(names) => Some(names),
            },
        });
        Self {
            name: view.role.name,
            description: view.role.description,
            built_in: view.built_in,
            grants: grants.collect(),
        }
    }
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<RoleBody>>> {
    let page = query.page()?;
    let limit = page.limit as usize;
    let roles = state.app.role_list(&call, tenant, page).await?;
    // Built-in roles come on top of the first page.
    let own = roles.iter().filter(|view| !view.built_in).count();
    let next = roles
        .last()
        .filter(|_| own >= limit)
        .map(|view| view.role.name.clone());
    Ok(Json(Page {
        items: roles.into_iter().map(RoleBody::from).collect(),
        next,
    }))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewRole>,
) -> ApiResult<(StatusCode, Json<RoleBody>)> {
    let input = RoleInput {
        name: body.name,
        description: body.description,
        grants: grants(body.grants),
    };
    let role = state.app.role_create(&call, tenant, input).await?;
    Ok((StatusCode::CREATED, Json(role.into())))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<ReplaceRole>,
) -> ApiResult<Json<RoleBody>> {
    let input = RoleInput {
        name,
        description: body.description,
        grants: grants(body.grants),
    };
    let role = state.app.role_update(&call, tenant, input).await?;
    Ok(Json(role.into()))
}

fn grants(grants: Vec<GrantBody>) -> Vec<nimbus_control_auth::role::Grant> {
    let given = grants
        .into_iter()
        .map(|grant| nimbus_control_auth::role::Grant {
            permissions: grant.permissions,
            environments: grant
                .environments
                .map_or(Environments::Any, Environments::Only),
        });
    given.collect()
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, role)): Segments<(TenantId, String)>,
) -> ApiResult<StatusCode> {
    state.app.role_delete(&call, tenant, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn assignments(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<RoleAssignmentBody>>> {
    let page = query.page()?;
    let limit = page.limit;
    let assignments = state.app.assignment_list(&call, tenant, page).await?;
    Ok(Json(Page::part(assignments, limit, |row| {
        place(row.created_at, row.id)
    })))
}

async fn assign(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<NewAssignment>,
) -> ApiResult<(StatusCode, Json<RoleAssignmentBody>)> {
    let input = AssignmentInput {
        role: body.role,
        user: body.user_id.map(|text| id("user_id", &text)).transpose()?,
        group: body
            .group_id
            .map(|text| id("group_id", &text))
            .transpose()?,
        subtree: body.subtree,
        conditions: body.conditions.unwrap_or_else(|| json!({})),
        expires_at: read(
            "expires_at",
            "a time such as 2026-01-31T12:00:00Z",
            body.expires_at,
        )?,
    };
    let assignment = state.app.role_assign(&call, tenant, input).await?;
    Ok((StatusCode::CREATED, Json(assignment.into())))
}

async fn unassign(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, assignment)): Segments<(TenantId, Uuid)>,
) -> ApiResult<StatusCode> {
    state.app.role_unassign(&call, tenant, assignment).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn explain(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    JsonBody(body): JsonBody<Explain>,
) -> ApiResult<Json<Explanation>> {
    let question = PermissionQuestion {
        user: id("user_id", &body.user_id)?,
        key: body.permission,
        environment: body.environment,
        tags: body.tags,
        ip: read("ip", "an address", body.ip)?,
        at: read("at", "a time such as 2026-01-31T12:00:00Z", body.at)?,
        location: body.location,
    };
    let app::Decision { allowed, reasons } = state.app.explain(&call, tenant, question).await?;
    Ok(Json(Explanation { allowed, reasons }))
}

fn read<T: std::str::FromStr>(
    field: &'static str,
    what: &str,
    text: Option<String>,
) -> Result<Option<T>, Failure> {
    text.map(|text| {
        text.parse()
            .map_err(|_| Failure::field(field, format!("this is not {what}")))
    })
    .transpose()
}
