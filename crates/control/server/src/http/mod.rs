//! What is served over HTTP, and what every answer has.

mod health;
mod metrics;
mod page;

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use nimbus_control_api::{Front, refusal};
use nimbus_control_app::Failure;
use nimbus_control_metrics::{OTHER, known_word};
use nimbus_control_store::Store;
use nimbus_core::ErrorCode;
use tokio::sync::watch;

pub use self::metrics::MetricsReaders;
use crate::readiness::Readiness;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub(crate) readiness: Readiness,
    pub(crate) draining: watch::Receiver<bool>,
    pub(crate) store: Store,
    pub(crate) front: Front,
    pub(crate) readers: MetricsReaders,
}

/// Paths that are counted apart; files of the console are counted together.
const PATHS: &[&str] = &[
    "/",
    "/api/v1/health",
    "/api/v1/live",
    "/api/v1/ready",
    "/health",
    "/live",
    "/metrics",
    "/ready",
    "/setup",
];

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
        .route("/metrics", get(metrics::metrics))
        .merge(page::routes())
        .fallback(page::console)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(state.clone(), guard))
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

/// Counts, and adds headers that keep a browser from doing more with an answer than show it.
async fn guard(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>();
    let path = matched.map_or(OTHER, |path| known_word(path.as_str(), PATHS));
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    let metrics = state.store.metrics();
    metrics.request(method.as_str(), path, status, begun.elapsed());
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
