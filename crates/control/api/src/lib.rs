//! The API over HTTP.
//!
//! Every route is made from an operation of the registry in `nimbus-control-auth` and calls one use
//! case of `nimbus-control-app`. What is here: reading a request (`extract`), who sends it and how
//! often (`caller`, `limits`), the form of answers (`wire`) and errors (`problem`), and the
//! description of it all (`openapi`, `pages`). GraphQL is served here too (`routes/graphql`) and is what
//! `nimbus-control-graphql` says. Nothing here decides who may do what.

mod caller;
mod catalog_wire;
mod cookies;
mod deployment_wire;
mod extract;
mod front;
mod headers;
mod limits;
mod live;
mod live_socket;
mod openapi;
mod pages;
mod pipeline;
mod problem;
mod repeat;
mod route;
mod routes;
mod socket;
mod summaries;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use nimbus_control_app::App;
use tokio_util::sync::CancellationToken;

use crate::socket::Sockets;

pub use front::{Front, FrontError};
pub use limits::ApiLimits;
pub use nimbus_control_auth::network::Network as NetworkOfCaller;
pub use nimbus_control_auth::rate::Limit;
pub use nimbus_control_graphql::sdl as graphql_schema;
pub use openapi::openapi;
pub use problem::refusal;

/// No request body is larger.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// What handlers are given.
#[derive(Clone, Debug)]
pub struct ApiState {
    pub(crate) app: App,
    pub(crate) origins: Arc<Vec<String>>,
    pub(crate) limits: Arc<ApiLimits>,
    pub(crate) front: Arc<Front>,
    pub(crate) sockets: Sockets,
    pub(crate) introspection: bool,
}

impl ApiState {
    /// `origins` are the addresses under which the console is served, such as
    /// `https://nimbus.example`; requests with a cookie from anywhere else change nothing.
    pub fn new(app: App, origins: Vec<String>, limits: ApiLimits) -> Self {
        Self {
            sockets: Sockets::new(app.store().metrics()),
            app,
            origins: Arc::new(origins),
            limits: Arc::new(limits),
            front: Arc::default(),
            introspection: false,
        }
    }

    /// Sockets end when this does: they are connections that no longer belong to the server.
    pub fn until(mut self, stop: CancellationToken) -> Self {
        self.sockets.stop = stop;
        self
    }

    /// Whether documents may ask about the GraphQL schema itself.
    pub fn with_introspection(mut self, introspection: bool) -> Self {
        self.introspection = introspection;
        self
    }

    /// Behind proxies, and with names for networks.
    pub fn behind(mut self, front: Front) -> Self {
        self.front = Arc::new(front);
        self
    }
}

/// Every operation under its path. What other paths are answered with is the server's business.
pub fn router(state: ApiState) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        router = router.route(route.operation.path, route.handler);
    }
    for (path, page) in pages::all() {
        router = router.route(path, page);
    }
    live::mount(router, &state)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(middleware::from_fn_with_state(state.clone(), repeat::once))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            pipeline::around,
        ))
        .with_state(state)
}
