//! Instances of components, what a version would mean for them, and roll-outs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    DeployedComponent, FleetFilter, InstanceFilter, InstanceInput, RolloutSignal, RowCursor,
    describe_impact, describe_preview, describe_rollout, describe_rollout_detail, describe_run,
    operation, rollout_input,
};
use nimbus_control_wire::{
    ComponentImpact, ComponentInstance, PreviewComponent, PreviewedInstance, RolloutDetail,
    RolloutSummary, Run, RunInstance, StartRollout, UpgradeInstance,
};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::catalog_wire::instance;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, WholeList};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::COMPONENT_IMPACT, impact)
            .asks::<ImpactQuery>()
            .gives::<ComponentImpact>(),
        Route::new(operation::PREVIEW_COMPONENT, previews)
            .asks::<TenantChoice>()
            .takes::<PreviewComponent>()
            .gives::<WholeList<PreviewedInstance>>(),
        Route::new(operation::START_ROLLOUT, start)
            .asks::<TenantChoice>()
            .takes::<StartRollout>()
            .gives::<RolloutDetail>(),
        Route::new(operation::LIST_INSTANCES, instances)
            .asks::<InstanceQuery>()
            .gives::<Page<ComponentInstance>>(),
        Route::new(operation::GET_INSTANCE, one_instance)
            .asks::<TenantChoice>()
            .gives::<ComponentInstance>(),
        Route::new(operation::DEPLOY_INSTANCE, deploy)
            .asks::<TenantChoice>()
            .takes::<RunInstance>()
            .gives::<Run>(),
        Route::new(operation::DESTROY_INSTANCE, destroy)
            .asks::<TenantChoice>()
            .takes::<RunInstance>()
            .gives::<Run>(),
        Route::new(operation::PREVIEW_INSTANCE, preview)
            .asks::<TenantChoice>()
            .takes::<UpgradeInstance>()
            .gives::<Run>(),
        Route::new(operation::UPGRADE_INSTANCE, upgrade)
            .asks::<TenantChoice>()
            .takes::<UpgradeInstance>()
            .gives::<Run>(),
        Route::new(operation::LIST_ROLLOUTS, rollouts)
            .asks::<RolloutQuery>()
            .gives::<Page<RolloutSummary>>(),
        Route::new(operation::GET_ROLLOUT, one_rollout)
            .asks::<TenantChoice>()
            .gives::<RolloutDetail>(),
        Route::new(operation::PAUSE_ROLLOUT, pause)
            .asks::<TenantChoice>()
            .gives::<RolloutDetail>(),
        Route::new(operation::RESUME_ROLLOUT, resume)
            .asks::<TenantChoice>()
            .gives::<RolloutDetail>(),
        Route::new(operation::STOP_ROLLOUT, stop)
            .asks::<TenantChoice>()
            .gives::<RolloutDetail>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImpactQuery {
    /// Id or slug of the tenant; your own when absent. Instances of all below it are told as well.
    tenant: Option<String>,
    /// The newest version that can be used when absent.
    version: Option<i32>,
    /// Only instances of this environment.
    environment: Option<String>,
    /// Only instances on simulated clouds, or only on real ones.
    rehearsal: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InstanceQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    environment: Option<String>,
    deployment: Option<String>,
    component: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RolloutQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    component: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn impact(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<ImpactQuery>,
) -> ApiResult<Json<ComponentImpact>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let filter = FleetFilter {
        environments: query.environment.map(|name| vec![name]),
        rehearsal: query.rehearsal,
    };
    let found = app.fleet_impact(&call, tenant, &name, query.version, filter);
    Ok(Json(describe_impact(found.await?)))
}

async fn previews(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<PreviewComponent>,
) -> ApiResult<(StatusCode, Json<WholeList<PreviewedInstance>>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let filter = FleetFilter {
        environments: body.environments,
        rehearsal: Some(body.rehearsal),
    };
    let asked = app.fleet_previews(&call, tenant, &name, body.version, filter);
    let items = asked.await?.into_iter().map(describe_preview).collect();
    Ok((StatusCode::ACCEPTED, Json(WholeList { items })))
}

async fn start(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<StartRollout>,
) -> ApiResult<(StatusCode, Json<RolloutDetail>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let input = rollout_input(body)?;
    let made = app.rollout_start(&call, tenant, &name, input).await?;
    let body = describe_rollout_detail(made)?;
    Ok((StatusCode::CREATED, Json(body)))
}

async fn instances(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<InstanceQuery>,
) -> ApiResult<Json<Page<ComponentInstance>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let filter = InstanceFilter {
        deployment: query.deployment,
        environment: query.environment,
        component: query.component,
    };
    let found = app.instance_list(&call, tenant, filter, page).await?;
    let place = |row: &DeployedComponent| row.id.to_string();
    Ok(Json(Page::part_as(found, limit, place, instance)))
}

async fn one_instance(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ComponentInstance>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(instance(app.instance_get(&call, tenant, id).await?)))
}

macro_rules! acts {
    ($($name:ident $operation:ident $body:ident $version:expr;)*) => {
        $(async fn $name(
            State(state): State<ApiState>,
            SignedCall(call): SignedCall,
            Segments(id): Segments<Uuid>,
            ListFilter(query): ListFilter<TenantChoice>,
            JsonBody(body): JsonBody<$body>,
        ) -> ApiResult<(StatusCode, Json<Run>)> {
            let app = &state.app;
            let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
            let version: fn(&$body) -> Option<i32> = $version;
            let input = InstanceInput {
                version: version(&body),
                message: body.message,
            };
            let operation = operation::$operation;
            let queued = app.instance_act(&call, operation, tenant, id, input).await?;
            Ok((StatusCode::ACCEPTED, Json(describe_run(queued))))
        })*
    };
}

acts! {
    deploy DEPLOY_INSTANCE RunInstance |_| None;
    destroy DESTROY_INSTANCE RunInstance |_| None;
    preview PREVIEW_INSTANCE UpgradeInstance |body| body.version;
    upgrade UPGRADE_INSTANCE UpgradeInstance |body| body.version;
}

async fn rollouts(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<RolloutQuery>,
) -> ApiResult<Json<Page<RolloutSummary>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit as usize;
    let found = app
        .rollout_list(&call, tenant, query.component, page)
        .await?;
    let next = found.last().filter(|_| found.len() >= limit).map(|row| {
        let (at, id) = (row.requested_at, row.id);
        RowCursor { at, id }.to_string()
    });
    let items = found.into_iter().map(describe_rollout);
    Ok(Json(Page {
        items: items.collect::<Result<_, _>>()?,
        next,
    }))
}

async fn one_rollout(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(id): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<RolloutDetail>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.rollout_get(&call, tenant, id).await?;
    Ok(Json(describe_rollout_detail(found)?))
}

macro_rules! signals {
    ($($name:ident $signal:ident;)*) => {
        $(async fn $name(
            State(state): State<ApiState>,
            SignedCall(call): SignedCall,
            Segments(id): Segments<Uuid>,
            ListFilter(query): ListFilter<TenantChoice>,
        ) -> ApiResult<Json<RolloutDetail>> {
            let app = &state.app;
            let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
            let signal = RolloutSignal::$signal;
            let changed = app.rollout_signal(&call, tenant, id, signal).await?;
            Ok(Json(describe_rollout_detail(changed)?))
        })*
    };
}

signals! {
    pause Pause;
    resume Resume;
    stop Stop;
}
