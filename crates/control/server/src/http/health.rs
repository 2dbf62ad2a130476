//! Whether the server lives and whether it can take requests.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_api::refusal;
use nimbus_control_app::Failure;
use nimbus_core::ErrorCode;
use serde::Serialize;

use super::ServerState;
use crate::readiness::Condition;

#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    checks: Checks,
}

#[derive(Serialize)]
struct Checks {
    database: &'static str,
}

/// The process answers; nothing else is said.
pub(crate) async fn live() -> &'static str {
    "live\n"
}

/// Whether requests should be sent here.
pub(crate) async fn ready(state: axum::extract::State<ServerState>) -> Response {
    let away = |code, message: &str| refusal(&Failure::new(code, message));
    if *state.draining.borrow() {
        return away(ErrorCode::SERVER_UNREACHABLE, "the server is stopping");
    }
    match state.readiness.now().await.problem() {
        None => "ready\n".into_response(),
        Some((code, message)) => away(code, message),
    }
}

pub(crate) async fn health(state: axum::extract::State<ServerState>) -> Response {
    let condition = state.readiness.now().await;
    let ready = condition == Condition::Ready;
    let health = Health {
        status: if ready { "healthy" } else { "unhealthy" },
        version: env!("CARGO_PKG_VERSION"),
        checks: Checks {
            database: match condition {
                Condition::Ready => "up",
                Condition::Away => "down",
                Condition::Full => "full",
            },
        },
    };
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(health)).into_response()
}
