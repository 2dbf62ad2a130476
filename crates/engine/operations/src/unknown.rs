//! Acts whose outcome nobody knows, and what may still be done before they are looked up.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_model::Snapshot;

use crate::request::{Action, RunRequest};

/// Goes on only if there are none, if they are looked up first, or if somebody said so.
pub(crate) fn refuse_unknown(request: &RunRequest, snapshot: &Snapshot) -> Result<()> {
    let asked = &request.options;
    let looks_up = asked.refresh || request.action == Action::Refresh;
    if snapshot.pending_operations.is_empty() || looks_up || asked.allow_unknown {
        return Ok(());
    }
    let list: Vec<String> = snapshot
        .pending_operations
        .iter()
        .map(|operation| format!("{} {}", operation.kind.as_str(), operation.resource.urn))
        .collect();
    let message = format!("nobody knows what became of {}", list.join(", "));
    Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(
        "`nimbus program refresh` looks them up; --allow-unknown leaves the question open",
    ))
}
