//! Whether the server lives, whether it can take requests, and how far the first run is.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_store::SetupStatus;
use serde::Serialize;

use super::State;
use super::error::ApiError;

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

#[derive(Serialize)]
pub(crate) struct Setup {
    /// Whether somebody finished the first run.
    completed: bool,
    completed_at: Option<String>,
}

/// The process answers; nothing else is said.
pub(crate) async fn live() -> &'static str {
    "live\n"
}

/// Whether requests should be sent here.
pub(crate) async fn ready(state: axum::extract::State<State>) -> Result<&'static str, ApiError> {
    if *state.draining.borrow() {
        return Err(ApiError::unavailable("the server is stopping"));
    }
    if database_answers(&state).await {
        return Ok("ready\n");
    }
    Err(ApiError::unavailable("the database does not answer"))
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

pub(crate) async fn setup_status(
    state: axum::extract::State<State>,
) -> Result<Json<Setup>, ApiError> {
    let completed_at = match state.store.setup_status().await? {
        SetupStatus::Open => None,
        SetupStatus::Complete { at } => Some(at.0.to_string()),
    };
    Ok(Json(Setup {
        completed: completed_at.is_some(),
        completed_at,
    }))
}

async fn database_answers(state: &State) -> bool {
    tokio::time::timeout(PATIENCE, state.store.ping())
        .await
        .is_ok_and(|answer| answer.is_ok())
}
