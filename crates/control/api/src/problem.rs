//! Errors, in the one form that document 002 gives them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use nimbus_control_app::{Failure, Problem};
use nimbus_core::{ErrorCode, TraceId};
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
        let mut response = status(&Problem::of(&self.0)).into_response();
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
    let problem = Problem::of(failure);
    let status = status(&problem);
    let details = problem.details.into_iter().map(|one| ProblemDetail {
        field: one.field.to_string(),
        message: one.message,
    });
    let body = ProblemBody {
        error: ApiProblem {
            code: problem.code,
            message: problem.message,
            details: details.collect(),
            trace_id: trace_id.to_string(),
            timestamp: Timestamp::now().to_string(),
            reference: problem.reference,
            help: problem.help,
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

fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) async fn no_such_method() -> ApiError {
    Failure::new(
        ErrorCode::METHOD_NOT_ALLOWED,
        "this path does not take this method",
    )
    .into()
}
