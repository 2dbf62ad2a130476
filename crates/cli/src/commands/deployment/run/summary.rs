//! How a run ended, as its last line.

use std::collections::BTreeMap;

use nimbus_orchestrator::execute::RunReport;
use nimbus_orchestrator::run::UnitState;
use schemars::JsonSchema;
use serde::Serialize;

use super::crew::Crew;
use super::forecast::Prediction;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(JsonSchema, Serialize)]
pub(crate) struct RunSummary {
    /// Always `summary`: the last line of a run.
    pub(super) event: &'static str,
    /// `R0001`; a preview has none.
    pub(super) run: Option<String>,
    /// `deploy`, `preview`, `destroy` or `rollback`.
    pub(super) kind: &'static str,
    pub(super) deployment: String,
    pub(super) environment: String,
    pub(super) rehearsal: bool,
    /// `succeeded`, `failed`, `interrupted`, `rolled_back` or `needs_attention`.
    pub(super) result: &'static str,
    /// Whether anything changed, or would.
    pub(super) changes: bool,
    pub(super) seconds: u64,
    /// What made it undo its work.
    pub(super) trigger: Option<String>,
    /// The version of the environment that it left.
    pub(super) version: Option<u32>,
    pub(super) units: Vec<UnitSummary>,
    /// Checks of what was deployed, in the order in which they ran.
    pub(super) checks: Vec<CheckSummary>,
    /// Units that could not be rolled back, and why: a person must look.
    pub(super) attention: Vec<String>,
    pub(super) warnings: Vec<String>,
    /// What a real run would take, when a rehearsal was given latencies.
    pub(super) prediction: Option<Prediction>,
    /// What to do next, if there is something.
    pub(super) next: Option<String>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UnitSummary {
    name: String,
    /// `succeeded`, `skipped`, `failed`, `rolled_back` or `not_started`.
    status: &'static str,
    /// What went wrong, or why it was not started.
    message: Option<String>,
    /// Why it ran.
    reason: Option<String>,
    changes: BTreeMap<String, u64>,
}

/// One check of what was deployed.
#[derive(Clone, JsonSchema, Serialize)]
pub(crate) struct CheckSummary {
    pub(super) name: String,
    /// `passed`, `failed`, `warned` or `skipped`.
    pub(super) status: &'static str,
    /// What went wrong, or why it did not run.
    pub(super) message: Option<String>,
    pub(super) seconds: u64,
}

/// How each unit ended.
pub(super) fn units(report: &RunReport, crew: &Crew) -> Vec<UnitSummary> {
    let unit = |(name, state): (&String, &UnitState)| {
        let note = crew.note(name);
        UnitSummary {
            name: name.clone(),
            status: state.word(),
            message: state
                .message()
                .map(|text| nimbus_telemetry::redact(text).into_owned()),
            reason: note.as_ref().and_then(|note| note.reason.clone()),
            changes: note.map(|note| note.report.changes).unwrap_or_default(),
        }
    };
    report.units.iter().map(unit).collect()
}

pub(super) fn has_changes(units: &[UnitSummary]) -> bool {
    let counts = units.iter().flat_map(|unit| &unit.changes);
    counts
        .into_iter()
        .any(|(op, count)| op != "same" && *count > 0)
}

impl RunSummary {
    fn counts(&self) -> String {
        let mut parts = Vec::new();
        for (status, shown) in [
            ("succeeded", "done"),
            ("skipped", "skipped"),
            ("failed", "failed"),
            ("rolled_back", "rolled back"),
            ("not_started", "not started"),
        ] {
            let count = self.units.iter().filter(|unit| unit.status == status);
            match count.count() {
                0 => {}
                count => parts.push(format!("{count} {shown}")),
            }
        }
        parts.join(", ")
    }

    fn resources(&self) -> String {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for (op, count) in self.units.iter().flat_map(|unit| &unit.changes) {
            *totals.entry(op).or_default() += count;
        }
        let shown: Vec<_> = totals.iter().map(|(op, n)| format!("{n} {op}")).collect();
        if shown.is_empty() {
            "none".to_owned()
        } else {
            shown.join(", ")
        }
    }
}

impl Report for RunSummary {
    const SCHEMA: &'static str = "nimbus/run/1";

    fn text(&self, terminal: Terminal) -> String {
        let tone = if self.result == "succeeded" {
            Tone::Good
        } else {
            Tone::Bad
        };
        let result = terminal.paint(tone, &self.result.replace('_', " "));
        let rehearsal = if self.rehearsal { "REHEARSAL " } else { "" };
        let run = self.run.as_ref().map(|run| format!("{run} "));
        let mut text = format!(
            "\n{rehearsal}{}{} {}: {result} in {}s\n  Stacks: {}\n  Resources: {}\n",
            run.unwrap_or_default(),
            self.deployment,
            self.environment,
            self.seconds,
            self.counts(),
            self.resources(),
        );
        if let Some(version) = self.version {
            text.push_str(&format!("  Version: {version}\n"));
        }
        if let Some(trigger) = &self.trigger {
            text.push_str(&format!("  Rolled back because {trigger}\n"));
        }
        if self.result == "rolled_back" {
            text.push_str("✓ Rollback completed. Infrastructure returned to previous state.\n");
        }
        if let Some(prediction) = &self.prediction {
            text.push_str(prediction.text());
        }
        for unit in self.units.iter().filter(|unit| unit.status == "failed") {
            let message = unit.message.as_deref().unwrap_or_default();
            let line = format!("  ✗ {}: {message}", unit.name);
            text.push_str(&terminal.paint(Tone::Bad, &line));
            text.push('\n');
        }
        for check in &self.checks {
            let message = check.message.as_ref().map(|text| format!(" ({text})"));
            let line = format!(
                "  Check {}: {}{}",
                check.name,
                check.status,
                message.unwrap_or_default()
            );
            let tone = match check.status {
                "failed" => Tone::Bad,
                "warned" => Tone::Warning,
                _ => Tone::Faint,
            };
            text.push_str(&terminal.paint(tone, &line));
            text.push('\n');
        }
        for warning in &self.warnings {
            let line = format!("  Warning: {warning}");
            text.push_str(&terminal.paint(Tone::Warning, &line));
            text.push('\n');
        }
        if !self.attention.is_empty() {
            text.push_str("Needs attention:\n");
            for item in &self.attention {
                text.push_str(&format!("  - {item}\n"));
            }
        }
        if let Some(next) = &self.next {
            text.push_str(&format!("Next: {next}\n"));
        }
        text
    }
}
