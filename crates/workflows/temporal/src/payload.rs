//! Values and failures as the server keeps them: JSON that its own tools can show, and our failures as
//! failures of the application with all of ours in their details.

use nimbus_core::ErrorCode;
use nimbus_workflows::FlowFailure;
use serde_json::Value;
use temporalio_common::data_converters::RawValue;
use temporalio_common::error::ApplicationFailure;
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads};
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::failure::v1::failure::FailureInfo;

/// The kind of a failure of a step that a worker does not know.
pub(crate) const UNKNOWN_STEP: &str = "nimbus.unknown-step";

pub(crate) fn to_payload(value: &Value) -> Payload {
    Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: value.to_string().into_bytes(),
        ..Payload::default()
    }
}

pub(crate) fn to_payloads(value: &Value) -> Payloads {
    Payloads {
        payloads: vec![to_payload(value)],
    }
}

pub(crate) fn to_raw(value: &Value) -> RawValue {
    RawValue::new(vec![to_payload(value)])
}

/// The first value; nothing at all is null, as the server's own tools send it.
pub(crate) fn to_value(payloads: &[Payload]) -> Result<Value, serde_json::Error> {
    match payloads.first() {
        None => Ok(Value::Null),
        Some(payload) if payload.data.is_empty() => Ok(Value::Null),
        Some(payload) => serde_json::from_slice(&payload.data),
    }
}

/// A failure on its way to the server. `last`: it is not to try again.
pub(crate) fn to_failure(failure: &FlowFailure, last: bool) -> ApplicationFailure {
    let details = serde_json::to_value(failure).unwrap_or_default();
    ApplicationFailure::builder(failure.message.clone())
        .type_name(failure.code.clone())
        .non_retryable(last)
        .details(to_raw(&details))
        .build()
}

/// How something that did not succeed ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordedFailure {
    Failed(FlowFailure),
    Cancelled,
    /// No process said how it ended.
    Lost,
    /// Somebody ended it by force.
    Terminated,
    /// No worker that was asked knows the step.
    UnknownStep,
}

/// The reason at the bottom of what the server recorded.
pub(crate) fn read_failure(failure: &Failure) -> RecordedFailure {
    let cause = failure.cause.as_deref();
    match &failure.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(info)) if info.r#type == UNKNOWN_STEP => {
            RecordedFailure::UnknownStep
        }
        Some(FailureInfo::ApplicationFailureInfo(info)) => {
            let details = info.details.as_ref();
            let ours = details.and_then(|details| to_value(&details.payloads).ok());
            let ours = ours.and_then(|value| serde_json::from_value(value).ok());
            RecordedFailure::Failed(ours.unwrap_or_else(|| foreign(&failure.message)))
        }
        Some(FailureInfo::CanceledFailureInfo(_)) => RecordedFailure::Cancelled,
        Some(FailureInfo::TimeoutFailureInfo(_)) => RecordedFailure::Lost,
        Some(FailureInfo::TerminatedFailureInfo(_)) => RecordedFailure::Terminated,
        _ => match cause {
            Some(cause) => read_failure(cause),
            None => RecordedFailure::Failed(foreign(&failure.message)),
        },
    }
}

/// A failure that this crate did not write.
fn foreign(message: &str) -> FlowFailure {
    FlowFailure::new(ErrorCode::WORKFLOW_RUNTIME, message)
}

/// What is to be said of a workflow that somebody ended by force.
pub(crate) fn terminated(what: &str) -> FlowFailure {
    let message = format!("{what} was ended by force in Temporal");
    let mut failure = FlowFailure::new(ErrorCode::WORKFLOW_CANCELLED, message).lasting();
    failure
        .attention
        .push(format!("what the steps of {what} did was not undone"));
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use temporalio_common::protos::temporal::api::failure::v1::{
        ActivityFailureInfo, ApplicationFailureInfo, TimeoutFailureInfo,
    };

    use super::*;

    fn wrapped(inner: FailureInfo) -> Failure {
        let inner = Failure {
            message: "inside".to_owned(),
            failure_info: Some(inner),
            ..Failure::default()
        };
        Failure {
            message: "activity error".to_owned(),
            cause: Some(Box::new(inner)),
            failure_info: Some(FailureInfo::ActivityFailureInfo(
                ActivityFailureInfo::default(),
            )),
            ..Failure::default()
        }
    }

    #[test]
    fn values_survive_and_nothing_is_null() {
        for value in [json!(null), json!({"a": [1, "x"]}), json!("text")] {
            assert_eq!(to_value(&[to_payload(&value)]).unwrap(), value);
        }
        assert_eq!(to_value(&[]).unwrap(), Value::Null);
        assert_eq!(to_value(&[Payload::default()]).unwrap(), Value::Null);
        let broken = Payload {
            data: b"{".to_vec(),
            ..Payload::default()
        };
        assert!(to_value(&[broken]).is_err());
    }

    #[test]
    fn the_reason_is_at_the_bottom() {
        let mut ours = FlowFailure::new(ErrorCode::INTERNAL, "quota").lasting();
        ours.attention.push("disk".to_owned());
        let details = to_payloads(&serde_json::to_value(&ours).unwrap());
        let recorded = wrapped(FailureInfo::ApplicationFailureInfo(
            ApplicationFailureInfo {
                details: Some(details),
                ..ApplicationFailureInfo::default()
            },
        ));
        assert_eq!(read_failure(&recorded), RecordedFailure::Failed(ours));
        let lost = wrapped(FailureInfo::TimeoutFailureInfo(
            TimeoutFailureInfo::default(),
        ));
        assert_eq!(read_failure(&lost), RecordedFailure::Lost);
        let foreign = wrapped(FailureInfo::ApplicationFailureInfo(
            ApplicationFailureInfo::default(),
        ));
        assert!(matches!(
            read_failure(&foreign),
            RecordedFailure::Failed(failure) if failure.message == "inside"
        ));
    }
}
