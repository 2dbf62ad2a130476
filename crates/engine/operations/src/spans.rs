//! An operation as a span of the trace: which stack, what is done, how many steps, how it ended.

use nimbus_core::Result;
use nimbus_engine_model::StepOp;
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};

use crate::report::OperationReport;
use crate::request::OperationRequest;

/// Runs an operation inside its span.
pub(crate) async fn operation(
    request: &OperationRequest,
    work: impl Future<Output = Result<OperationReport>>,
) -> Result<OperationReport> {
    let span = info_span!(
        target: "nimbus_trace",
        "operation",
        stack = %request.location.stack,
        action = request.operation.as_str(),
        preview = request.options.dry_run,
        steps = Empty,
        unchanged = Empty,
        outcome = Empty,
    );
    let ended = work.instrument(span.clone()).await;
    if span.is_disabled() {
        return ended;
    }
    // An error is told by its code: its text may quote anything.
    match &ended {
        Ok(report) => {
            let same = report
                .changes
                .get(&StepOp::Same)
                .copied()
                .unwrap_or_default();
            let all: usize = report.changes.values().sum();
            span.record("steps", all - same).record("unchanged", same);
            match &report.result {
                Ok(()) => span.record("outcome", "ok"),
                Err(error) => span.record("outcome", tracing::field::display(error.code())),
            };
        }
        Err(error) => {
            span.record("outcome", tracing::field::display(error.code()));
        }
    }
    ended
}
