//! The state of one unit: its versions, what differs between two, whether it is sound, and its repair.

use axum::Json;
use axum::extract::State;
use nimbus_control_app::{Failure, UnitPlace, operation};
use nimbus_control_wire::{RepairUnit, StateDifference, UnitHealth, UnitHistory, UnitRepairReport};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use super::states::{StateQuery, place};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments};
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::UNIT_HISTORY, history)
            .asks::<StateQuery>()
            .gives::<UnitHistory>(),
        Route::new(operation::UNIT_DIFFERENCE, difference)
            .asks::<DifferenceQuery>()
            .gives::<StateDifference>(),
        Route::new(operation::UNIT_HEALTH, health)
            .asks::<StateQuery>()
            .gives::<UnitHealth>(),
        Route::new(operation::REPAIR_UNIT, repair)
            .asks::<TenantChoice>()
            .takes::<RepairUnit>()
            .gives::<UnitRepairReport>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DifferenceQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    environment: String,
    /// That of the simulated cloud.
    #[serde(default)]
    rehearsal: bool,
    /// The number of a version, 0 for nothing at all; the current state when absent.
    from: Option<u64>,
    /// The same for the other side.
    to: Option<u64>,
}

fn unit_place(
    (deployment, unit): (String, String),
    environment: String,
    rehearsal: bool,
) -> Result<UnitPlace, Failure> {
    Ok(UnitPlace {
        place: place(deployment, environment, rehearsal)?,
        unit,
    })
}

async fn history(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(path): Segments<(String, String)>,
    ListFilter(query): ListFilter<StateQuery>,
) -> ApiResult<Json<UnitHistory>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = unit_place(path, query.environment, query.rehearsal)?;
    Ok(Json(app.unit_history(&call, tenant, place).await?))
}

async fn difference(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(path): Segments<(String, String)>,
    ListFilter(query): ListFilter<DifferenceQuery>,
) -> ApiResult<Json<StateDifference>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = unit_place(path, query.environment, query.rehearsal)?;
    let found = app.unit_difference(&call, tenant, place, query.from, query.to);
    Ok(Json(found.await?))
}

async fn health(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(path): Segments<(String, String)>,
    ListFilter(query): ListFilter<StateQuery>,
) -> ApiResult<Json<UnitHealth>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = unit_place(path, query.environment, query.rehearsal)?;
    Ok(Json(app.unit_health(&call, tenant, place).await?))
}

async fn repair(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(path): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<RepairUnit>,
) -> ApiResult<Json<UnitRepairReport>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let place = unit_place(path, body.environment.clone(), body.rehearsal)?;
    Ok(Json(app.unit_repair(&call, tenant, place, body).await?))
}
