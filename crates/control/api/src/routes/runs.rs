//! Runs of deployments.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    Failure, QueuedRun, RunFilter, RunSignal, StoredRun, describe_run, operation,
};
use nimbus_control_wire::{NumberedEvent, Run, RunEvents};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{ListFilter, Segments, page, page_size};
use crate::route::Route;
use crate::wire::{Page, place};

/// Events of one answer.
const USUAL_EVENTS: u32 = 500;
const MOST_EVENTS: u32 = 1000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_RUNS, list)
            .asks::<RunQuery>()
            .gives::<Page<Run>>(),
        Route::new(operation::GET_RUN, get)
            .asks::<TenantChoice>()
            .gives::<Run>(),
        Route::new(operation::RUN_EVENTS, events)
            .asks::<EventQuery>()
            .gives::<RunEvents>(),
        Route::new(operation::CANCEL_RUN, cancel)
            .asks::<TenantChoice>()
            .gives::<Run>(),
        Route::new(operation::PAUSE_RUN, pause)
            .asks::<TenantChoice>()
            .gives::<Run>(),
        Route::new(operation::RESUME_RUN, resume)
            .asks::<ResumeQuery>()
            .gives::<Run>(),
    ]
}

/// How a run goes on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Creates of unknown outcome were looked for in the cloud, in vain: make those resources again.
    #[serde(default)]
    forget_creates: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    deployment: Option<String>,
    environment: Option<String>,
    action: Option<String>,
    status: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only events after this one.
    #[serde(default)]
    after: i64,
    /// So many at once, 1 to 1000.
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<RunQuery>,
) -> ApiResult<Json<Page<Run>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let filter = RunFilter {
        deployment: query.deployment,
        environment: query.environment,
        action: query.action,
        status: query.status,
        environments: None,
    };
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let runs = app.run_list(&call, tenant, filter, page).await?;
    let at = |run: &StoredRun| place(run.queued_at, run.id);
    Ok(Json(Page::part_as(runs, limit, at, |run| {
        describe_run(QueuedRun {
            run,
            position: None,
        })
    })))
}

async fn get(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<Run>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(describe_run(app.run_get(&call, tenant, run).await?)))
}

async fn events(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<EventQuery>,
) -> ApiResult<Json<RunEvents>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    if query.after < 0 {
        return Err(Failure::field("after", "give 0 or the number of an event").into());
    }
    let limit = page_size(query.limit, USUAL_EVENTS, MOST_EVENTS)?;
    let (run, found) = app
        .run_events(&call, tenant, run, query.after, limit)
        .await?;
    let next = found.last().map_or(query.after, |last| last.seq);
    let items = found
        .into_iter()
        .map(|stored| NumberedEvent::new(stored.seq, stored.event));
    Ok(Json(RunEvents {
        items: items.collect(),
        next,
        complete: run.status == "ended" && next >= run.last_seq,
    }))
}

async fn resume(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<ResumeQuery>,
) -> ApiResult<(StatusCode, Json<Run>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let signal = RunSignal::Resume {
        forget_creates: query.forget_creates,
    };
    let run = app.run_signal(&call, tenant, run, signal).await?;
    Ok((StatusCode::ACCEPTED, Json(describe_run(run))))
}

macro_rules! signals {
    ($($name:ident $signal:ident;)*) => {
        $(async fn $name(
            State(state): State<ApiState>,
            SignedCall(call): SignedCall,
            Segments(run): Segments<Uuid>,
            ListFilter(query): ListFilter<TenantChoice>,
        ) -> ApiResult<(StatusCode, Json<Run>)> {
            let app = &state.app;
            let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
            let run = app.run_signal(&call, tenant, run, RunSignal::$signal).await?;
            Ok((StatusCode::ACCEPTED, Json(describe_run(run))))
        })*
    };
}

signals! {
    cancel Cancel;
    pause Pause;
}
