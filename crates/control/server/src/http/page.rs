//! The web console, and plain pages for a build that has none. Neither loads anything from elsewhere.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use nimbus_control_console::ConsoleFile;

/// Pages may use this server's own scripts, styles and fonts, and ask it, over sockets as well. Images of a page's own
/// making are the icons that say how a run stands.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; \
                      base-uri 'none'; form-action 'self'";

/// What there is without the console: the first run, and how to build the rest.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    if nimbus_control_console::start_page().is_some() {
        return Router::new();
    }
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

/// A file of the console; its start page for whatever address a browser asks for, because the console knows its own
/// addresses; for everybody else, nothing.
pub(crate) async fn console(request: Request) -> Response {
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads && !path.starts_with("/api/") {
        let found = nimbus_control_console::file(path).or_else(|| {
            wants_page(request.headers())
                .then(nimbus_control_console::start_page)
                .flatten()
        });
        if let Some(found) = found {
            return packed(found, request.headers());
        }
    }
    super::unknown(request.uri().clone()).await
}

fn wants_page(headers: &HeaderMap) -> bool {
    header_text(headers, &header::ACCEPT).contains("text/html")
}

fn packed(file: ConsoleFile, headers: &HeaderMap) -> Response {
    let accepted = header_text(headers, &header::ACCEPT_ENCODING);
    let takes = |coding: &str| {
        accepted
            .split(',')
            .any(|part| part.trim().split(';').next() == Some(coding))
    };
    let (mut response, coding) = if takes("br") {
        (file.brotli.into_response(), Some("br"))
    } else if takes("gzip") {
        (file.gzip.into_response(), Some("gzip"))
    } else {
        match file.plain() {
            Ok(bytes) => (bytes.into_response(), None),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    let kept = if file.is_immutable() {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, file.media_type()),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn page(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(text))
}

fn file(kind: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, kind)], text)
}
