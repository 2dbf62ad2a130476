//! Acts whose outcome nobody knows, and what may still be done before they are looked up.

use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_model::{OperationKind, Snapshot};

use crate::request::OperationRequest;

/// Goes on only if there are none, if they are looked up first, or if somebody said so. An update over
/// a create that may have happened makes the object twice, and one over an unknown delete counts on
/// what may be gone.
pub(crate) fn refuse_unknown(request: &OperationRequest, snapshot: &Snapshot) -> Result<()> {
    let asked = &request.options;
    let looks_up = asked.refresh || request.operation == StackOperation::Refresh;
    if snapshot.pending_operations.is_empty() || looks_up || asked.allow_unknown {
        return Ok(());
    }
    let list: Vec<String> = snapshot
        .pending_operations
        .iter()
        .map(|operation| format!("{} {}", operation.kind.as_str(), operation.resource.urn))
        .collect();
    let message = format!("nobody knows what became of {}", list.join(", "));
    Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(unknown_outcomes_help(snapshot)))
}

/// The commands that settle what a snapshot leaves open. A refresh finds out about everything that
/// has an id; a create that it does not find by its name has none.
pub fn unknown_outcomes_help(snapshot: &Snapshot) -> String {
    let creates = snapshot
        .pending_operations
        .iter()
        .filter(|operation| operation.kind == OperationKind::Creating)
        .count();
    let mut text = String::from("`nimbus program refresh` looks them up");
    if creates > 0 {
        text.push_str(
            ", creates by the names of their objects; for a create that it does not find, look for \
             the object yourself: if there is none, `nimbus program refresh \
             --clear-pending-creates` forgets the create, and if there is one, `nimbus program \
             import TYPE NAME ID` takes it in",
        );
    }
    text.push_str("; --allow-unknown leaves the question open");
    text
}
