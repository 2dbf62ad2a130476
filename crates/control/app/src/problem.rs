//! A failure as the outside is told of it: the same words and the same class, whichever transport tells them.

use nimbus_core::{ErrorCode, ErrorKind};

use crate::failure::{Failure, FieldProblem};

/// What is said of a failure. What is not the caller's business is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of an answer over HTTP.
    pub status: u16,
    /// A word for programs, such as `VALIDATION_ERROR`.
    pub code: &'static str,
    pub message: String,
    pub details: Vec<FieldProblem>,
    /// The error's page in the documentation.
    pub reference: String,
    /// What to do next, where that is known.
    pub help: Option<String>,
}

impl Problem {
    pub fn of(failure: &Failure) -> Self {
        let code = failure.error.code();
        let (status, word) = class(code);
        let ours = status >= 500;
        let message = if ours && status != UNAVAILABLE {
            "something went wrong in the server".to_owned()
        } else {
            failure.error.message().to_owned()
        };
        Self {
            status,
            code: word,
            message,
            details: failure.details.clone(),
            reference: code.to_string(),
            help: failure
                .error
                .help()
                .filter(|_| !ours)
                .map(ToString::to_string),
        }
    }

    /// Whether it is a failure of the server's own, which its log has to tell of.
    pub fn is_ours(&self) -> bool {
        self.status >= 500
    }
}

const UNAVAILABLE: u16 = 503;

fn class(code: ErrorCode) -> (u16, &'static str) {
    match code {
        ErrorCode::SIGN_IN_NEEDED | ErrorCode::SIGN_IN_REFUSED => (401, "UNAUTHENTICATED"),
        ErrorCode::METHOD_NOT_ALLOWED => (405, "METHOD_NOT_ALLOWED"),
        ErrorCode::REQUEST_TOO_LARGE => (413, "TOO_LARGE"),
        ErrorCode::TOO_MANY_REQUESTS => (429, "RATE_LIMITED"),
        code => match code.kind() {
            ErrorKind::Invalid => (400, "VALIDATION_ERROR"),
            ErrorKind::NotFound => (404, "NOT_FOUND"),
            ErrorKind::Exists => (409, "ALREADY_EXISTS"),
            ErrorKind::Conflict => (409, "CONFLICT"),
            ErrorKind::Forbidden => (403, "FORBIDDEN"),
            ErrorKind::Refused => (422, "REFUSED"),
            ErrorKind::Unavailable => (UNAVAILABLE, "UNAVAILABLE"),
            ErrorKind::Failed | ErrorKind::Cancelled | ErrorKind::Internal => (500, "INTERNAL"),
        },
    }
}
