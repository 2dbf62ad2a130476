//! How a workflow ends without a result.

use nimbus_core::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

/// Why a step or a workflow failed, in a form that can be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct FlowFailure {
    /// A stable code such as `NIM-0906`.
    pub code: String,
    /// For people; never with a secret in it.
    pub message: String,
    /// Another attempt cannot help.
    #[serde(default)]
    pub lasting: bool,
    /// What somebody has to look at because it could not be undone. Not empty: the workflow ended as
    /// [`FlowState::NeedsAttention`](crate::FlowState).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<String>,
}

impl FlowFailure {
    /// A failure that another attempt may cure.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: code.to_string(),
            message: message.into(),
            lasting: false,
            attention: Vec::new(),
        }
    }

    /// The same, when no other attempt can help.
    pub fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// A panic is a failure of its step or workflow, not of the process.
    pub(crate) fn panicked(what: &str, payload: &(dyn std::any::Any + Send)) -> Self {
        let said = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without words".to_owned());
        Self::new(
            ErrorCode::WORKFLOW_PANICKED,
            format!("{what} panicked: {said}"),
        )
    }
}

impl From<Error> for FlowFailure {
    fn from(error: Error) -> Self {
        Self {
            code: error.code().to_string(),
            message: error.to_string(),
            lasting: !error.code().retryable(),
            attention: Vec::new(),
        }
    }
}

/// Why an operation of [`Durable`](crate::Durable) has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fail {
    /// The application failed: undo, or decide otherwise.
    #[error(transparent)]
    App(#[from] FlowFailure),
    /// Somebody cancelled: undo with shielded steps, then return this.
    #[error("the workflow was cancelled")]
    Cancelled,
    /// The runtime stops here (shutdown, lost database, changed code). Return it at once and undo
    /// nothing: the workflow goes on from here later.
    #[error("the workflow was stopped: {0}")]
    Stop(String),
}
