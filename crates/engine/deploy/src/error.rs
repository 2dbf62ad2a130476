//! Why an operation did not do all that was asked.

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_model::{StepOp, Urn};
use nimbus_engine_ports::JournalError;

#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Steps failed; the rest was done or not started.
    #[error("{}", steps_failed(failures))]
    StepsFailed { failures: Vec<StepFailure> },
    /// The program ended with an error.
    #[error("the program failed: {message}")]
    ProgramFailed { message: String },
    /// The program ended without having said all it had to say.
    #[error(
        "the program ended before it was done, so the {orphans} resources that it did not ask for \
         were left alone"
    )]
    ProgramIncomplete { orphans: usize },
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The record of the operation cannot be kept, so it must not go on.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("policies forbid this: {violations} mandatory violations")]
    PolicyViolated { violations: usize },
    #[error("a policy pack did not answer: {message}")]
    PolicyFailed { message: String },
    #[error("{message}")]
    PlanViolated { message: String },
    #[error("the plan was made for state {planned}, but the state is now {actual}")]
    StalePlan { planned: String, actual: String },
    #[error("{urn} is protected and cannot be replaced{}", because(cause.as_ref()))]
    Protected { urn: Urn, cause: Option<Urn> },
    #[error("{} of {looked_up} objects are gone; nothing was recorded", gone.len())]
    MassRemoval { gone: Vec<Urn>, looked_up: usize },
    #[error("the stack has no resource {}", targets.join(", "))]
    UnknownTargets { targets: Vec<String> },
    #[error("{} resources outside the targets would have to change", resources.len())]
    OutsideTargets { resources: Vec<Urn> },
    /// A registration that makes no sense.
    #[error("{message}")]
    InvalidGoal { urn: Option<Urn>, message: String },
    /// A provider refused a resource's inputs.
    #[error("{urn} has inputs that its provider does not accept")]
    CheckFailed { urn: Urn },
    /// A provider could not be loaded, configured or asked.
    #[error("{urn}: {message}")]
    ProviderFailed { urn: Urn, message: String },
    /// A hook failed after its step was done and recorded.
    #[error("{urn}: {message}")]
    HookFailed { urn: Urn, message: String },
    #[error("delete hooks are recorded that only the program can run: {}", hooks.join(", "))]
    HooksNeedProgram { hooks: Vec<String> },
    /// The recorded state cannot be worked on.
    #[error("the recorded state is not usable: {message}")]
    BadState { message: String },
    /// A defect.
    #[error("{message}")]
    Internal { message: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepFailure {
    pub urn: Urn,
    pub op: StepOp,
    pub message: String,
    /// Nobody can tell whether it happened.
    pub unknown: bool,
}

fn steps_failed(failures: &[StepFailure]) -> String {
    match failures {
        [one] => format!("{} of {} failed: {}", one.op, one.urn, one.message),
        many => format!("{} steps failed", many.len()),
    }
}

fn because(cause: Option<&Urn>) -> String {
    cause
        .map(|urn| format!(" along with {urn}"))
        .unwrap_or_default()
}

impl DeployError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::StepsFailed { .. } => ErrorCode::STEPS_FAILED,
            Self::ProgramFailed { .. } => ErrorCode::PROGRAM_ENDED_IN_ERROR,
            Self::ProgramIncomplete { .. } => ErrorCode::PROGRAM_INCOMPLETE,
            Self::Cancelled => ErrorCode::CANCELLED,
            Self::Journal(_) => ErrorCode::JOURNAL_LOST,
            Self::PolicyViolated { .. } => ErrorCode::POLICY_VIOLATED,
            Self::PolicyFailed { .. } => ErrorCode::POLICY_FAILED,
            Self::PlanViolated { .. } => ErrorCode::PLAN_VIOLATED,
            Self::StalePlan { .. } => ErrorCode::PLAN_STALE,
            Self::Protected { .. } => ErrorCode::RESOURCE_PROTECTED,
            Self::MassRemoval { .. } => ErrorCode::MASS_REMOVAL,
            Self::UnknownTargets { .. } => ErrorCode::TARGET_UNKNOWN,
            Self::OutsideTargets { .. } => ErrorCode::OUTSIDE_TARGETS,
            Self::InvalidGoal { .. } => ErrorCode::INVALID_REGISTRATION,
            Self::CheckFailed { .. } => ErrorCode::INPUTS_REFUSED,
            Self::ProviderFailed { .. } => ErrorCode::PROVIDER_FAILED,
            Self::HookFailed { .. } => ErrorCode::HOOK_FAILED,
            Self::HooksNeedProgram { .. } => ErrorCode::HOOKS_NEED_PROGRAM,
            Self::BadState { .. } => ErrorCode::STATE_UNUSABLE,
            Self::Internal { .. } => ErrorCode::INTERNAL,
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Protected { .. } => Some("remove the protect option in a run of its own first"),
            Self::MassRemoval { .. } => {
                Some("check the credentials, then allow the removal explicitly")
            }
            Self::OutsideTargets { .. } => Some("add them to the targets, or include dependents"),
            Self::StalePlan { .. } => Some("make a new plan"),
            Self::HooksNeedProgram { .. } => Some("add --run-program, so that they can be called"),
            Self::StepsFailed { failures } if failures.iter().any(|f| f.unknown) => {
                Some("refresh to find out what really happened before going on")
            }
            _ => None,
        }
    }
}

impl From<DeployError> for Error {
    fn from(error: DeployError) -> Self {
        let wrapped = Self::new(error.code(), error.to_string());
        match error.help() {
            Some(help) => wrapped.with_help(help),
            None => wrapped,
        }
    }
}
