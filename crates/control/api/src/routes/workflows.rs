//! The installation's workflows and schedules.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{ScheduleInput, TenantSchedule, WorkflowQuestion, operation};
use nimbus_control_wire::{
    CustomSchedule, PlatformSchedule, PlatformSchedules, SetSchedule, WorkflowAnswer,
    WorkflowEntry, WorkflowList,
};
use nimbus_core::TenantId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::WholeList;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_WORKFLOWS, list)
            .asks::<WorkflowQuery>()
            .gives::<WorkflowList>(),
        Route::new(operation::GET_WORKFLOW, get)
            .asks::<TenantChoice>()
            .gives::<WorkflowEntry>(),
        Route::new(operation::QUERY_WORKFLOW, query)
            .asks::<TenantChoice>()
            .gives::<WorkflowAnswer>(),
        Route::new(operation::LIST_TENANT_SCHEDULES, custom).gives::<WholeList<CustomSchedule>>(),
        Route::new(operation::PUT_TENANT_SCHEDULE, put_custom)
            .takes::<SetSchedule>()
            .gives::<CustomSchedule>(),
        Route::new(operation::DELETE_TENANT_SCHEDULE, delete_custom),
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

async fn query(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((workflow, asked)): Segments<(String, String)>,
    ListFilter(choice): ListFilter<TenantChoice>,
) -> ApiResult<Json<WorkflowAnswer>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, choice.tenant.as_deref()).await?;
    let answer = app.workflow_query(&call, tenant, &workflow, &asked).await?;
    Ok(Json(answer))
}

/// All of them: a tenant has few.
async fn custom(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<CustomSchedule>>> {
    let found = state.app.tenant_schedule_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, custom_schedule)))
}

async fn put_custom(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<SetSchedule>,
) -> ApiResult<Json<CustomSchedule>> {
    let input = ScheduleInput {
        action: body.action,
        deployment: body.deployment,
        environment: body.environment,
        rehearsal: body.rehearsal,
        cron: body.cron,
        time_zone: body.time_zone,
        paused: body.paused,
    };
    let put = state.app.tenant_schedule_put(&call, tenant, &name, input);
    Ok(Json(custom_schedule(put.await?)))
}

async fn delete_custom(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
) -> ApiResult<StatusCode> {
    state
        .app
        .tenant_schedule_delete(&call, tenant, &name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn custom_schedule(row: TenantSchedule) -> CustomSchedule {
    CustomSchedule {
        workflow_prefix: format!("schedule:tenant.{}.{}:", row.tenant_id, row.name),
        name: row.name,
        action: row.action,
        deployment: row.deployment,
        environment: row.environment,
        rehearsal: row.rehearsal,
        cron: row.cron,
        time_zone: row.time_zone,
        paused: row.paused,
        requested_by: row.requested_by.to_string(),
        updated_at: row.updated_at.0.to_string(),
    }
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
