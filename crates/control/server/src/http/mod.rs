//! What is served over HTTP, and what every answer has.

mod health;
mod page;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use nimbus_control_api::refusal;
use nimbus_control_app::Failure;
use nimbus_core::ErrorCode;
use tokio::sync::watch;

use crate::readiness::Readiness;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct ServerState {
    readiness: Readiness,
    draining: watch::Receiver<bool>,
}

impl ServerState {
    pub(crate) fn new(readiness: Readiness, draining: watch::Receiver<bool>) -> Self {
        Self {
            readiness,
            draining,
        }
    }
}

/// Health is at the root for probes and under the API for everybody else.
pub(crate) fn router(state: ServerState) -> Router {
    let probes = || {
        Router::new()
            .route("/health", get(health::health))
            .route("/ready", get(health::ready))
            .route("/live", get(health::live))
    };
    Router::new()
        .merge(probes())
        .nest("/api/v1", probes().fallback(unknown))
        .merge(page::routes())
        .fallback(page::console)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(guard))
        .with_state(state)
}

async fn unknown(uri: Uri) -> Response {
    let message = format!("there is nothing at {}", uri.path());
    refusal(&Failure::new(ErrorCode::RESOURCE_NOT_FOUND, message))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("{} does not take {method}", uri.path());
    refusal(&Failure::new(ErrorCode::METHOD_NOT_ALLOWED, message))
}

/// Headers that keep a browser from doing more with an answer than show it.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // The link of the first run carries a secret.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}
