//! Typed details of gRPC errors.
//!
//! A failed call may carry messages in the `grpc-status-details-bin` trailer: a serialized
//! `google.rpc.Status` whose `details` are `Any` values. Details that do not decode are treated as
//! absent: they only ever add to an error that is already one.

use prost::{Message, Name};
use tonic::{Code, Status};

use crate::generated::rpc;

/// The first detail of the wanted type.
pub fn status_detail<M: Message + Name + Default>(status: &Status) -> Option<M> {
    let envelope = rpc::Status::decode(status.details()).ok()?;
    envelope.details.iter().find_map(|any| any.to_msg().ok())
}

/// An error that carries one detail.
pub fn status_with_detail<M: Message + Name>(code: Code, message: &str, detail: &M) -> Status {
    let any = prost_types::Any {
        type_url: M::type_url(),
        value: detail.encode_to_vec(),
    };
    let envelope = rpc::Status {
        code: i32::from(code),
        message: message.to_owned(),
        details: vec![any],
    };
    Status::with_details(code, message, envelope.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorCause, ErrorResourceInitFailed};

    fn cause() -> ErrorCause {
        ErrorCause {
            message: "m".into(),
            stack_trace: "s".into(),
        }
    }

    #[test]
    fn detail_is_found_by_its_type() {
        let status = status_with_detail(Code::Unknown, "failed", &cause());
        assert_eq!(status_detail::<ErrorCause>(&status), Some(cause()));
        assert_eq!(status_detail::<ErrorResourceInitFailed>(&status), None);
    }

    #[test]
    fn detail_carries_the_type_name_that_peers_look_for() {
        let status =
            status_with_detail(Code::Unknown, "failed", &ErrorResourceInitFailed::default());
        let envelope = rpc::Status::decode(status.details()).expect("just encoded");
        assert_eq!(
            envelope.details[0].type_url,
            "type.googleapis.com/pulumirpc.ErrorResourceInitFailed"
        );
    }

    #[test]
    fn damaged_details_count_as_none() {
        let status = Status::with_details(Code::Unknown, "failed", vec![0xff, 0xff].into());
        assert_eq!(status_detail::<ErrorCause>(&status), None);
    }
}
