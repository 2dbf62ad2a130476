//! What is served over HTTP, and what every answer has.

mod error;
mod health;
mod page;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use nimbus_control_store::Store;
use tokio::sync::watch;

use error::ApiError;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct State {
    store: Store,
    draining: watch::Receiver<bool>,
}

impl State {
    pub(crate) fn new(store: Store, draining: watch::Receiver<bool>) -> Self {
        Self { store, draining }
    }
}

/// Health is at the root for probes and under the API for everybody else.
pub(crate) fn router(state: State) -> Router {
    let probes = || {
        Router::new()
            .route("/health", get(health::health))
            .route("/ready", get(health::ready))
            .route("/live", get(health::live))
    };
    Router::new()
        .merge(probes())
        .nest("/api/v1", probes().fallback(unknown))
        .route("/setup/status", get(health::setup_status))
        .merge(page::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(guard))
        .with_state(state)
}

async fn unknown(uri: Uri) -> ApiError {
    ApiError::not_found(uri.path())
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::wrong_method(&method, uri.path())
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
