//! What was deployed: resources, outputs, whole states.

use axum::Json;
use axum::extract::State;
use nimbus_control_app::{Failure, StatePlace, operation};
use nimbus_control_wire::{DeploymentOutputs, DeploymentState, StateExport};
use nimbus_core::EnvironmentName;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments};
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::DEPLOYMENT_STATE, state)
            .asks::<StateQuery>()
            .gives::<DeploymentState>(),
        Route::new(operation::DEPLOYMENT_OUTPUTS, outputs)
            .asks::<StateQuery>()
            .gives::<DeploymentOutputs>(),
        Route::new(operation::EXPORT_STATE, export)
            .asks::<TenantChoice>()
            .takes::<ExportState>()
            .gives::<StateExport>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StateQuery {
    /// Id or slug of the tenant; your own when absent.
    pub(super) tenant: Option<String>,
    pub(super) environment: String,
    /// That of the simulated cloud.
    #[serde(default)]
    pub(super) rehearsal: bool,
}

/// Which states.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportState {
    environment: String,
    /// That of the simulated cloud.
    #[serde(default)]
    rehearsal: bool,
}

pub(super) fn place(
    deployment: String,
    environment: String,
    rehearsal: bool,
) -> Result<StatePlace, Failure> {
    environment
        .parse::<EnvironmentName>()
        .map_err(|_| Failure::field("environment", "this is not the name of an environment"))?;
    Ok(StatePlace {
        deployment,
        environment,
        rehearsal,
    })
}

async fn state(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(deployment): Segments<String>,
    ListFilter(query): ListFilter<StateQuery>,
) -> ApiResult<Json<DeploymentState>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = place(deployment, query.environment, query.rehearsal)?;
    Ok(Json(app.deployment_state(&call, tenant, place).await?))
}

async fn outputs(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(deployment): Segments<String>,
    ListFilter(query): ListFilter<StateQuery>,
) -> ApiResult<Json<DeploymentOutputs>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = place(deployment, query.environment, query.rehearsal)?;
    Ok(Json(app.deployment_outputs(&call, tenant, place).await?))
}

async fn export(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(deployment): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ExportState>,
) -> ApiResult<Json<StateExport>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = place(deployment, body.environment, body.rehearsal)?;
    Ok(Json(app.state_export(&call, tenant, place).await?))
}
