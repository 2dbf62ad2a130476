//! What is said at the end: messages, policies, outputs, counts and time.

use std::collections::BTreeSet;

use nimbus_engine_model::{StepOp, Urn};
use nimbus_engine_ports::{Diagnostic, EnforcementLevel, PolicyViolation, Severity, Summary};

use crate::diff::{LinePrefix, Renderer, TextLimits, structural};
use crate::line::{StyledLine, Tone};
use crate::ops;
use crate::state::{DisplayState, StackOutputs};
use crate::text::{clean, clean_name, duration};

/// Order in which counts are told; what changes most comes first.
const COUNTED: [StepOp; 14] = [
    StepOp::Create,
    StepOp::Update,
    StepOp::Delete,
    StepOp::Replace,
    StepOp::CreateReplacement,
    StepOp::DeleteReplaced,
    StepOp::Import,
    StepOp::ImportReplacement,
    StepOp::Read,
    StepOp::ReadReplacement,
    StepOp::Refresh,
    StepOp::ReadDiscard,
    StepOp::DiscardReplaced,
    StepOp::RemovePendingReplace,
];

/// Whether messages were shown when they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessagesTold {
    Already,
    NotYet,
}

/// Everything below the tree.
pub(crate) fn closing_lines(state: &DisplayState, messages: MessagesTold) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let mut section = |title: &str, body: Vec<StyledLine>| {
        if !body.is_empty() {
            lines.push(StyledLine::new());
            lines.push(StyledLine::of(Tone::Heading, title));
            lines.extend(body);
        }
    };
    if messages == MessagesTold::NotYet {
        section("Diagnostics:", diagnostics(state));
        section("Policies:", policies(state));
    }
    if let Some(outputs) = &state.outputs {
        section("Outputs:", output_lines(outputs));
    }
    if let Some(summary) = &state.summary {
        section("Resources:", count_lines(summary));
        lines.push(StyledLine::new());
        lines.push(
            StyledLine::of(Tone::Heading, "Duration: ")
                .with(Tone::Plain, duration(summary.duration)),
        );
        lines.extend(ending(state, summary));
    }
    lines
}

fn diagnostics(state: &DisplayState) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for (urn, entries) in &state.diagnostics {
        if !lines.is_empty() {
            lines.push(StyledLine::new());
        }
        let urn = urn.as_ref().unwrap_or(&state.root);
        lines.push(StyledLine::of(
            Tone::Plain,
            format!(
                "  {} ({}):",
                clean_name(urn.type_()),
                clean_name(urn.name())
            ),
        ));
        lines.extend(
            entries
                .iter()
                .flat_map(|entry| diagnostic_lines(entry, "    ")),
        );
    }
    lines
}

/// A message with its severity in front, every line indented.
pub(crate) fn diagnostic_lines(diagnostic: &Diagnostic, indent: &str) -> Vec<StyledLine> {
    let label = match diagnostic.severity {
        Severity::Error => Some((Tone::Error, "error: ")),
        Severity::Warning => Some((Tone::Warning, "warning: ")),
        Severity::Debug => Some((Tone::Dim, "debug: ")),
        Severity::Info | Severity::Notice => None,
    };
    let text = clean(&diagnostic.message);
    let mut label = label;
    text.trim_end()
        .lines()
        .map(|text| {
            let mut line = StyledLine::of(Tone::Plain, indent);
            if let Some((tone, words)) = label.take() {
                line.push(tone, words);
            }
            line.with(Tone::Plain, text)
        })
        .collect()
}

fn policies(state: &DisplayState) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for violation in &state.violations {
        lines.extend(violation_lines(violation));
    }
    for (urn, pack, policy) in &state.remediations {
        let text = format!("  [remediated] {pack}: {policy}{}", at(Some(urn)));
        lines.push(StyledLine::of(Tone::Info, clean_name(&text)));
    }
    lines
}

pub(crate) fn violation_lines(violation: &PolicyViolation) -> Vec<StyledLine> {
    let (tone, level) = match violation.enforcement {
        EnforcementLevel::Mandatory => (Tone::Error, "mandatory"),
        EnforcementLevel::Remediate => (Tone::Error, "remediate"),
        EnforcementLevel::Advisory => (Tone::Warning, "advisory"),
        EnforcementLevel::Disabled => (Tone::Dim, "disabled"),
    };
    let place = at(violation.urn.as_ref());
    let version = match violation.pack_version.as_str() {
        "" => String::new(),
        version => format!("@{version}"),
    };
    let heading = format!("{}{version}: {}{place}", violation.pack, violation.policy);
    let mut lines =
        vec![StyledLine::of(tone, format!("  [{level}] ")).with(Tone::Plain, clean_name(&heading))];
    lines.extend(
        clean(&violation.message)
            .trim_end()
            .lines()
            .map(|text| StyledLine::of(Tone::Plain, format!("      {text}"))),
    );
    lines
}

fn at(urn: Option<&Urn>) -> String {
    urn.map(|urn| format!(" ({}: {})", urn.type_(), urn.name()))
        .unwrap_or_default()
}

/// All outputs, with marks at those that differ. Unchanged ones are shown too: people look here
/// for them.
fn output_lines(outputs: &StackOutputs) -> Vec<StyledLine> {
    let changed = structural(&outputs.old, &outputs.new);
    let keys: BTreeSet<&String> = outputs.new.keys().chain(changed.keys()).collect();
    let width = keys
        .iter()
        .map(|key| clean_name(key).chars().count())
        .max()
        .unwrap_or(0);
    let mut renderer = Renderer::new(1, TextLimits::SHORT);
    for key in keys {
        let title = format!("{:<width$}: ", clean_name(key));
        match (changed.get(key), outputs.new.get(key)) {
            (Some(node), _) => renderer.node(&title, node),
            (None, Some(value)) => renderer.value(&title, value, LinePrefix::NONE, ""),
            (None, None) => {}
        }
    }
    renderer.finish()
}

/// `+ 3 to create`, one line per kind, then what stays.
fn count_lines(summary: &Summary) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = COUNTED
        .iter()
        .filter_map(|op| {
            let count = summary.changes.get(op).filter(|count| **count > 0)?;
            let words = if summary.is_preview {
                format!("{count} to {}", ops::planned(*op))
            } else {
                format!("{count} {}", ops::done(*op))
            };
            let text = format!("{}{words}", ops::symbol(*op));
            Some(StyledLine::of(Tone::Plain, "    ").with(ops::tone(*op), text))
        })
        .collect();
    let same = summary.changes.get(&StepOp::Same).copied().unwrap_or(0);
    if same > 0 {
        lines.push(StyledLine::of(
            Tone::Plain,
            format!("      {same} unchanged"),
        ));
    }
    lines
}

fn ending(state: &DisplayState, summary: &Summary) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if summary.maybe_corrupt {
        lines.push(StyledLine::of(
            Tone::Error,
            "Some outcomes are not known. The next command says which, and how to settle them.",
        ));
    }
    if state.cancelling {
        lines.push(StyledLine::of(Tone::Warning, "Cancelled."));
    } else if !summary.succeeded {
        lines.push(StyledLine::of(Tone::Error, "Failed."));
    }
    lines
}
