//! What happens around every request: an id, a time limit, headers, the form of errors.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use nimbus_control_app::{Failure, RequestContext};
use nimbus_core::{ErrorCode, TraceId};
use tracing::{Instrument as _, error, info_span};

use crate::ApiState;
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
    let context = RequestContext {
        ip: peer,
        user_agent: header_text(request.headers(), header::USER_AGENT).map(str::to_owned),
        trace_id,
        now: Timestamp::now(),
    };
    let span =
        info_span!("request", %trace_id, method = %request.method(), path = request.uri().path());
    request.extensions_mut().insert(context);
    let answer = async {
        if let Err(failure) = state.limits.take_address(peer) {
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

pub(crate) fn header_text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
