//! Errors as the API tells them: one form everywhere, with nothing of the inside.

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nimbus_control_store::StoreError;
use nimbus_core::{Error, ErrorKind, TraceId};
use serde::Serialize;
use tracing::warn;

/// Seconds after which a client may try again.
const RETRY_AFTER: &str = "5";

#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    trace_id: TraceId,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Content<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    code: &'a str,
    message: &'a str,
    details: [(); 0],
    trace_id: String,
    timestamp: String,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            trace_id: TraceId::random(),
        }
    }

    pub(crate) fn not_found(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            format!("there is nothing at {path}"),
        )
    }

    pub(crate) fn wrong_method(method: &Method, path: &str) -> Self {
        let message = format!("{path} does not take {method}");
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            message,
        )
    }

    pub(crate) fn unavailable(message: &str) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "SERVICE_UNAVAILABLE",
            message,
        )
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let error = Error::from(error);
        let made = match error.kind() {
            ErrorKind::Invalid => {
                Self::new(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", error.message())
            }
            ErrorKind::NotFound => Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", error.message()),
            ErrorKind::Exists | ErrorKind::Conflict => {
                Self::new(StatusCode::CONFLICT, "CONFLICT", error.message())
            }
            ErrorKind::Forbidden => Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", error.message()),
            ErrorKind::Refused | ErrorKind::Failed => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "REFUSED", error.message())
            }
            ErrorKind::Unavailable | ErrorKind::Cancelled => {
                Self::unavailable("the database does not answer")
            }
            ErrorKind::Internal => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL_ERROR",
                "Nimbus went wrong",
            ),
        };
        warn!(trace_id = %made.trace_id, code = %error.code(), "{}", error.log_text());
        made
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Body {
            error: Content {
                code: self.code,
                message: &self.message,
                details: [],
                trace_id: self.trace_id.to_string(),
                timestamp: jiff::Timestamp::now().to_string(),
            },
        };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static(RETRY_AFTER);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
