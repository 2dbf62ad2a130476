//! Deployments and their environments.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use nimbus_control_app::operation::{self, Operation};
use nimbus_control_app::{DeploymentFilter, StatePlace, StoredDeployment, describe_run};
use nimbus_control_wire::{
    Deployment, EnvironmentGate, EnvironmentGates, EnvironmentVersion, Environments, ManifestText,
    NewDeployment, Run, SignGate, StartRun,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::deployment_wire::{deployment, deployment_input, environment, run_input};
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::headers::{IfMatch, RepeatKey, etag};
use crate::route::Route;
use crate::wire::Page;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_DEPLOYMENTS, list)
            .asks::<DeploymentQuery>()
            .gives::<Page<Deployment>>(),
        Route::new(operation::CREATE_DEPLOYMENT, create)
            .asks::<TenantChoice>()
            .takes::<NewDeployment>()
            .gives::<Deployment>(),
        Route::new(operation::GET_DEPLOYMENT, get)
            .asks::<TenantChoice>()
            .gives::<Deployment>(),
        Route::new(operation::UPDATE_DEPLOYMENT, update)
            .asks::<TenantChoice>()
            .takes::<ManifestText>()
            .gives::<Deployment>(),
        Route::new(operation::DELETE_DEPLOYMENT, delete).asks::<TenantChoice>(),
        Route::new(operation::GET_MANIFEST, manifest)
            .asks::<TenantChoice>()
            .gives::<ManifestText>(),
        Route::new(operation::DEPLOYMENT_STATUS, status)
            .asks::<StatusQuery>()
            .gives::<Environments>(),
        Route::new(operation::LIST_ENVIRONMENTS, environments)
            .asks::<TenantChoice>()
            .gives::<Environments>(),
        Route::new(operation::LIST_VERSIONS, versions)
            .asks::<VersionQuery>()
            .gives::<Page<EnvironmentVersion>>(),
        Route::new(operation::ENABLE_ENVIRONMENT, enable)
            .asks::<TenantChoice>()
            .gives::<Deployment>(),
        Route::new(operation::DISABLE_ENVIRONMENT, disable)
            .asks::<TenantChoice>()
            .gives::<Deployment>(),
        Route::new(operation::LIST_GATES, gates)
            .asks::<GateQuery>()
            .gives::<EnvironmentGates>(),
        Route::new(operation::SIGN_GATE, sign_gate)
            .asks::<TenantChoice>()
            .takes::<SignGate>()
            .gives::<EnvironmentGate>(),
        run_route(operation::DEPLOY, deploy),
        run_route(operation::DESTROY, destroy),
        run_route(operation::PREVIEW, preview),
        run_route(operation::ROLL_BACK, roll_back),
        run_route(operation::REFRESH_DEPLOYMENT, refresh),
    ]
}

fn run_route<H, T>(operation: Operation, handler: H) -> Route
where
    H: axum::handler::Handler<T, ApiState>,
    T: 'static,
{
    Route::new(operation, handler)
        .asks::<TenantChoice>()
        .takes::<StartRun>()
        .gives::<Run>()
}

/// Whose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantChoice {
    /// Id or slug of the tenant; your own when absent.
    pub(super) tenant: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeploymentQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    organization: Option<String>,
    project: Option<String>,
    template: Option<String>,
    /// Also those that were taken out of use.
    #[serde(default)]
    archived: bool,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// That of the simulated cloud, or that of the real one, with its version and its stacks. When absent, only the
    /// newest run of either.
    rehearsal: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VersionQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Those of the simulated cloud.
    #[serde(default)]
    rehearsal: bool,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GateQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Those of the simulated cloud.
    #[serde(default)]
    rehearsal: bool,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<DeploymentQuery>,
) -> ApiResult<Json<Page<Deployment>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let filter = DeploymentFilter {
        organization: query.organization,
        project: query.project,
        template: query.template,
        archived: query.archived,
    };
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.deployment_list(&call, tenant, filter, page).await?;
    Ok(Json(Page::part_as(
        found,
        limit,
        |one| one.id.clone(),
        deployment,
    )))
}

async fn create(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    key: RepeatKey,
    JsonBody(body): JsonBody<NewDeployment>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let key = key.of(&body);
    let made = app
        .deployment_create(&call, tenant, deployment_input(body), key)
        .await?;
    Ok((StatusCode::CREATED, tagged(made)))
}

/// With its entity tag.
fn tagged(stored: StoredDeployment) -> impl IntoResponse {
    let tag = etag(stored.revision);
    (tag, Json(deployment(stored)))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app
        .deployment_get(&call, operation::GET_DEPLOYMENT, tenant, &id)
        .await?;
    Ok(tagged(found))
}

async fn manifest(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app
        .deployment_get(&call, operation::GET_MANIFEST, tenant, &id)
        .await?;
    let text = ManifestText {
        manifest: found.manifest,
    };
    Ok((etag(found.revision), Json(text)))
}

async fn update(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    IfMatch(revision): IfMatch,
    JsonBody(body): JsonBody<ManifestText>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let written = app
        .deployment_write(&call, tenant, &id, revision, body.manifest)
        .await?;
    Ok(tagged(written))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.deployment_delete(&call, tenant, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn status(
    state: State<ApiState>,
    call: SignedCall,
    id: Segments<String>,
    ListFilter(query): ListFilter<StatusQuery>,
) -> ApiResult<Json<Environments>> {
    let StatusQuery { tenant, rehearsal } = query;
    let operation = operation::DEPLOYMENT_STATUS;
    overview(operation, state, call, id, tenant, rehearsal).await
}

async fn environments(
    state: State<ApiState>,
    call: SignedCall,
    id: Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Environments>> {
    let operation = operation::LIST_ENVIRONMENTS;
    overview(operation, state, call, id, query.tenant, None).await
}

async fn overview(
    operation: Operation,
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    tenant: Option<String>,
    rehearsal: Option<bool>,
) -> ApiResult<Json<Environments>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, tenant.as_deref()).await?;
    let found = app
        .deployment_environments(&call, operation, tenant, &id, rehearsal)
        .await?;
    let items = found.into_iter().map(environment).collect();
    Ok(Json(Environments { items }))
}

async fn versions(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((id, environment)): Segments<(String, String)>,
    ListFilter(query): ListFilter<VersionQuery>,
) -> ApiResult<Json<Page<EnvironmentVersion>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page::<u32>(query.after, query.limit)?;
    let limit = page.limit;
    let place = StatePlace {
        deployment: id,
        environment,
        rehearsal: query.rehearsal,
    };
    let found = app.environment_versions(&call, tenant, place, page).await?;
    let at = |one: &EnvironmentVersion| one.version.to_string();
    Ok(Json(Page::part_as(found, limit, at, |one| one)))
}

async fn enable(
    state: State<ApiState>,
    call: SignedCall,
    segments: Segments<(String, String)>,
    query: ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    switch(true, state, call, segments, query).await
}

async fn disable(
    state: State<ApiState>,
    call: SignedCall,
    segments: Segments<(String, String)>,
    query: ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    switch(false, state, call, segments, query).await
}

async fn switch(
    enabled: bool,
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((id, environment)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<impl IntoResponse> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let written = app
        .environment_switch(&call, tenant, &id, &environment, enabled)
        .await?;
    Ok(tagged(written))
}

async fn gates(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<String>,
    ListFilter(query): ListFilter<GateQuery>,
) -> ApiResult<Json<EnvironmentGates>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let items = app.gate_list(&call, tenant, &id, query.rehearsal).await?;
    Ok(Json(EnvironmentGates { items }))
}

async fn sign_gate(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((id, environment, item)): Segments<(String, String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SignGate>,
) -> ApiResult<Json<EnvironmentGate>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = StatePlace {
        deployment: id,
        environment,
        rehearsal: body.rehearsal,
    };
    let gate = app
        .gate_sign(&call, tenant, place, &item, &body.note)
        .await?;
    Ok(Json(gate))
}

/// The parts of a request for a run.
type Asked = (
    State<ApiState>,
    SignedCall,
    Segments<String>,
    ListFilter<TenantChoice>,
    RepeatKey,
    JsonBody<StartRun>,
);

async fn start(operation: Operation, asked: Asked) -> ApiResult<(StatusCode, Json<Run>)> {
    let (State(state), SignedCall(call), Segments(id), ListFilter(query), key, JsonBody(body)) =
        asked;
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let key = key.of(&(&id, &body));
    let queued = app
        .run_start(&call, operation, tenant, &id, run_input(body), key)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(describe_run(queued))))
}

macro_rules! starts {
    ($($name:ident $operation:ident;)*) => {
        $(async fn $name(
            state: State<ApiState>,
            call: SignedCall,
            id: Segments<String>,
            query: ListFilter<TenantChoice>,
            key: RepeatKey,
            body: JsonBody<StartRun>,
        ) -> ApiResult<(StatusCode, Json<Run>)> {
            start(operation::$operation, (state, call, id, query, key, body)).await
        })*
    };
}

starts! {
    deploy DEPLOY;
    destroy DESTROY;
    preview PREVIEW;
    roll_back ROLL_BACK;
    refresh REFRESH_DEPLOYMENT;
}
