//! `nimbus run view`, `watch` and `cancel`: one run that is recorded on this machine.

use std::time::Duration;

use nimbus_core::{Error, ErrorCode, ErrorKind, Result};
use nimbus_local::{EnvironmentLockFiles, RecordedHolder, RecordedRun, RunFiles, RunSelection};
use nimbus_orchestrator::{RunEvent, RunResult, RunTally};
use nimbus_runs::ports::RunStore as _;
use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::run::{RunAddress, RunSummary, RunTitle, RunView, next_step, outcome};
use super::runs::{ChosenRunArgs, ListedRun, RunsReport, status_of};
use super::workspace;
use crate::commands::program::ask_to_stop;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::Terminal;

/// How often a watched run is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A run of this machine that is looked at.
struct ViewedRun(RecordedRun);

impl ViewedRun {
    async fn find(args: &ChosenRunArgs, context: &CommandContext) -> Result<Self> {
        let selection = RunSelection {
            id: &args.id,
            environment: args.environment,
            number: args.number,
            rehearsal: args.rehearse,
        };
        let found = RecordedRun::find(workspace(context)?, selection).await?;
        Ok(Self(found))
    }

    /// Who carries it out now, if somebody does.
    fn holder(&self) -> Result<Option<RecordedHolder>> {
        let locks = EnvironmentLockFiles::new(&self.0.place.records);
        let held = locks.holder(self.0.record.request.environment)?;
        Ok(held.filter(|held| held.record.run == Some(self.0.record.run)))
    }

    async fn events(&self) -> Result<Vec<RunEvent>> {
        RunFiles::new(&self.0.place.records)
            .events(self.0.record.run)
            .await
    }

    fn where_it_is(&self) -> RunAddress<'_> {
        let request = &self.0.record.request;
        RunAddress {
            deployment: request.deployment.as_str(),
            environment: request.environment,
            rehearsal: request.rehearsal,
            backend: request.choices.backend.as_deref(),
        }
    }

    /// What is known of it, and whether it is over.
    fn report(&self, tally: &RunTally, is_held: bool, context: &CommandContext) -> RunViewReport {
        let request = &self.0.record.request;
        let place = self.where_it_is();
        let result = tally.result.unwrap_or(RunResult::Interrupted);
        let is_over = tally.result.is_some() || !is_held;
        let next = if is_over {
            next_step(result, tally.leaves_creates_open(), place, context)
        } else {
            None
        };
        let summary = RunSummary::of_tally(tally, request.action, place, result, next);
        RunViewReport {
            started: self.0.record.started.clone(),
            user: request.user.clone(),
            message: request.choices.message.clone(),
            summary: match is_over {
                true => summary,
                false => summary.still_running(),
            },
        }
    }
}

pub(super) async fn view(args: ChosenRunArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let run = ViewedRun::find(&args, context).await?;
    let held = run.holder()?.is_some();
    let tally = tally_of(&run.events().await?);
    context.output.result(&run.report(&tally, held, context))?;
    Ok(CommandOutcome::Done)
}

/// Shows a run from its record until it ends, with the exit code that it ends with. Ctrl-C ends the
/// watching, not the run.
pub(super) async fn watch(args: ChosenRunArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let run = ViewedRun::find(&args, context).await?;
    let request = &run.0.record.request;
    let graph = run.0.place.deployment.manifest.graph(request.environment);
    let graph = graph.map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, error.to_string()))?;
    let title = RunTitle::new(request.action, run.where_it_is());
    let mut view = RunView::open(context.output, title, &graph);
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "signals cannot be listened to").with_source(error)
    })?;
    let mut seen = 0;
    let mut tally = RunTally::default();
    let held = loop {
        // Whoever ends between the two looks has written everything before.
        let held = run.holder()?.is_some();
        let events = run.events().await?;
        for event in events.iter().skip(seen) {
            tally.hear(event);
            view.event(event);
        }
        seen = events.len();
        if tally.result.is_some() || !held {
            break held;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = interrupted.recv() => {
                view.end();
                context.output.note("the run goes on; `nimbus run cancel` asks it to stop");
                return Ok(CommandOutcome::Reported(ErrorKind::Cancelled));
            }
        }
    };
    view.end();
    let report = run.report(&tally, held, context);
    report.summary.tell_text(context)?;
    Ok(outcome(tally.result.unwrap_or(RunResult::Interrupted)))
}

/// Asks whoever carries a run out on this machine to stop, as Ctrl-C there would.
pub(super) async fn cancel(
    args: ChosenRunArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = ViewedRun::find(&args, context).await?;
    let Some(holder) = run.holder()? else {
        let message = format!("{} is not running", run.0.record.run);
        return Err(Error::new(ErrorCode::NOTHING_RUNNING, message)
            .with_help("`nimbus run view` says how it ended"));
    };
    ask_to_stop(&holder.record.owner, "the environment", Signal::SIGINT)?;
    let tally = tally_of(&run.events().await?);
    let status = status_of(tally.result, true);
    context.output.result(&RunsReport {
        runs: vec![ListedRun::of(run.0.record, status)],
    })?;
    Ok(CommandOutcome::Done)
}

pub(super) fn tally_of(events: &[RunEvent]) -> RunTally {
    let mut tally = RunTally::default();
    events.iter().for_each(|event| tally.hear(event));
    tally
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RunViewReport {
    started: String,
    user: String,
    /// Why it was asked for, in somebody's words.
    message: Option<String>,
    #[serde(flatten)]
    summary: RunSummary,
}

impl RunViewReport {
    /// Of a run that a server told of.
    pub(crate) fn new(
        started: String,
        user: String,
        message: Option<String>,
        summary: RunSummary,
    ) -> Self {
        Self {
            started,
            user,
            message,
            summary,
        }
    }
}

impl Report for RunViewReport {
    const SCHEMA: &'static str = "nimbus/run-view/1";

    fn text(&self, terminal: Terminal) -> String {
        let message = self.message.as_ref().map(|text| format!(": {text}"));
        let message = message.unwrap_or_default();
        let mut page = ReportPage::default();
        page.line(format!(
            "Started {} by {}{message}",
            self.started, self.user
        ));
        page.append(&self.summary.unit_lines(terminal));
        page.append(&self.summary.text(terminal));
        page.into_text()
    }
}
