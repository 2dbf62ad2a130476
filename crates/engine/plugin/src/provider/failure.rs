//! From a failed call to what the deployment can conclude from it.

use nimbus_engine_ports::ProviderError;
use nimbus_engine_proto::{ConfigureErrorMissingKeys, InputPropertiesError, status_detail};
use nimbus_engine_wire::WireError;
use tonic::{Code, Status};

use crate::link::CallError;

/// What a failed call means. The conclusion is careful in one direction only: "it did not do it"
/// needs the provider's own word.
pub(crate) fn failure(method: &'static str, error: CallError) -> ProviderError {
    match error {
        CallError::Gone { message } => ProviderError::Failed { message },
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
                message: explain(&status),
            },
        },
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
    ProviderError::Failed {
        message: error.to_string(),
    }
}

/// An answer that makes no sense: nobody knows what was done.
pub(crate) fn nonsense(method: &str, error: impl std::fmt::Display) -> ProviderError {
    ProviderError::Unknown {
        message: format!("the answer to {method} is not valid: {error}"),
    }
}
