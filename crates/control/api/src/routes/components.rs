//! Components and their versions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use nimbus_control_app::{ComponentFilter, Failure, PublishInput, operation};
use nimbus_control_wire::{
    CatalogComponent, ComponentDetail, ComponentDraft, ComponentInstance, ComponentVersion,
    DeprecateVersion, PublishComponent, PublishedComponent, VersionChanges,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::catalog_wire::{
    component, component_detail, component_input, instance, listed_version, version,
    version_changes,
};
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::headers::{IfMatch, etag};
use crate::route::Route;
use crate::wire::Page;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_COMPONENTS, list)
            .asks::<ComponentQuery>()
            .gives::<Page<CatalogComponent>>(),
        Route::new(operation::CREATE_COMPONENT, create)
            .asks::<TenantChoice>()
            .takes::<ComponentDraft>()
            .gives::<CatalogComponent>(),
        Route::new(operation::GET_COMPONENT, get)
            .asks::<TenantChoice>()
            .gives::<ComponentDetail>(),
        Route::new(operation::UPDATE_COMPONENT, update)
            .asks::<TenantChoice>()
            .takes::<ComponentDraft>()
            .gives::<CatalogComponent>(),
        Route::new(operation::DELETE_COMPONENT, delete).asks::<TenantChoice>(),
        Route::new(operation::PUBLISH_COMPONENT, publish)
            .asks::<TenantChoice>()
            .takes::<PublishComponent>()
            .gives::<PublishedComponent>(),
        Route::new(operation::LIST_COMPONENT_VERSIONS, versions)
            .asks::<TenantPage>()
            .gives::<Page<ComponentVersion>>(),
        Route::new(operation::GET_COMPONENT_VERSION, one_version)
            .asks::<TenantChoice>()
            .gives::<ComponentVersion>(),
        Route::new(operation::COMPARE_COMPONENT_VERSIONS, changes)
            .asks::<ChangesQuery>()
            .gives::<VersionChanges>(),
        Route::new(operation::DEPRECATE_COMPONENT, deprecate)
            .asks::<TenantChoice>()
            .takes::<DeprecateVersion>()
            .gives::<ComponentVersion>(),
        Route::new(operation::LIST_COMPONENT_INSTANCES, instances)
            .asks::<TenantPage>()
            .gives::<Page<ComponentInstance>>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ComponentQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only those of this cloud.
    provider: Option<String>,
    /// Only those of this semantic type.
    semantic_type: Option<String>,
    /// Only those with this in name or description.
    text: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

/// A page of something of a tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantPage {
    /// Id or slug of the tenant; your own when absent.
    pub(super) tenant: Option<String>,
    pub(super) after: Option<String>,
    pub(super) limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangesQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// The version to compare with; the one before when absent.
    since: Option<i32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ComponentQuery>,
) -> ApiResult<Json<Page<CatalogComponent>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let filter = ComponentFilter {
        provider: query.provider,
        semantic_type: query.semantic_type,
        text: query.text,
    };
    let found = app.component_list(&call, tenant, filter, page).await?;
    let place = |row: &nimbus_control_app::StoredComponent| row.name.clone();
    Ok(Json(Page::part_as(found, limit, place, |row| {
        component(row, tenant)
    })))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ComponentDraft>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let name = body.name.clone().unwrap_or_default();
    let operation = operation::CREATE_COMPONENT;
    let input = component_input(body);
    let made = app.component_put(&call, operation, tenant, &name, input, None);
    let made = made.await?;
    let tag = etag(made.revision);
    Ok((StatusCode::CREATED, tag, Json(component(made, tenant))))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let view = app.component_get(&call, tenant, &name).await?;
    let tag = etag(view.component.revision);
    Ok((tag, Json(component_detail(view, tenant))))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    IfMatch(revision): IfMatch,
    JsonBody(body): JsonBody<ComponentDraft>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    if body.name.as_ref().is_some_and(|given| *given != name) {
        return Err(Failure::field("name", "the path names another component").into());
    }
    let operation = operation::UPDATE_COMPONENT;
    let input = component_input(body);
    let put = app.component_put(&call, operation, tenant, &name, input, revision);
    let put = put.await?;
    Ok((etag(put.revision), Json(component(put, tenant))))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.component_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn publish(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<PublishComponent>,
) -> ApiResult<(StatusCode, Json<PublishedComponent>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let input = PublishInput {
        changelog: body.changelog,
        allow_breaking: body.allow_breaking,
        upgrade_workflow: body.upgrade_workflow,
    };
    let published = app.component_publish(&call, tenant, &name, input).await?;
    let status = match published.created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let body = PublishedComponent {
        created: published.created,
        version: listed_version(published.version),
    };
    Ok((status, Json(body)))
}

async fn versions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantPage>,
) -> ApiResult<Json<Page<ComponentVersion>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.version_list(&call, tenant, &name, page).await?;
    let place = |row: &nimbus_control_app::StoredVersion| row.version.to_string();
    Ok(Json(Page::part_as(found, limit, place, listed_version)))
}

async fn one_version(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, number)): Segments<(String, i32)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ComponentVersion>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.version_get(&call, tenant, &name, number).await?;
    Ok(Json(version(found)))
}

async fn changes(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, number)): Segments<(String, i32)>,
    ListFilter(query): ListFilter<ChangesQuery>,
) -> ApiResult<Json<VersionChanges>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let since = query.since.unwrap_or_else(|| number.saturating_sub(1));
    let found = app.version_difference(&call, tenant, &name, since, number);
    Ok(Json(version_changes(found.await?)))
}

async fn deprecate(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, number)): Segments<(String, i32)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<DeprecateVersion>,
) -> ApiResult<Json<ComponentVersion>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let changed = app.version_deprecate(&call, tenant, &name, number, body.reason);
    Ok(Json(listed_version(changed.await?)))
}

async fn instances(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantPage>,
) -> ApiResult<Json<Page<ComponentInstance>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.component_instances(&call, tenant, &name, page).await?;
    let place = |row: &nimbus_control_app::DeployedComponent| row.id.to_string();
    Ok(Json(Page::part_as(found, limit, place, instance)))
}
