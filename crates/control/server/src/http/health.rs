//! Whether the server lives and whether it can take requests.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_api::refusal;
use nimbus_control_app::Failure;
use nimbus_core::ErrorCode;
use serde::Serialize;

use super::State;

/// A probe must not hang with what it asks about.
const PATIENCE: Duration = Duration::from_secs(2);

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
pub(crate) async fn ready(state: axum::extract::State<State>) -> Response {
    let away = |code, message: &str| refusal(&Failure::new(code, message));
    if *state.draining.borrow() {
        return away(ErrorCode::SERVER_UNREACHABLE, "the server is stopping");
    }
    if database_answers(&state).await {
        return "ready\n".into_response();
    }
    let message = "the database does not answer";
    away(ErrorCode::DATABASE_UNAVAILABLE, message)
}

pub(crate) async fn health(state: axum::extract::State<State>) -> Response {
    let database = database_answers(&state).await;
    let health = Health {
        status: if database { "healthy" } else { "unhealthy" },
        version: env!("CARGO_PKG_VERSION"),
        checks: Checks {
            database: if database { "up" } else { "down" },
        },
    };
    let status = if database {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(health)).into_response()
}

async fn database_answers(state: &State) -> bool {
    tokio::time::timeout(PATIENCE, state.store.ping())
        .await
        .is_ok_and(|answer| answer.is_ok())
}
