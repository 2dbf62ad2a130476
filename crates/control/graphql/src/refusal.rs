//! Errors: a message, and the form of document 002 in the extensions.

use async_graphql::{Error, ErrorExtensionValues, ErrorExtensions as _, ServerError, Value};
use jiff::Timestamp;
use nimbus_control_app::{Failure, Problem};
use nimbus_core::{ErrorCode, TraceId};
use serde_json::json;
use tracing::error;

/// What the library says of a document that is refused for its complexity.
const TOO_COMPLEX: &str = "Query is too complex.";

/// A failure as a field answers with it.
pub(crate) fn refused(failure: &Failure, trace_id: TraceId) -> Error {
    let problem = Problem::of(failure);
    if problem.is_ours() {
        error!(error = %failure.error.log_text(), "a field failed");
    }
    let message = problem.message.clone();
    Error::new(message).extend_with(|_, values| fill(values, &problem, trace_id))
}

/// What the library itself refuses, in the same form.
pub(crate) fn in_form(mut found: ServerError, trace_id: TraceId) -> ServerError {
    if found.extensions.is_none() {
        let code = match found.message == TOO_COMPLEX {
            true => ErrorCode::QUERY_TOO_COSTLY,
            false => ErrorCode::INPUT_INVALID,
        };
        // Names of the document are repeated, and no more of it than that.
        found.message = found.message.chars().take(300).collect();
        let failure = Failure::new(code, found.message.clone());
        let mut values = ErrorExtensionValues::default();
        fill(&mut values, &Problem::of(&failure), trace_id);
        found.extensions = Some(values);
    }
    found
}

/// A refusal of a whole document.
pub(crate) fn refused_document(failure: &Failure, trace_id: TraceId) -> ServerError {
    let error = refused(failure, trace_id);
    ServerError {
        extensions: error.extensions,
        ..ServerError::new(error.message, None)
    }
}

fn fill(values: &mut ErrorExtensionValues, problem: &Problem, trace_id: TraceId) {
    let details = problem.details.iter();
    let details: Vec<_> = details
        .map(|one| json!({"field": one.field, "message": one.message}))
        .collect();
    values.set("code", problem.code);
    values.set(
        "details",
        Value::from_json(json!(details)).unwrap_or_default(),
    );
    values.set("trace_id", trace_id.to_string());
    values.set("timestamp", Timestamp::now().to_string());
    values.set("reference", problem.reference.clone());
    if let Some(help) = &problem.help {
        values.set("help", help.clone());
    }
}
