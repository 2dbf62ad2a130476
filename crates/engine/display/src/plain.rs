//! Events as lines, for output that is no terminal or that asked for every difference.

use std::time::Duration;

use nimbus_engine_model::StepOp;
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity, StepEvent};

use crate::line::{StyledLine, Tone};
use crate::ops;
use crate::state::{DisplayState, is_default_provider};
use crate::step::{Basis, StepDetail, step_lines};
use crate::summary::{diagnostic_lines, violation_lines};
use crate::text::clean_name;
use crate::tree::status;

/// What each step gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// A line when it starts and a line when it ends.
    Progress,
    /// Its differing properties.
    Diff(StepDetail),
    /// Nothing: only the end is told.
    EndOnly,
}

/// The lines for one event. `state` has seen the event already.
pub fn event_lines(
    event: &EngineEvent,
    state: &DisplayState,
    style: LineStyle,
    now: Duration,
) -> Vec<StyledLine> {
    if style == LineStyle::EndOnly {
        return Vec::new();
    }
    match event {
        EngineEvent::ResourcePre { step, planning } => match style {
            LineStyle::EndOnly => Vec::new(),
            LineStyle::Progress if *planning => Vec::new(),
            LineStyle::Progress => progress_line(step, state, now),
            LineStyle::Diff(detail) => started(step, state, detail),
        },
        EngineEvent::ResourceOutputs { step, .. } => match style {
            LineStyle::EndOnly => Vec::new(),
            LineStyle::Progress if is_told(step, state) => Vec::new(),
            LineStyle::Progress => progress_line(step, state, now),
            LineStyle::Diff(detail) => found(step, state, detail),
        },
        EngineEvent::ResourceFailed { step, .. } => progress_line(step, state, now),
        EngineEvent::Diagnostic(diagnostic) => diagnostic_line(diagnostic),
        EngineEvent::PolicyViolation(violation) => violation_lines(violation),
        EngineEvent::PolicyLoaded { pack, version } => {
            let text = format!(
                "Policy pack {} {} loaded",
                clean_name(pack),
                clean_name(version)
            );
            vec![StyledLine::of(Tone::Dim, text)]
        }
        EngineEvent::PolicyRemediation {
            urn, policy, pack, ..
        } => {
            let text = format!("  [remediated] {pack}: {policy} ({urn})");
            vec![StyledLine::of(Tone::Info, clean_name(&text))]
        }
        EngineEvent::Cancelled => vec![StyledLine::of(
            Tone::Warning,
            "Stopping after running steps",
        )],
        EngineEvent::Prelude { .. } | EngineEvent::Summary(_) => Vec::new(),
    }
}

fn is_told(step: &StepEvent, state: &DisplayState) -> bool {
    state.rows.get(&step.urn).is_some_and(|row| row.told)
}

fn progress_line(step: &StepEvent, state: &DisplayState, now: Duration) -> Vec<StyledLine> {
    let Some(row) = state
        .rows
        .get(&step.urn)
        .filter(|row| row.is_interesting() && row.settled_op() != StepOp::Same)
    else {
        return Vec::new();
    };
    let op = row.settled_op();
    let mut line = StyledLine::of(Tone::Plain, " ").with(ops::tone(op), ops::symbol(op));
    line.push(
        Tone::Plain,
        format!(" {} {} ", clean_name(&row.type_), clean_name(&row.name)),
    );
    line.append(status(row, now));
    if !row.changed_keys.is_empty() {
        line.push(Tone::Plain, " [diff: ");
        line.append(row.changed_keys.clone());
        line.push(Tone::Plain, "]");
    }
    vec![line.trimmed()]
}

fn started(step: &StepEvent, state: &DisplayState, detail: StepDetail) -> Vec<StyledLine> {
    let replacement_half = ops::is_part_of_replacement(step.op) && !step.logical;
    let shown = !matches!(step.op, StepOp::Same | StepOp::Refresh)
        && !replacement_half
        && !is_default_provider(&step.urn);
    if !shown {
        return Vec::new();
    }
    step_lines(step, depth(state, step), Basis::Program, detail)
}

/// What a refresh found; other outcomes were shown when they started.
fn found(step: &StepEvent, state: &DisplayState, detail: StepDetail) -> Vec<StyledLine> {
    let refreshed = state.rows.get(&step.urn).is_some_and(|row| row.refreshing);
    let changed = matches!(step.op, StepOp::Update | StepOp::Delete);
    if refreshed && changed {
        step_lines(step, depth(state, step), Basis::Refresh, detail)
    } else {
        Vec::new()
    }
}

/// How many ancestors of the step's resource were seen.
fn depth(state: &DisplayState, step: &StepEvent) -> usize {
    let mut depth = 0;
    let mut urn = &step.urn;
    while let Some(parent) = state.rows.get(urn).and_then(|row| row.parent.as_ref()) {
        if !state.rows.contains_key(parent) || depth > state.rows.len() {
            break;
        }
        depth += 1;
        urn = parent;
    }
    depth
}

fn diagnostic_line(diagnostic: &Diagnostic) -> Vec<StyledLine> {
    if diagnostic.ephemeral || diagnostic.severity == Severity::Debug {
        return Vec::new();
    }
    let mut lines = diagnostic_lines(diagnostic, "    ");
    if let Some(urn) = &diagnostic.urn {
        let place = format!(
            "  {} ({}):",
            clean_name(urn.type_()),
            clean_name(urn.name())
        );
        lines.insert(0, StyledLine::of(Tone::Plain, place));
    }
    lines
}
