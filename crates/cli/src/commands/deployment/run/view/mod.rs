//! Who watches a run: a program that reads JSON, a log that reads lines, or a person at a terminal.

mod held_errors;
mod lines;
mod live;
mod unit_table;

use nimbus_orchestrator::{RunAction, RunEvent, UnitGraph};

pub(super) use lines::mark;
pub(crate) use lines::{LineView, changes_text};
pub(crate) use live::Live;

use super::summary::RunAddress;
use crate::output::CommandOutput;

/// What is shown, whatever form it takes.
#[derive(Clone, Debug)]
pub(crate) struct RunTitle {
    /// `Deploying D1BRV40 dev`.
    pub(super) title: String,
    pub(super) doing: &'static str,
    pub(super) rehearsal: bool,
}

impl RunTitle {
    pub(crate) fn new(action: RunAction, place: RunAddress<'_>) -> Self {
        let (title, doing) = match action {
            RunAction::Preview => ("Previewing", "previewing"),
            RunAction::Deploy => ("Deploying", "deploying"),
            RunAction::Destroy => ("Destroying", "destroying"),
            RunAction::Refresh => ("Refreshing", "refreshing"),
            RunAction::Rollback => ("Rolling back", "rolling back"),
        };
        Self {
            title: format!("{title} {} {}", place.deployment, place.environment),
            doing,
            rehearsal: place.rehearsal,
        }
    }
}

pub(crate) enum RunView {
    Json(CommandOutput),
    Lines(LineView),
    Live(Live),
    /// Only the end is told.
    Quiet,
}

impl RunView {
    pub(crate) fn open(output: CommandOutput, subject: RunTitle, graph: &UnitGraph) -> Self {
        if output.is_json() {
            Self::Json(output)
        } else if output.is_quiet() {
            Self::Quiet
        } else if output.stderr_terminal().interactive {
            Self::Live(Live::open(subject, graph, output.stderr_terminal()))
        } else {
            Self::Lines(LineView::new(output, subject))
        }
    }

    pub(crate) fn event(&mut self, event: &RunEvent) {
        match self {
            // A reader that went away does not stop a deployment.
            Self::Json(output) => drop(output.json_line(event)),
            Self::Lines(lines) => lines.event(event),
            Self::Live(live) => live.event(event),
            Self::Quiet => {}
        }
    }

    pub(crate) fn end(&mut self) {
        match self {
            Self::Lines(lines) => lines.end(),
            Self::Live(live) => live.end(),
            Self::Json(_) | Self::Quiet => {}
        }
    }
}
