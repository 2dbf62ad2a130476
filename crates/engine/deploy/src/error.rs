//! Why an operation did not do all that was asked.

use nimbus_engine_model::{StepOp, Urn};
use nimbus_engine_ports::JournalError;

#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Steps failed; the rest was done or not started.
    #[error("{} of the resources could not be brought to the wanted state", failures.len())]
    StepsFailed { failures: Vec<StepFailure> },
    /// The program ended with an error.
    #[error("the program failed: {message}")]
    ProgramFailed { message: String },
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The record of the operation cannot be kept, so it must not go on.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A rule stopped the operation: protection, policy, a plan, the mass-removal guard.
    #[error("{message}")]
    Refused { message: String },
    /// What was asked for makes no sense.
    #[error("{message}")]
    Invalid { message: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepFailure {
    pub urn: Urn,
    pub op: StepOp,
    pub message: String,
    /// Nobody can tell whether it happened.
    pub unknown: bool,
}
