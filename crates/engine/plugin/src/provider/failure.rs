//! From a failed call to what the deployment can conclude from it.

use nimbus_engine_ports::{FailureCause, ProviderError};
use nimbus_engine_proto::{ConfigureErrorMissingKeys, InputPropertiesError, status_detail};
use nimbus_engine_wire::WireError;
use tonic::{Code, Status};

use crate::link::CallError;

/// What a failed call means. The conclusion is careful in one direction only: "it did not do it"
/// needs the provider's own word.
pub(crate) fn failure(method: &'static str, error: CallError) -> ProviderError {
    match error {
        CallError::Gone { message } => ProviderError::failed(message),
        CallError::Abandoned => ProviderError::Cancelled,
        CallError::Lost { message } => ProviderError::Unknown { message },
        CallError::Answered(status) => match status.code() {
            Code::Unimplemented => ProviderError::Unimplemented { method },
            // Interrupted, or broken inside: the provider does not say how far it came.
            Code::Cancelled | Code::DeadlineExceeded | Code::Internal | Code::DataLoss => {
                ProviderError::Unknown {
                    message: explain(&status),
                }
            }
            // Most providers report every ordinary error as `Unknown`.
            _ => ProviderError::Failed {
                cause: cause(&status),
                message: explain(&status),
            },
        },
    }
}

/// What the provider's status says, or else the code of its cloud in the text. Most providers only
/// pass the text of their cloud's client on.
fn cause(status: &Status) -> FailureCause {
    let said = FailureCause::of_provider_text(status.message());
    match status.code() {
        _ if said != FailureCause::Other => said,
        // The library of calls itself answers so to a message that is too long for it.
        Code::ResourceExhausted if !status.message().contains("larger than max") => {
            FailureCause::ServiceLimit
        }
        Code::PermissionDenied | Code::Unauthenticated => FailureCause::AccessDenied,
        Code::NotFound => FailureCause::NotFound,
        _ => FailureCause::Other,
    }
}

/// The provider's message with what its details add.
fn explain(status: &Status) -> String {
    let mut lines = vec![status.message().trim().to_owned()];
    if let Some(detail) = status_detail::<InputPropertiesError>(status) {
        let errors = detail.errors.into_iter();
        lines.extend(errors.map(|e| format!("{}: {}", e.property_path, e.reason)));
    }
    if let Some(detail) = status_detail::<ConfigureErrorMissingKeys>(status) {
        let keys = detail.missing_keys.into_iter();
        lines.extend(keys.map(|k| format!("missing configuration {}: {}", k.name, k.description)));
    }
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        return format!("the provider gave no reason ({})", status.code());
    }
    lines.join("\n")
}

/// A value that cannot be sent: nothing was asked.
pub(crate) fn unsendable(error: WireError) -> ProviderError {
    ProviderError::failed(error.to_string())
}

/// An answer that makes no sense: nobody knows what was done.
pub(crate) fn nonsense(method: &str, error: impl std::fmt::Display) -> ProviderError {
    ProviderError::Unknown {
        message: format!("the answer to {method} is not valid: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause_of(code: Code, message: &str) -> FailureCause {
        let answered = CallError::Answered(Status::new(code, message));
        failure("Create", answered).cause()
    }

    #[test]
    fn the_status_and_the_clouds_own_code_say_the_cause() {
        let text = "creating VPC: api error VpcLimitExceeded: the maximum number";
        assert_eq!(cause_of(Code::Unknown, text), FailureCause::ServiceLimit);
        assert_eq!(
            cause_of(Code::ResourceExhausted, "no more"),
            FailureCause::ServiceLimit
        );
        assert_eq!(
            cause_of(Code::PermissionDenied, "no"),
            FailureCause::AccessDenied
        );
        assert_eq!(cause_of(Code::NotFound, "no"), FailureCause::NotFound);
    }

    #[test]
    fn words_and_the_limits_of_calls_are_no_cause() {
        for (code, text) in [
            (Code::Unknown, "the tag quota-exceeded is not valid"),
            (Code::InvalidArgument, "quota exceeded"),
            (
                Code::ResourceExhausted,
                "grpc: received message larger than max (5 vs. 4)",
            ),
        ] {
            assert_eq!(cause_of(code, text), FailureCause::Other, "{text}");
        }
    }
}
