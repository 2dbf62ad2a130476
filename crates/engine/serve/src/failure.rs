//! What a provider could not do, as a status from which engines draw the right conclusion.
//!
//! Engines read `Internal` as "nobody knows what was done", and the usual other codes as "it was
//! not done". A half-made object is an error with a detail that has everything about it.

use nimbus_engine_ports::{FailureCause, InitFailure, ProviderError};
use nimbus_engine_proto::{ErrorResourceInitFailed, status_with_detail};
use nimbus_engine_wire::{Accept, WireError};
use tonic::{Code, Status};

use crate::answer;

pub(crate) fn status(error: ProviderError, accept: Accept) -> Status {
    match error {
        ProviderError::Failed { cause, message } => Status::new(code(cause), message),
        ProviderError::InitFailed(found) => half_made(*found, accept),
        ProviderError::Unknown { message } => Status::new(Code::Internal, message),
        ProviderError::Unimplemented { method } => {
            Status::new(Code::Unimplemented, format!("{method} is not implemented"))
        }
        // It ended before anything was done, which `Cancelled` would not say.
        ProviderError::Cancelled => Status::new(Code::Aborted, "cancelled"),
    }
}

/// The status from which the other side reads the same cause.
fn code(cause: FailureCause) -> Code {
    match cause {
        FailureCause::ServiceLimit => Code::ResourceExhausted,
        FailureCause::AccessDenied => Code::PermissionDenied,
        FailureCause::NotFound => Code::NotFound,
        // No status says the one without saying that the call may be repeated.
        FailureCause::Throttled | FailureCause::Other => Code::FailedPrecondition,
    }
}

fn half_made(found: InitFailure, accept: Accept) -> Status {
    let properties = answer::properties(&found.properties, accept);
    let inputs = found
        .inputs
        .map(|inputs| answer::properties(&inputs, accept));
    let (properties, inputs) = match (properties, inputs.transpose()) {
        (Ok(properties), Ok(inputs)) => (properties, inputs.flatten()),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    let message = found.reasons.join("; ");
    let detail = ErrorResourceInitFailed {
        id: found.id,
        properties,
        reasons: found.reasons,
        inputs,
        refresh_before_update: found.refresh_before_update,
    };
    status_with_detail(Code::Unknown, &message, &detail)
}

/// Something that should not have been sent: nothing was done with it.
pub(crate) fn unreadable(error: impl std::fmt::Display) -> Status {
    Status::new(Code::InvalidArgument, error.to_string())
}

/// An answer that cannot be sent: whatever was done is done.
pub(crate) fn unsendable(error: WireError) -> Status {
    Status::new(Code::Internal, format!("the answer: {error}"))
}
