//! Stacks and templates of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{RunInput, describe_run, operation};
use nimbus_control_wire::Run;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::deployment_wire::{DeployStack, NewStack, NewTemplate, ReplaceStack, Stack, Template};
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::headers::RepeatKey;
use crate::route::Route;
use crate::wire::Page;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_STACKS, stacks)
            .asks::<LibraryQuery>()
            .gives::<Page<Stack>>(),
        Route::new(operation::REGISTER_STACK, register)
            .asks::<TenantChoice>()
            .takes::<NewStack>()
            .gives::<Stack>(),
        Route::new(operation::GET_STACK, stack)
            .asks::<TenantChoice>()
            .gives::<Stack>(),
        Route::new(operation::UPDATE_STACK, replace)
            .asks::<TenantChoice>()
            .takes::<ReplaceStack>()
            .gives::<Stack>(),
        Route::new(operation::UNREGISTER_STACK, unregister).asks::<TenantChoice>(),
        Route::new(operation::DEPLOY_STACK, deploy)
            .asks::<TenantChoice>()
            .takes::<DeployStack>()
            .gives::<Run>(),
        Route::new(operation::LIST_TEMPLATES, templates)
            .asks::<LibraryQuery>()
            .gives::<Page<Template>>(),
        Route::new(operation::CREATE_TEMPLATE, create)
            .asks::<TenantChoice>()
            .takes::<NewTemplate>()
            .gives::<Template>(),
        Route::new(operation::GET_TEMPLATE, template)
            .asks::<TenantChoice>()
            .gives::<Template>(),
        Route::new(operation::DELETE_TEMPLATE, delete).asks::<TenantChoice>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LibraryQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn stacks(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<LibraryQuery>,
) -> ApiResult<Json<Page<Stack>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.stack_list(&call, tenant, page).await?;
    Ok(Json(Page::part(found, limit, |one| one.name.clone())))
}

async fn stack(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Stack>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.stack_get(&call, tenant, &name).await?.into()))
}

async fn register(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<NewStack>,
) -> ApiResult<(StatusCode, Json<Stack>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let operation = operation::REGISTER_STACK;
    let NewStack {
        name,
        template,
        files,
    } = body;
    let put = app.stack_put(&call, operation, tenant, &name, template, files);
    Ok((StatusCode::CREATED, Json(put.await?.into())))
}

async fn replace(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ReplaceStack>,
) -> ApiResult<Json<Stack>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let operation = operation::UPDATE_STACK;
    let put = app.stack_put(&call, operation, tenant, &name, body.template, body.files);
    Ok(Json(put.await?.into()))
}

async fn unregister(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.stack_remove(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn deploy(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    key: RepeatKey,
    JsonBody(body): JsonBody<DeployStack>,
) -> ApiResult<(StatusCode, Json<Run>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let key = key.of(&(&name, &body));
    let input = RunInput {
        environment: body.environment,
        rehearsal: body.rehearsal,
        force: body.force,
        components: Some(vec![name]),
        ..RunInput::default()
    };
    let operation = operation::DEPLOY_STACK;
    let queued = app.run_start(&call, operation, tenant, &body.deployment, input, key);
    Ok((StatusCode::ACCEPTED, Json(describe_run(queued.await?))))
}

async fn templates(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<LibraryQuery>,
) -> ApiResult<Json<Page<Template>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.template_list(&call, tenant, page).await?;
    Ok(Json(Page::part(found, limit, |one| one.name.clone())))
}

async fn template(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Template>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.template_get(&call, tenant, &name).await?.into()))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<NewTemplate>,
) -> ApiResult<(StatusCode, Json<Template>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let made = app.template_create(&call, tenant, body.content).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.template_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
