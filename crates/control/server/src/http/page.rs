//! Plain pages until the console exists. They load nothing from elsewhere.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

/// Pages may use this server's own script and style, and ask it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(async || page(include_str!("pages/home.html"))))
        .route(
            "/setup",
            get(async || page(include_str!("pages/setup.html"))),
        )
        .route(
            "/pages/setup.js",
            get(async || file("text/javascript", include_str!("pages/setup.js"))),
        )
        .route(
            "/pages/style.css",
            get(async || file("text/css", include_str!("pages/style.css"))),
        )
}

fn page(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(text))
}

fn file(kind: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, kind)], text)
}
