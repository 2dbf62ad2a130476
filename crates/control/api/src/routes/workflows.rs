//! The installation's workflows and schedules.

use axum::Json;
use axum::extract::State;
use nimbus_control_app::{WorkflowQuestion, operation};
use nimbus_control_wire::{PlatformSchedule, PlatformSchedules, WorkflowEntry, WorkflowList};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{ListFilter, Segments, page};
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_WORKFLOWS, list)
            .asks::<WorkflowQuery>()
            .gives::<WorkflowList>(),
        Route::new(operation::GET_WORKFLOW, get)
            .asks::<TenantChoice>()
            .gives::<WorkflowEntry>(),
        Route::new(operation::LIST_SCHEDULES, schedules)
            .asks::<TenantChoice>()
            .gives::<PlatformSchedules>(),
        Route::new(operation::PAUSE_SCHEDULE, pause)
            .asks::<TenantChoice>()
            .gives::<PlatformSchedule>(),
        Route::new(operation::RESUME_SCHEDULE, resume)
            .asks::<TenantChoice>()
            .gives::<PlatformSchedule>(),
    ]
}

/// Which workflows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkflowQuery {
    /// Id or slug of the tenant; your own when absent. Workflows are the operator's.
    tenant: Option<String>,
    /// Such as `ComponentDeployWorkflow`.
    #[serde(rename = "type")]
    workflow_type: Option<String>,
    /// Ids that begin so: `schedule:NAME:` is the history of a schedule.
    prefix: Option<String>,
    /// Only those that have ended, or only those that have not.
    ended: Option<bool>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<WorkflowQuery>,
) -> ApiResult<Json<WorkflowList>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let question = WorkflowQuestion {
        workflow_type: query.workflow_type,
        prefix: query.prefix,
        ended: query.ended,
        after: page.after,
        limit: page.limit,
    };
    Ok(Json(app.workflow_list(&call, tenant, question).await?))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(workflow): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WorkflowEntry>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.workflow_get(&call, tenant, &workflow).await?))
}

async fn schedules(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<PlatformSchedules>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.schedule_list(&call, tenant).await?))
}

async fn pause(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(schedule): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<PlatformSchedule>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let done = app.schedule_pause(&call, tenant, &schedule, true).await?;
    Ok(Json(done))
}

async fn resume(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(schedule): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<PlatformSchedule>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let done = app.schedule_pause(&call, tenant, &schedule, false).await?;
    Ok(Json(done))
}
