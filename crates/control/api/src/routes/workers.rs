//! Workers on other machines: what operators ask about them, and what they ask themselves.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use nimbus_control_app::operation;
use nimbus_control_wire::{
    JoinWorker, TakeRun, TakenRunView, WorkerAnswer, WorkerBeat, WorkerCall, WorkerList,
    WorkerOrders, WorkerView,
};
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::{SignedCall, WorkerSigned};
use crate::extract::{JsonBody, ListFilter, Segments};
use crate::route::Route;

/// A state is one body, and there are large ones.
const LARGEST_CALL: usize = 128 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    let mut call = Route::new(operation::CALL_RUN, call)
        .asks::<TenantChoice>()
        .takes::<WorkerCall>()
        .gives::<WorkerAnswer>();
    call.handler = call.handler.layer(DefaultBodyLimit::max(LARGEST_CALL));
    vec![
        Route::new(operation::LIST_WORKERS, list)
            .asks::<TenantChoice>()
            .gives::<WorkerList>(),
        Route::new(operation::JOIN_WORKER, join)
            .asks::<TenantChoice>()
            .takes::<JoinWorker>()
            .gives::<WorkerView>(),
        Route::new(operation::DRAIN_WORKER, drain)
            .asks::<TenantChoice>()
            .gives::<WorkerView>(),
        Route::new(operation::RESUME_WORKER, resume)
            .asks::<TenantChoice>()
            .gives::<WorkerView>(),
        Route::new(operation::LEAVE_WORKER, leave).asks::<TenantChoice>(),
        Route::new(operation::BEAT_WORKER, beat)
            .asks::<TenantChoice>()
            .takes::<WorkerBeat>()
            .gives::<WorkerOrders>(),
        Route::new(operation::TAKE_RUN, take)
            .asks::<TenantChoice>()
            .takes::<TakeRun>()
            .gives::<TakenRunView>(),
        call,
    ]
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WorkerList>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.worker_list(&call, tenant).await?))
}

async fn join(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<JoinWorker>,
) -> ApiResult<(StatusCode, Json<WorkerView>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let joined = app.worker_join(&call, tenant, body).await?;
    Ok((StatusCode::CREATED, Json(joined)))
}

async fn drain(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(worker): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WorkerView>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.worker_drain(&call, tenant, &worker, true).await?))
}

async fn resume(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(worker): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WorkerView>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.worker_drain(&call, tenant, &worker, false).await?))
}

async fn leave(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(worker): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.worker_leave(&call, tenant, worker).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn beat(
    State(state): State<ApiState>,
    WorkerSigned(call): WorkerSigned,
    Segments(worker): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<WorkerBeat>,
) -> ApiResult<Json<WorkerOrders>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.worker_beat(&call, tenant, worker, body).await?))
}

async fn take(
    State(state): State<ApiState>,
    WorkerSigned(call): WorkerSigned,
    Segments(worker): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<TakeRun>,
) -> ApiResult<Json<TakenRunView>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.worker_take(&call, tenant, worker, body).await?))
}

async fn call(
    State(state): State<ApiState>,
    WorkerSigned(call): WorkerSigned,
    Segments((worker, run)): Segments<(Uuid, Uuid)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<WorkerCall>,
) -> ApiResult<Json<WorkerAnswer>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let answer = app.worker_call(&call, tenant, worker, run, body).await?;
    Ok(Json(answer))
}
