//! Errors, in the one form that document 002 gives them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use nimbus_control_app::Failure;
use nimbus_core::{ErrorCode, ErrorKind, TraceId};
use schemars::JsonSchema;
use serde::Serialize;

const RETRY_AFTER_SECONDS: u64 = 5;

/// `{"error": {…}}`
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct ProblemBody {
    error: ApiProblem,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
struct ApiProblem {
    /// A word for programs, such as `VALIDATION_ERROR`.
    code: &'static str,
    message: String,
    details: Vec<ProblemDetail>,
    /// Joins this answer with the server's log and the audit trail.
    trace_id: String,
    timestamp: String,
    /// The error's page in the documentation.
    reference: String,
    /// What to do next, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Detail")]
struct ProblemDetail {
    field: String,
    message: String,
}

/// A failure on its way out; the pipeline adds the trace id.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Failure);

impl<E: Into<Failure>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, _) = class(self.0.error.code());
        let mut response = status.into_response();
        response
            .extensions_mut()
            .insert(std::sync::Arc::new(self.0));
        response
    }
}

/// What is not of the API but of the same server says no in the same form.
pub fn refusal(failure: &Failure) -> Response {
    render(failure, TraceId::random())
}

/// The answer with its body. What is not the caller's business stays in the log.
pub(crate) fn render(failure: &Failure, trace_id: TraceId) -> Response {
    let (status, code) = class(failure.error.code());
    let message = if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
        "something went wrong in the server".to_owned()
    } else {
        failure.error.message().to_owned()
    };
    let body = ProblemBody {
        error: ApiProblem {
            code,
            message,
            details: failure
                .details
                .iter()
                .map(|problem| ProblemDetail {
                    field: problem.field.to_string(),
                    message: problem.message.clone(),
                })
                .collect(),
            trace_id: trace_id.to_string(),
            timestamp: Timestamp::now().to_string(),
            reference: failure.error.code().to_string(),
            help: failure
                .error
                .help()
                .filter(|_| !status.is_server_error())
                .map(ToString::to_string),
        },
    };
    let mut response = (status, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    // Whoever is told that something is away is told when to come back.
    let away = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER_SECONDS);
    if let Some(seconds) = failure.retry_after_seconds.or(away) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn class(code: ErrorCode) -> (StatusCode, &'static str) {
    match code {
        ErrorCode::SIGN_IN_NEEDED | ErrorCode::SIGN_IN_REFUSED => {
            (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED")
        }
        ErrorCode::METHOD_NOT_ALLOWED => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
        ErrorCode::REQUEST_TOO_LARGE => (StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE"),
        ErrorCode::TOO_MANY_REQUESTS => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"),
        code => match code.kind() {
            ErrorKind::Invalid => (StatusCode::BAD_REQUEST, "VALIDATION_ERROR"),
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            ErrorKind::Exists => (StatusCode::CONFLICT, "ALREADY_EXISTS"),
            ErrorKind::Conflict => (StatusCode::CONFLICT, "CONFLICT"),
            ErrorKind::Forbidden => (StatusCode::FORBIDDEN, "FORBIDDEN"),
            ErrorKind::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "REFUSED"),
            ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            ErrorKind::Failed | ErrorKind::Cancelled | ErrorKind::Internal => {
                (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL")
            }
        },
    }
}

pub(crate) async fn no_such_method() -> ApiError {
    Failure::new(
        ErrorCode::METHOD_NOT_ALLOWED,
        "this path does not take this method",
    )
    .into()
}
