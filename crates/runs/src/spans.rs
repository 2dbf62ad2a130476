//! Runs and units as spans of the trace: ids, counts and outcomes, never values.
//!
//! Below a unit come the engine's operations, their steps and the calls to providers.

use nimbus_core::ComponentName;
use nimbus_orchestrator::{RunAction, RunId, UnitOutcome};
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

use crate::context::RunContext;
use crate::execute::ExecutionReport;

/// The whole run; a preview has no number.
pub(crate) fn run(
    context: &RunContext,
    action: RunAction,
    run: Option<RunId>,
    units: usize,
) -> Span {
    let span = info_span!(
        target: "nimbus_trace",
        "run",
        action = action.as_str(),
        deployment = %context.id(),
        environment = %context.environment,
        units,
        run = Empty,
        trigger = Empty,
        outcome = Empty,
    );
    if let Some(run) = run {
        span.record("run", display(run));
    }
    span
}

pub(crate) fn run_ended(span: &Span, report: &ExecutionReport) {
    span.record("outcome", report.result.word());
    if let Some(trigger) = report.trigger {
        span.record("trigger", display(trigger));
    }
}

/// What is done with one unit.
pub(crate) fn unit(component: &ComponentName, work: &'static str) -> Span {
    info_span!(
        target: "nimbus_trace",
        "unit",
        component = %component,
        work,
        outcome = Empty,
    )
}

pub(crate) fn unit_ended(span: &Span, outcome: &UnitOutcome) {
    let word = match outcome {
        UnitOutcome::Succeeded => "succeeded",
        UnitOutcome::Skipped => "skipped",
        UnitOutcome::Failed { .. } => "failed",
    };
    span.record("outcome", word);
}
