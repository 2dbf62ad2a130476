//! Why a use case did not happen.

use std::borrow::Cow;

use nimbus_control_store::StoreError;
use nimbus_core::{Error, ErrorCode};

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// One field of the input and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    pub field: Cow<'static, str>,
    pub message: String,
}

/// The coded error, with what a transport adds to its answer.
#[derive(Debug)]
pub struct Failure {
    pub error: Error,
    pub details: Vec<FieldProblem>,
    pub retry_after_seconds: Option<u64>,
    /// Whether the audit trail has it already.
    pub recorded: bool,
}

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// The caller is known by nobody, or not any more. Says no more than that.
    pub fn not_signed_in() -> Self {
        Error::new(ErrorCode::SIGN_IN_NEEDED, "sign in first")
            .with_help("the token is missing, expired or revoked")
            .into()
    }

    /// The same for a thing that is not there and for one that may not be seen.
    pub fn not_found() -> Self {
        Self::new(ErrorCode::RESOURCE_NOT_FOUND, "there is no such thing")
    }

    pub fn field(field: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        Self {
            error: Error::new(ErrorCode::INPUT_INVALID, format!("`{field}`: {message}")),
            details: vec![FieldProblem { field, message }],
            retry_after_seconds: None,
            recorded: false,
        }
    }

    /// A body that is not read as JSON. Deep JSON is JSON, and whoever sent it would look for a comma.
    pub fn not_json(error: &serde_json::Error) -> Self {
        let deep = error.to_string().contains("recursion limit");
        let words = match deep {
            true => "it is nested too deeply; 127 levels are read",
            false => "this is not JSON",
        };
        Self::field("body", words)
    }

    pub fn wait(seconds: u64) -> Self {
        let message = format!("too many attempts; try again in {seconds} s");
        Self {
            retry_after_seconds: Some(seconds),
            ..Self::new(ErrorCode::TOO_MANY_REQUESTS, message)
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            details: Vec::new(),
            retry_after_seconds: None,
            recorded: false,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            // One text for everything that is not there.
            StoreError::TenantUnknown | StoreError::NotFound(_) => Self::not_found(),
            other => Error::from(other).into(),
        }
    }
}
