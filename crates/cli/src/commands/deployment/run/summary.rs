//! How a run ended, as its last line.

mod markdown;

use std::collections::BTreeMap;

use jiff::Timestamp;
use nimbus_core::{ComponentName, EnvironmentName, Result};
use nimbus_orchestrator::{RunAction, RunResult, RunTally, TalliedCheck, TalliedUnit};
use nimbus_runs::{CheckResult, FinishedRun, PreviewReport, PreviewRequest};
use schemars::JsonSchema;
use serde::Serialize;

use super::forecast::Prediction;
use super::preview::PreviewFormat;
use super::view::{changes_text, mark};
use crate::actions::ActionsJob;
use crate::context::CommandContext;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};
use markdown::UnitDiffs;

#[derive(JsonSchema, Serialize)]
pub(crate) struct RunSummary {
    /// Always `summary`: the last line of a run.
    event: &'static str,
    /// `R0001`; a preview has none.
    run: Option<String>,
    /// `deploy`, `preview`, `destroy`, `rollback` or `refresh`.
    kind: &'static str,
    deployment: String,
    environment: String,
    rehearsal: bool,
    /// `succeeded`, `failed`, `interrupted`, `rolled_back` or `needs_attention`; `running` of one that has
    /// not ended.
    result: &'static str,
    /// Whether anything changed, or would.
    changes: bool,
    seconds: u64,
    /// What made it undo its work, or would have where it was told not to.
    trigger: Option<String>,
    /// The version of the environment that it left.
    version: Option<u32>,
    units: Vec<UnitSummaryReport>,
    /// Checks of what was deployed, in the order in which they ran.
    checks: Vec<CheckSummary>,
    /// Units that could not be rolled back, and why: a person must look.
    attention: Vec<String>,
    warnings: Vec<String>,
    /// What a real run would take, when a rehearsal was given latencies.
    prediction: Option<Prediction>,
    /// What to do next, if there is something.
    next: Option<String>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UnitSummaryReport {
    name: String,
    /// `succeeded`, `skipped`, `failed`, `rolled_back` or `not_started`.
    status: String,
    /// What went wrong, or why it was not started.
    message: Option<String>,
    /// Why it ran.
    reason: Option<String>,
    changes: BTreeMap<String, u64>,
    /// What resolvers answered it, in a preview: resolver, question, outputs and the lease.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leases: Vec<serde_json::Value>,
}

/// One check of what was deployed.
#[derive(Clone, JsonSchema, Serialize)]
pub(crate) struct CheckSummary {
    name: String,
    /// `passed`, `failed`, `warned` or `skipped`.
    status: &'static str,
    /// What went wrong, or why it did not run.
    message: Option<String>,
    seconds: u64,
}

/// How each unit ended.
fn units(units: &BTreeMap<ComponentName, nimbus_runs::UnitSummary>) -> Vec<UnitSummaryReport> {
    let unit = |(name, unit): (&ComponentName, &nimbus_runs::UnitSummary)| UnitSummaryReport {
        name: name.to_string(),
        status: unit.state.word().to_owned(),
        message: unit
            .state
            .message()
            .map(|text| nimbus_telemetry::redact(text).into_owned()),
        reason: unit.reason.clone(),
        changes: unit.changes.clone(),
        leases: unit
            .leases
            .iter()
            .map(|lease| serde_json::json!(lease))
            .collect(),
    };
    units.iter().map(unit).collect()
}

/// Where a run is, for whoever has no request of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunAddress<'a> {
    pub(crate) deployment: &'a str,
    pub(crate) environment: EnvironmentName,
    pub(crate) rehearsal: bool,
    /// Where its states are, when not where they usually are.
    pub(crate) backend: Option<&'a str>,
}

fn seconds_between(from: Option<&str>, to: Option<&str>) -> u64 {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    match (time(from), time(to)) {
        (Some(from), Some(to)) => to.duration_since(from).as_secs().max(0).unsigned_abs(),
        _ => 0,
    }
}

fn any_change(units: &[UnitSummaryReport]) -> bool {
    let counts = units.iter().flat_map(|unit| &unit.changes);
    counts
        .into_iter()
        .any(|(op, count)| op != "same" && *count > 0)
}

impl RunSummary {
    pub(super) fn of_run(
        finished: &FinishedRun,
        prediction: Option<Prediction>,
        next: Option<String>,
    ) -> Self {
        let request = &finished.record.request;
        let units = units(&finished.units);
        let check = |check: &CheckResult| CheckSummary {
            name: check.name.clone(),
            status: check.status.word(),
            message: check.message.clone(),
            seconds: check.seconds,
        };
        Self {
            event: "summary",
            run: Some(finished.record.run.to_string()),
            kind: request.action.as_str(),
            deployment: request.deployment.to_string(),
            environment: request.environment.to_string(),
            rehearsal: request.rehearsal,
            result: finished.result.word(),
            changes: any_change(&units),
            seconds: finished.took.as_secs(),
            trigger: finished.trigger.map(|trigger| trigger.to_string()),
            version: finished.version,
            units,
            checks: finished.checks.iter().map(check).collect(),
            attention: finished.attention.clone(),
            warnings: finished.warnings.clone(),
            prediction,
            next,
        }
    }

    /// Of a run that was only heard of; `run` is `None` for a preview, which keeps none.
    pub(crate) fn of_tally(
        tally: &RunTally,
        action: RunAction,
        place: RunAddress<'_>,
        result: RunResult,
        next: Option<String>,
    ) -> Self {
        let unit = |(name, unit): (&ComponentName, &TalliedUnit)| UnitSummaryReport {
            name: name.to_string(),
            status: unit.status.clone(),
            message: unit.message.clone(),
            reason: unit.reason.clone(),
            changes: unit.changes.clone(),
            // The log of a run that was only heard of has them.
            leases: Vec::new(),
        };
        let units: Vec<_> = tally.units.iter().map(unit).collect();
        let check = |check: &TalliedCheck| CheckSummary {
            name: check.name.clone(),
            status: check.status.word(),
            message: check.message.clone(),
            seconds: check.seconds,
        };
        let recorded = action != RunAction::Preview;
        Self {
            event: "summary",
            run: tally.run.filter(|_| recorded).map(|run| run.to_string()),
            kind: action.as_str(),
            deployment: place.deployment.to_owned(),
            environment: place.environment.to_string(),
            rehearsal: place.rehearsal,
            result: result.word(),
            changes: any_change(&units),
            seconds: seconds_between(tally.began_at.as_deref(), tally.ended_at.as_deref()),
            trigger: tally.trigger.map(|trigger| trigger.to_string()),
            version: tally.version,
            units,
            checks: tally.checks.iter().map(check).collect(),
            attention: tally.attention(),
            warnings: tally.warnings.clone(),
            prediction: None,
            next,
        }
    }

    pub(super) fn of_preview(
        report: &PreviewReport,
        deployment: String,
        request: &PreviewRequest,
    ) -> Self {
        let units = units(&report.units);
        Self {
            event: "summary",
            run: None,
            kind: RunAction::Preview.as_str(),
            deployment,
            environment: request.environment.to_string(),
            rehearsal: request.rehearsal,
            result: report.result.word(),
            changes: any_change(&units),
            seconds: report.took.as_secs(),
            trigger: None,
            version: None,
            units,
            checks: Vec::new(),
            attention: Vec::new(),
            warnings: report.warnings.clone(),
            prediction: None,
            next: None,
        }
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.changes
    }

    /// The same of a run that has not ended.
    pub(crate) fn still_running(self) -> Self {
        Self {
            result: "running",
            ..self
        }
    }

    /// A line for each unit, in the order of their names.
    pub(crate) fn unit_lines(&self, terminal: Terminal) -> String {
        let mut page = ReportPage::default();
        for unit in &self.units {
            let (mark, tone) = mark(&unit.status);
            let what = match unit.status.as_str() {
                "succeeded" => changes_text(&unit.changes),
                other => other.replace('_', " "),
            };
            // What failed is told in full below.
            let why = match unit.status.as_str() {
                "failed" => None,
                _ => unit.message.as_ref().or(unit.reason.as_ref()),
            };
            let why = why.map(|why| format!(" — {}", why.lines().next().unwrap_or_default()));
            let (name, mark) = (&unit.name, terminal.paint(tone, mark));
            let why = why.unwrap_or_default();
            page.line(format!("  {mark} {name:<18} {what}{why}"));
            for lease in &unit.leases {
                let question = lease["question"].as_str().unwrap_or_default();
                page.line(format!("      {question}: {}", lease["outputs"]));
            }
        }
        page.into_text()
    }

    /// The last word, as text or JSON.
    pub(crate) fn tell_text(&self, context: &CommandContext) -> Result<()> {
        self.tell(PreviewFormat::Text, &[], context)
    }

    /// The last word of a run, in the form that was asked for, and to the job that runs it.
    pub(crate) fn tell(
        &self,
        format: PreviewFormat,
        diffs: &UnitDiffs,
        context: &CommandContext,
    ) -> Result<()> {
        let changed: Vec<_> = diffs
            .iter()
            .filter(|(name, _)| self.changes_unit(name))
            .cloned()
            .collect();
        match format {
            PreviewFormat::Text => context.output.result(self)?,
            PreviewFormat::Markdown => {
                let page = self.markdown(&changed);
                context.output.raw(&nimbus_telemetry::redact(&page))?;
            }
        }
        if let Some(job) = ActionsJob::current(context.output) {
            self.tell_job(&job, &changed);
        }
        Ok(())
    }
}

impl RunSummary {
    /// Whether there was nothing to do, and there is nothing to tell but that.
    fn is_noop(&self) -> bool {
        let skipped = self.units.iter().all(|unit| unit.status == "skipped");
        self.result == "succeeded" && skipped && self.version.is_none()
    }

    /// Whether it undid its work, or tried to.
    fn went_back(&self) -> bool {
        matches!(self.result, "rolled_back" | "needs_attention")
    }

    /// Whether a unit was to go back and did not. Its own work may have gone well.
    fn is_stuck(&self, unit: &UnitSummaryReport) -> bool {
        let message = unit.message.as_deref().unwrap_or_default();
        let said = format!("{}: {message}", unit.name);
        unit.status == "failed" && self.attention.contains(&said)
    }

    fn counts(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |count: usize, shown: &str| match count {
            0 => {}
            count => parts.push(format!("{count} {shown}")),
        };
        for (status, shown) in [
            ("succeeded", "done"),
            ("skipped", "skipped"),
            ("failed", "failed"),
            ("rolled_back", "rolled back"),
            ("not_started", "not started"),
        ] {
            let units = self.units.iter().filter(|unit| unit.status == status);
            let units = units.filter(|unit| !self.is_stuck(unit));
            add(units.count(), shown);
            if status == "failed" {
                let stuck = self.units.iter().filter(|unit| self.is_stuck(unit));
                add(stuck.count(), "not rolled back");
            }
        }
        parts.join(", ")
    }

    /// What was done, and what of it was undone again.
    fn resources(&self) -> String {
        let undone = |unit: &&UnitSummaryReport| unit.status == "rolled_back";
        let stays = totals(self.units.iter().filter(|unit| !undone(unit)));
        let undone = totals(self.units.iter().filter(undone));
        match (stays, undone) {
            (None, None) => "none".to_owned(),
            (Some(stays), None) => stays,
            (stays, Some(undone)) => {
                let stays = stays.unwrap_or_else(|| "none".to_owned());
                format!("{stays}; undone again: {undone}")
            }
        }
    }
}

/// Steps of units by kind; `None` if there were none.
fn totals<'a>(units: impl Iterator<Item = &'a UnitSummaryReport>) -> Option<String> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (op, count) in units.flat_map(|unit| &unit.changes) {
        *totals.entry(op).or_default() += count;
    }
    let shown: Vec<_> = totals.iter().map(|(op, n)| format!("{n} {op}")).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

impl Report for RunSummary {
    const SCHEMA: &'static str = "nimbus/run/1";

    fn text(&self, terminal: Terminal) -> String {
        let tone = if self.result == "succeeded" {
            TextStyle::Good
        } else {
            TextStyle::Bad
        };
        let result = terminal.paint(tone, &self.result.replace('_', " "));
        let rehearsal = if self.rehearsal { "REHEARSAL " } else { "" };
        let run = self.run.as_ref().map(|run| format!("{run} "));
        let run = run.unwrap_or_default();
        let Self {
            deployment,
            environment,
            seconds,
            ..
        } = self;
        let title = format!("{rehearsal}{run}{deployment} {environment}: {result} in {seconds}s");
        let mut page = ReportPage::default();
        if self.is_noop() {
            page.line(format!(
                "{title}, nothing to do: {} skipped",
                self.units.len()
            ));
        } else {
            page.blank();
            page.line(title);
            page.line(format!("  Stacks: {}", self.counts()));
            page.line(format!("  Resources: {}", self.resources()));
        }
        if let Some(version) = self.version {
            page.line(format!("  Version: {version}"));
        }
        // One that was told to hold went back for nothing, whatever happened.
        if let Some(trigger) = self.trigger.as_ref().filter(|_| self.went_back()) {
            page.line(format!("  Rolled back because {trigger}"));
        }
        if self.result == "rolled_back" {
            page.line("✓ Rollback completed. Infrastructure returned to previous state.");
        }
        if let Some(prediction) = &self.prediction {
            page.append(prediction.text());
        }
        for unit in self.units.iter().filter(|unit| unit.status == "failed") {
            // What could not go back is told by itself, with the same words.
            if self.is_stuck(unit) {
                continue;
            }
            let message = unit.message.as_deref().unwrap_or_default();
            let line = format!("  ✗ {}: {message}", unit.name);
            page.line(terminal.paint(TextStyle::Bad, &line));
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
                "failed" => TextStyle::Bad,
                "warned" => TextStyle::Warning,
                _ => TextStyle::Faint,
            };
            page.line(terminal.paint(tone, &line));
        }
        for warning in &self.warnings {
            let line = format!("  Warning: {warning}");
            page.line(terminal.paint(TextStyle::Warning, &line));
        }
        if !self.attention.is_empty() {
            page.line("Needs attention:");
            for item in &self.attention {
                page.line(format!("  - {item}"));
            }
        }
        if let Some(next) = &self.next {
            page.line(format!("Next: {next}"));
        }
        page.into_text()
    }
}
