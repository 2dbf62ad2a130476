//! A line for each thing that people want to know, for output that is no terminal.

use std::time::Instant;

use nimbus_orchestrator::{CheckStatus, DiagnosticLevel, RunEvent, RunStatus};

use super::RunTitle;
use super::held_errors::HeldErrors;
use crate::output::CommandOutput;
use crate::report_page::continued;
use crate::style::{Terminal, TextStyle};

pub(crate) struct LineView {
    output: CommandOutput,
    subject: RunTitle,
    started: Instant,
    held: HeldErrors,
}

impl LineView {
    pub(super) fn new(output: CommandOutput, subject: RunTitle) -> Self {
        Self {
            output,
            subject,
            started: Instant::now(),
            held: HeldErrors::default(),
        }
    }

    pub(super) fn event(&mut self, event: &RunEvent) {
        let shown = self.held.pass(event);
        self.show(&shown);
    }

    pub(super) fn end(&mut self) {
        let rest = self.held.rest();
        self.show(&rest);
    }

    fn show(&self, events: &[RunEvent]) {
        let seconds = self.started.elapsed().as_secs();
        let terminal = self.output.stderr_terminal();
        let lines = events
            .iter()
            .flat_map(|event| lines_of(event, self.subject.doing, terminal));
        for line in lines {
            self.output.progress(&format!("{seconds:>4}s {line}"));
        }
    }
}

/// What an event reads like. Resources are left out: the log has them. What is said in an event begins no line of its
/// own.
pub(super) fn lines_of(event: &RunEvent, doing: &str, terminal: Terminal) -> Vec<String> {
    let lines = raw_lines(event, doing, terminal).into_iter();
    lines.map(|line| continued(&line).into_owned()).collect()
}

fn raw_lines(event: &RunEvent, doing: &str, terminal: Terminal) -> Vec<String> {
    match event {
        // The summary counts them; a run in which nothing changed is a few lines.
        RunEvent::Unit { status, .. } if status == "skipped" => Vec::new(),
        RunEvent::Unit {
            unit,
            status,
            message,
            reason,
            changes,
            attention,
            ..
        } => {
            let (mark, tone) = mark(status);
            let message = message.clone().unwrap_or_default();
            let text = match status.as_str() {
                "running" => doing.to_owned(),
                "succeeded" => {
                    let why = reason.as_ref().map(|why| format!(" — {why}"));
                    format!("{}{}", changes_text(changes), why.unwrap_or_default())
                }
                // Why is what the run's end says, and what it undoes its work for.
                "failed" if *attention => "cannot be rolled back".to_owned(),
                "failed" => "failed".to_owned(),
                "not_started" => format!("not started: {message}"),
                "rolling_back" => format!("Rolling back: {unit}..."),
                "rolled_back" => format!("Rolling back: {unit}... ✓"),
                other => other.to_owned(),
            };
            vec![format!("{} {unit:<18} {text}", terminal.paint(tone, mark))]
        }
        RunEvent::Diagnostic {
            unit,
            level,
            message,
            ..
        } if *level >= DiagnosticLevel::Warning => {
            let unit = unit.as_deref().unwrap_or("run");
            let tone = if *level == DiagnosticLevel::Error {
                TextStyle::Bad
            } else {
                TextStyle::Warning
            };
            let line =
                |line: &str| format!("  {}", terminal.paint(tone, &format!("{unit}: {line}")));
            message.lines().map(line).collect()
        }
        RunEvent::Diagnostic {
            unit: None,
            level: DiagnosticLevel::Info,
            message,
            ..
        } => {
            let line = |line: &str| terminal.paint(TextStyle::Faint, line);
            message.lines().map(line).collect()
        }
        RunEvent::Run {
            status: RunStatus::Undoing,
            message,
            ..
        } => {
            let message = message.as_deref().unwrap_or_default();
            let lines = message.lines().chain(["Initiating automatic rollback..."]);
            lines
                .map(|line| terminal.paint(TextStyle::Warning, line))
                .collect()
        }
        RunEvent::Check {
            check,
            status,
            message,
            ..
        } => {
            let message = message.as_deref().unwrap_or_default();
            let (mark, tone) = match status {
                CheckStatus::Running => ("→", TextStyle::Faint),
                CheckStatus::Output => return vec![format!("  {check}: {message}")],
                CheckStatus::Passed => ("✓", TextStyle::Good),
                CheckStatus::Failed => ("✗", TextStyle::Bad),
                CheckStatus::Warned => ("!", TextStyle::Warning),
                CheckStatus::Skipped => ("·", TextStyle::Faint),
            };
            let line = format!("check {check:<12} {} {message}", status.word());
            vec![format!(
                "{} {}",
                terminal.paint(tone, mark),
                line.trim_end()
            )]
        }
        RunEvent::Run { .. }
        | RunEvent::Plan { .. }
        | RunEvent::Resource { .. }
        | RunEvent::Diagnostic { .. } => Vec::new(),
    }
}

pub(crate) fn mark(status: &str) -> (&'static str, TextStyle) {
    match status {
        "running" => ("→", TextStyle::Faint),
        "succeeded" => ("✓", TextStyle::Good),
        "failed" => ("✗", TextStyle::Bad),
        "not_started" => ("·", TextStyle::Warning),
        "rolling_back" => ("↩", TextStyle::Warning),
        "rolled_back" => ("↩", TextStyle::Good),
        _ => ("·", TextStyle::Faint),
    }
}

pub(crate) fn changes_text(changes: &std::collections::BTreeMap<String, u64>) -> String {
    let shown = changes
        .iter()
        .filter(|(op, count)| op.as_str() != "same" && **count > 0);
    let shown: Vec<_> = shown.map(|(op, count)| format!("{count} {op}")).collect();
    if shown.is_empty() {
        "no changes".to_owned()
    } else {
        shown.join(", ")
    }
}
