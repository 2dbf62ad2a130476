//! Runs as their screen shows them: in detail, their log, and live.

use axum::Json;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use nimbus_control_app::{Failure, LogQuestion, RunChoice};
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_wire::{ProgressFrame, RunDetail, RunLogPage, UnitResources};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::{SignedCall, SocketCall};
use crate::extract::{ListFilter, Segments, page_size};
use crate::route::Route;
use crate::socket::Watcher;

const USUAL_RESOURCES: u32 = 1000;
const MOST_RESOURCES: u32 = 5000;
const USUAL_LINES: u32 = 500;
const MOST_LINES: u32 = 2000;
/// Whoever watches has nothing to say.
const MOST_SAID: usize = 4096;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::RUN_DETAIL, detail)
            .asks::<TenantChoice>()
            .gives::<RunDetail>(),
        Route::new(operation::RUN_UNIT, unit)
            .asks::<ResourceQuery>()
            .gives::<UnitResources>(),
        Route::new(operation::RUN_LOG, log)
            .asks::<LogQuery>()
            .gives::<RunLogPage>(),
        Route::new(operation::RUN_PROGRESS, of_run)
            .asks::<RunProgressQuery>()
            .gives::<ProgressFrame>(),
        Route::new(operation::DEPLOYMENT_PROGRESS, of_deployment)
            .asks::<ProgressQuery>()
            .gives::<ProgressFrame>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResourceQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// The `next` of the page before.
    #[serde(default)]
    after: u64,
    /// So many at once, 1 to 5000.
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only lines of this unit.
    unit: Option<String>,
    /// `debug`, `info`, `warning` or `error`: that one and worse.
    level: Option<String>,
    /// The last lines before this event; the last of all without `before` and `after`.
    before: Option<i64>,
    /// The first lines after this event.
    after: Option<i64>,
    /// So many at once, 1 to 2000.
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProgressQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// You have everything up to this event; without it a snapshot comes first.
    since: Option<i64>,
    /// Which run of the deployment, such as `R0003`; the newest when absent.
    run: Option<String>,
    /// A bearer token, for clients that cannot send headers.
    #[allow(dead_code, reason = "it is read with the caller")]
    access_token: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunProgressQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// You have everything up to this event; without it a snapshot comes first.
    since: Option<i64>,
    /// A bearer token, for clients that cannot send headers.
    #[allow(dead_code, reason = "it is read with the caller")]
    access_token: Option<String>,
}

async fn detail(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<RunDetail>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    Ok(Json(app.run_detail(&call, tenant, run).await?))
}

async fn unit(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((run, unit)): Segments<(Uuid, String)>,
    ListFilter(query): ListFilter<ResourceQuery>,
) -> ApiResult<Json<UnitResources>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let limit = page_size(query.limit, USUAL_RESOURCES, MOST_RESOURCES)?;
    let found = app.run_unit(&call, tenant, run, &unit, query.after, limit);
    Ok(Json(found.await?))
}

async fn log(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<LogQuery>,
) -> ApiResult<Json<RunLogPage>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let question = LogQuestion {
        unit: query.unit,
        level: query.level,
        before: query.before,
        after: query.after,
        limit: page_size(query.limit, USUAL_LINES, MOST_LINES)?,
    };
    Ok(Json(app.run_log(&call, tenant, run, question).await?))
}

async fn of_run(
    State(state): State<ApiState>,
    caller: SocketCall,
    Segments(run): Segments<Uuid>,
    ListFilter(query): ListFilter<RunProgressQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let choice = RunChoice::Id(run);
    let operation = operation::RUN_PROGRESS;
    let (tenant, since) = (query.tenant, query.since);
    watch(state, operation, caller, choice, (tenant, since), upgrade).await
}

async fn of_deployment(
    State(state): State<ApiState>,
    caller: SocketCall,
    Segments(deployment): Segments<String>,
    ListFilter(query): ListFilter<ProgressQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let choice = match &query.run {
        None => RunChoice::Newest { deployment },
        Some(run) => RunChoice::Number {
            deployment,
            run: run
                .parse()
                .map_err(|_| Failure::field("run", "give the number of a run, such as R0003"))?,
        },
    };
    let operation = operation::DEPLOYMENT_PROGRESS;
    let (tenant, since) = (query.tenant, query.since);
    watch(state, operation, caller, choice, (tenant, since), upgrade).await
}

async fn watch(
    state: ApiState,
    operation: Operation,
    caller: SocketCall,
    choice: RunChoice,
    (tenant, since): (Option<String>, Option<i64>),
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let app = &state.app;
    let SocketCall { call, credential } = caller;
    let tenant = app.choose_tenant(&call, tenant.as_deref()).await?;
    let feed = app
        .run_watch(&call, operation, tenant, choice, since)
        .await?;
    let upgrade =
        upgrade.map_err(|_| Failure::field("upgrade", "this is a WebSocket; ask for one"))?;
    let watcher = Watcher {
        feed,
        context: call.context,
        credential,
        stop: state.sockets.stop.clone(),
        place: state.sockets.take()?,
    };
    Ok(upgrade
        .max_message_size(MOST_SAID)
        .max_frame_size(MOST_SAID)
        .on_upgrade(move |socket| watcher.follow(socket)))
}
