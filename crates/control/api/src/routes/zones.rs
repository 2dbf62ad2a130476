//! Landing zones and environments in them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    Failure, LandingZone, TenantEnvironment, ZoneEnvironmentInput, operation,
};
use nimbus_control_wire::{
    NewZoneEnvironment, PublishZone, SetZoneTemplate, ZoneDetail, ZoneDraft, ZoneEnvironment,
    ZoneEnvironmentDetail, ZoneSummary, ZoneTemplate,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::components::TenantPage;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::catalog_wire::{
    environment_detail, placed, zone, zone_detail, zone_environment, zone_input, zone_template,
};
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::Page;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_ZONES, list)
            .asks::<TenantPage>()
            .gives::<Page<ZoneSummary>>(),
        Route::new(operation::CREATE_ZONE, create)
            .asks::<TenantChoice>()
            .takes::<ZoneDraft>()
            .gives::<ZoneSummary>(),
        Route::new(operation::GET_ZONE, get)
            .asks::<TenantChoice>()
            .gives::<ZoneDetail>(),
        Route::new(operation::UPDATE_ZONE, update)
            .asks::<TenantChoice>()
            .takes::<ZoneDraft>()
            .gives::<ZoneSummary>(),
        Route::new(operation::DELETE_ZONE, delete).asks::<TenantChoice>(),
        Route::new(operation::PUBLISH_ZONE, publish)
            .asks::<TenantChoice>()
            .takes::<PublishZone>()
            .gives::<ZoneDetail>(),
        Route::new(operation::RETIRE_ZONE, retire)
            .asks::<TenantChoice>()
            .gives::<ZoneSummary>(),
        Route::new(operation::PUT_ENVIRONMENT_TEMPLATE, put_template)
            .asks::<TenantChoice>()
            .takes::<SetZoneTemplate>()
            .gives::<ZoneTemplate>(),
        Route::new(operation::DELETE_ENVIRONMENT_TEMPLATE, delete_template).asks::<TenantChoice>(),
        Route::new(operation::LIST_ZONE_ENVIRONMENTS, environments)
            .asks::<EnvironmentQuery>()
            .gives::<Page<ZoneEnvironment>>(),
        Route::new(operation::GET_ZONE_ENVIRONMENT, environment)
            .asks::<TenantChoice>()
            .gives::<ZoneEnvironmentDetail>(),
        Route::new(operation::CREATE_ZONE_ENVIRONMENT, create_environment)
            .asks::<TenantChoice>()
            .takes::<NewZoneEnvironment>()
            .gives::<ZoneEnvironment>(),
        Route::new(operation::DELETE_ZONE_ENVIRONMENT, delete_environment)
            .asks::<TenantChoice>()
            .gives::<ZoneEnvironment>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EnvironmentQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only those of this zone.
    zone: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantPage>,
) -> ApiResult<Json<Page<ZoneSummary>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.zone_list(&call, tenant, page).await?;
    let place = |row: &LandingZone| row.name.clone();
    Ok(Json(Page::part_as(found, limit, place, |row| {
        zone(row, tenant)
    })))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ZoneDraft>,
) -> ApiResult<(StatusCode, Json<ZoneSummary>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let name = body.name.clone().unwrap_or_default();
    let operation = operation::CREATE_ZONE;
    let made = app.zone_put(&call, operation, tenant, &name, zone_input(body));
    Ok((StatusCode::CREATED, Json(zone(made.await?, tenant))))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ZoneDetail>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let view = app.zone_get(&call, tenant, &name).await?;
    Ok(Json(zone_detail(view, tenant)))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ZoneDraft>,
) -> ApiResult<Json<ZoneSummary>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    if body.name.as_ref().is_some_and(|given| *given != name) {
        return Err(Failure::field("name", "the path names another zone").into());
    }
    let operation = operation::UPDATE_ZONE;
    let put = app.zone_put(&call, operation, tenant, &name, zone_input(body));
    Ok(Json(zone(put.await?, tenant)))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.zone_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn publish(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<PublishZone>,
) -> ApiResult<Json<ZoneDetail>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let view = app
        .zone_publish(&call, tenant, &name, body.rehearsal)
        .await?;
    Ok(Json(zone_detail(view, tenant)))
}

async fn retire(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ZoneSummary>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let retired = app.zone_retire(&call, tenant, &name).await?;
    Ok(Json(zone(retired, tenant)))
}

async fn put_template(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, template)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetZoneTemplate>,
) -> ApiResult<Json<ZoneTemplate>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let components = placed(body.mandatory_components);
    let place = (name.as_str(), template.as_str());
    let put = app.environment_template_put(&call, tenant, place, &body.description, components);
    Ok(Json(zone_template(put.await?)))
}

async fn delete_template(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, template)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.environment_template_delete(&call, tenant, &name, &template)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn environments(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<EnvironmentQuery>,
) -> ApiResult<Json<Page<ZoneEnvironment>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app
        .zone_environments(&call, tenant, query.zone, page)
        .await?;
    let place = |row: &TenantEnvironment| row.id.to_string();
    Ok(Json(Page::part_as(found, limit, place, zone_environment)))
}

async fn environment(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, environment)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ZoneEnvironmentDetail>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.zone_environment_get(&call, tenant, &name, &environment);
    Ok(Json(environment_detail(found.await?)))
}

async fn create_environment(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, environment)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<NewZoneEnvironment>,
) -> ApiResult<(StatusCode, Json<ZoneEnvironment>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let input = ZoneEnvironmentInput {
        template: body.template,
        rehearsal: body.rehearsal,
    };
    let made = app.zone_environment_create(&call, tenant, &name, &environment, input);
    Ok((StatusCode::ACCEPTED, Json(zone_environment(made.await?))))
}

async fn delete_environment(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, environment)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<(StatusCode, Json<ZoneEnvironment>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let gone = app.zone_environment_delete(&call, tenant, &name, &environment);
    Ok((StatusCode::ACCEPTED, Json(zone_environment(gone.await?))))
}
