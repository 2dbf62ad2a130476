//! Pages about the API: its description to browse, and an explorer for GraphQL. They are files of ours and load nothing
//! from anywhere else.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};

use crate::ApiState;

/// Scripts and styles of our own, questions to our own server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Every page with its address. Nobody has to be signed in: what they say is the same for everybody and no secret.
pub(crate) fn all() -> Vec<(&'static str, MethodRouter<ApiState>)> {
    let page =
        |kind: &'static str, text: &'static str| get(move || async move { file(kind, text) });
    vec![
        ("/api/v1/docs", page(HTML, include_str!("docs.html"))),
        ("/api/v1/docs.js", page(SCRIPT, include_str!("docs.js"))),
        ("/api/v1/docs.css", page(STYLE, include_str!("pages.css"))),
        (
            "/graphql/explorer",
            page(HTML, include_str!("explorer.html")),
        ),
        (
            "/graphql/explorer.js",
            page(SCRIPT, include_str!("explorer.js")),
        ),
        (
            "/graphql/explorer.css",
            page(STYLE, include_str!("pages.css")),
        ),
        (
            "/graphql/schema.graphql",
            get(|| async { file(TEXT, nimbus_control_graphql::sdl()) }),
        ),
    ]
}

fn file(kind: &'static str, text: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let policy = HeaderValue::from_static(POLICY);
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response.into_response()
}
