//! A tenant's own templates and programs, sent and fetched by a command line.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::operation;
use nimbus_control_wire::{WorkspaceChange, WorkspaceContents, WorkspaceFiles, WorkspaceTag};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, page};
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_WORKSPACE, list)
            .asks::<FileQuery>()
            .gives::<WorkspaceFiles>(),
        Route::new(operation::CHANGE_WORKSPACE, change)
            .asks::<TenantChoice>()
            .takes::<WorkspaceChange>()
            .gives::<WorkspaceTag>(),
        Route::new(operation::READ_CONTENTS, read)
            .asks::<ContentQuery>()
            .gives::<WorkspaceContents>(),
        Route::new(operation::STORE_CONTENTS, store)
            .asks::<TenantChoice>()
            .takes::<WorkspaceContents>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContentQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// SHA-256 of each content, in hexadecimal digits, with commas between; at most 100, and 2 MiB together.
    digests: String,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<FileQuery>,
) -> ApiResult<Json<WorkspaceFiles>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    Ok(Json(app.workspace_list(&call, tenant, page).await?))
}

async fn change(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<WorkspaceChange>,
) -> ApiResult<Json<WorkspaceTag>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.workspace_change(&call, tenant, body).await?))
}

async fn read(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ContentQuery>,
) -> ApiResult<Json<WorkspaceContents>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let digests: Vec<String> = query.digests.split(',').map(str::to_owned).collect();
    Ok(Json(app.contents_read(&call, tenant, &digests).await?))
}

async fn store(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<WorkspaceContents>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.contents_store(&call, tenant, body).await?;
    Ok(StatusCode::NO_CONTENT)
}
