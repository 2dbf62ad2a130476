//! What happens around every request: an id, a time limit, headers, the form of errors, a line in the log and counters.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use nimbus_control_app::{Call, Failure, RequestContext};
use nimbus_control_auth::operation::{OPERATIONS, Operation};
use nimbus_control_metrics::OTHER;
use nimbus_core::{ErrorCode, TraceId};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug, error, info, info_span, warn};

use crate::ApiState;
use crate::caller::KnownCall;
use crate::problem;

/// No operation of this API takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Whoever waited for so long would like to know why.
const SLOW: Duration = Duration::from_secs(1);
/// When to come back to a server that has too much to do.
const BUSY_SECONDS: u64 = 2;

/// On every answer: nothing is guessed, framed, cached or referred to.
const HEADERS: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
    ("cache-control", "no-store"),
    ("strict-transport-security", "max-age=31536000"),
];

pub(crate) async fn around(
    State(state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let metrics = Arc::clone(state.app.store().metrics());
    let _under_way = metrics.request_begins();
    let trace_id = TraceId::random();
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|info| info.0.ip());
    let client = state.front.client(peer, request.headers());
    let context = RequestContext {
        ip: client,
        location: state.front.location(client),
        user_agent: header_text(request.headers(), header::USER_AGENT).map(str::to_owned),
        trace_id,
        now: Timestamp::now(),
    };
    let method = request.method().clone();
    // Without the query, which may have a token in it.
    let span = info_span!(
        "request", %trace_id, %method, path = request.uri().path(), tenant_id = Empty, user_id = Empty
    );
    request.extensions_mut().insert(context);
    let known = KnownCall::default();
    request.extensions_mut().insert(known.clone());
    let operation = operation_of(&request);
    let allowed = allowed_methods(&request);
    let answer = async {
        let worker = operation.is_some_and(|operation| operation.id.starts_with("workers."));
        if !(worker && state.limits.is_worker(client))
            && let Err(failure) = state.limits.take_address(client)
        {
            return Err(Arc::new(failure));
        }
        // Before anything is done for it, so that refusing costs next to nothing.
        if state.app.store().is_overloaded() {
            state.app.store().metrics().request_shed("database");
            return Err(Arc::new(busy()));
        }
        match tokio::time::timeout(TIME_LIMIT, next.run(request)).await {
            Ok(mut response) => match response.extensions_mut().remove::<Arc<Failure>>() {
                Some(failure) => Err(failure),
                None => Ok(response),
            },
            Err(_) => Err(Arc::new(Failure::new(
                ErrorCode::SERVER_UNREACHABLE,
                "the request took too long",
            ))),
        }
    };
    let mut response = match answer.instrument(span.clone()).await {
        Ok(response) => response,
        Err(failure) => {
            metrics.error(failure.error.code().to_string());
            if let (Some(operation), Some(call)) = (operation, known.0.get()) {
                note(&state, call, operation, &failure)
                    .instrument(span.clone())
                    .await;
            }
            let response = problem::render(&failure, trace_id);
            if response.status().is_server_error() {
                span.in_scope(|| error!(error = %failure.error.log_text(), "a request failed"));
            }
            response
        }
    };
    let took = begun.elapsed();
    let status = response.status();
    let path = operation.map_or(OTHER, |operation| operation.path);
    metrics.request(method.as_str(), path, status.as_u16(), took);
    log(&span, operation, status.as_u16(), took);
    let headers = response.headers_mut();
    if status == StatusCode::METHOD_NOT_ALLOWED
        && let Ok(value) = HeaderValue::from_str(&allowed)
    {
        headers.insert(header::ALLOW, value);
    }
    for (name, value) in HEADERS {
        // A page says itself what it may load.
        let name = header::HeaderName::from_static(name);
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&trace_id.to_string()) {
        headers.insert("x-trace-id", value);
    }
    response
}

/// Changes are told, reads only to whoever wants to know more. Failures of ours have a line of their own.
fn log(span: &Span, operation: Option<Operation>, status: u16, took: Duration) {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let operation_id = operation.map_or(OTHER, |operation| operation.id);
    span.in_scope(|| {
        if took >= SLOW {
            warn!(
                operation = operation_id,
                status, duration_ms, "a request was slow"
            );
        } else if operation.is_none_or(|operation| operation.is_read()) {
            debug!(
                operation = operation_id,
                status, duration_ms, "a request was answered"
            );
        } else {
            info!(
                operation = operation_id,
                status, duration_ms, "a request was answered"
            );
        }
    });
}

fn busy() -> Failure {
    let message = "the server has more to do than it can; try again in a moment";
    Failure {
        retry_after_seconds: Some(BUSY_SECONDS),
        ..Failure::new(ErrorCode::SERVER_UNREACHABLE, message)
    }
}

/// What the router found for the request.
pub(crate) fn operation_of(request: &Request) -> Option<Operation> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let method = request.method().as_str();
    OPERATIONS
        .iter()
        .find(|operation| operation.path == path && operation.method == method)
        .copied()
}

/// What the path of the request takes.
fn allowed_methods(request: &Request) -> String {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    let of_path = OPERATIONS.iter().filter(|operation| operation.path == path);
    let mut methods: Vec<&str> = of_path.map(|operation| operation.method).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.join(", ")
}

/// What did not happen is recorded too. If even that fails, the log has it.
async fn note(state: &ApiState, call: &Call, operation: Operation, failure: &Failure) {
    if let Err(other) = state.app.note_failure(call, operation, failure).await {
        warn!(error = %other.error.log_text(), operation = operation.id, "a failure is not in the audit trail");
    }
}

pub(crate) fn header_text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
