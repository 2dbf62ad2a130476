//! What happens around every request: an id, a time limit, headers, the form of errors.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use nimbus_control_app::{Call, Failure, RequestContext};
use nimbus_control_auth::operation::{OPERATIONS, Operation};
use nimbus_core::{ErrorCode, TraceId};
use tracing::{Instrument as _, error, info_span, warn};

use crate::ApiState;
use crate::caller::KnownCall;
use crate::problem;

/// No operation of this API takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

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
    let span =
        info_span!("request", %trace_id, method = %request.method(), path = request.uri().path());
    request.extensions_mut().insert(context);
    let known = KnownCall::default();
    request.extensions_mut().insert(known.clone());
    let operation = operation_of(&request);
    let answer = async {
        if let Err(failure) = state.limits.take_address(client) {
            return Err(Arc::new(failure));
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
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&trace_id.to_string()) {
        headers.insert("x-trace-id", value);
    }
    response
}

/// What the router found for the request.
fn operation_of(request: &Request) -> Option<Operation> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let method = request.method().as_str();
    OPERATIONS
        .iter()
        .find(|operation| operation.path == path && operation.method == method)
        .copied()
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
