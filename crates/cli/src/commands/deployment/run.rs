//! `deploy`, `preview` and `destroy`: a whole environment, unit by unit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, ErrorKind, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::execute::{Limits, RunSink, Worker, execute};
use nimbus_orchestrator::run::{Direction, OnFailure, Run, RunResult, UnitOutcome, UnitState};
use nimbus_orchestrator::unit::{Board, Deployed, JobReport};
use nimbus_orchestrator::validate::{Severity, validate};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::{RunArgs, open};
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::{Output, Report};
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Run every stack, changed or not
    #[arg(long)]
    force: bool,
    /// Needed for prod
    #[arg(long)]
    confirm: bool,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    parallel: usize,
    /// What to do when a stack fails
    #[arg(long, value_enum, default_value_t = Failure::Rollback)]
    on_failure: Failure,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    run: RunArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    parallel: usize,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Failure {
    /// Return every stack that was changed to its last good state
    Rollback,
    /// Stop and leave everything as it is
    Hold,
    /// Also run what does not depend on the failure
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Deploy { force: bool },
    Preview,
    Destroy,
}

pub(crate) async fn deploy(args: DeployArgs, context: &Context) -> Result<Outcome> {
    if args.run.environment == Environment::Prod && !args.confirm && !args.run.rehearse {
        return Err(Error::new(
            ErrorCode::CONFIRMATION_NEEDED,
            "a deployment to prod needs --confirm",
        )
        .with_help("look at `nimbus preview` first, then run it again with --confirm"));
    }
    let policy = match args.on_failure {
        Failure::Rollback => OnFailure::Rollback,
        Failure::Hold => OnFailure::Hold,
        Failure::Continue => OnFailure::Continue,
    };
    start(
        &args.run,
        Kind::Deploy { force: args.force },
        policy,
        args.parallel,
        context,
    )
    .await
}

pub(crate) async fn preview(args: PreviewArgs, context: &Context) -> Result<Outcome> {
    start(&args.run, Kind::Preview, OnFailure::Continue, 4, context).await
}

pub(crate) async fn destroy(args: DestroyArgs, context: &Context) -> Result<Outcome> {
    if !args.yes && !args.run.rehearse {
        let message = format!(
            "destroying {} of {} needs --yes",
            args.run.environment, args.run.id
        );
        return Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message));
    }
    start(
        &args.run,
        Kind::Destroy,
        OnFailure::Hold,
        args.parallel,
        context,
    )
    .await
}

async fn start(
    args: &RunArgs,
    kind: Kind,
    on_failure: OnFailure,
    parallel: usize,
    context: &Context,
) -> Result<Outcome> {
    let started = Instant::now();
    let cancellation = Cancellation::default();
    let board = Arc::new(open(args, context, &cancellation)?);
    refuse_invalid(&board)?;
    let graph = board
        .manifest
        .graph(args.environment)
        .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    if args.rehearse {
        context
            .output
            .note("REHEARSAL: a simulated cloud; nothing real is touched");
    }
    let direction = if kind == Kind::Destroy {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    let run = Run::new(graph, direction, on_failure, parallel);
    let crew = Arc::new(Crew {
        board: Arc::clone(&board),
        kind,
        reports: Mutex::default(),
    });
    let progress = Progress {
        output: context.output,
        kind,
        crew: Arc::clone(&crew),
        started,
    };
    let limits = Limits {
        cancel: cancellation.stop_token().clone(),
        overtime: None,
    };
    let signal = tokio::spawn({
        let cancellation = cancellation.clone();
        async move {
            // First: finish what runs, start nothing. Second: end everything.
            while tokio::signal::ctrl_c().await.is_ok() {
                cancellation.request();
            }
        }
    });
    let ended = execute(
        run,
        Arc::clone(&crew) as Arc<dyn Worker>,
        &progress,
        &limits,
    )
    .await;
    signal.abort();
    let report = RunSummary::new(&board, args, &ended.units, &crew, ended.result, started);
    context.output.result(&report)?;
    Ok(match ended.result {
        RunResult::Succeeded => Outcome::Done,
        RunResult::Interrupted => Outcome::Reported(ErrorKind::Cancelled),
        RunResult::Failed | RunResult::RolledBack | RunResult::NeedsAttention => {
            Outcome::Reported(ErrorKind::Failed)
        }
    })
}

/// Nothing starts while something is wrong with the manifest.
fn refuse_invalid(board: &Board) -> Result<()> {
    let findings = validate(
        &board.manifest,
        &board.workspace.library()?,
        &[board.environment],
    );
    let errors: Vec<_> = findings
        .iter()
        .filter(|f| f.severity == Severity::Error)
        .collect();
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let more = errors.len() - 1;
    let rest = if more == 0 {
        String::new()
    } else {
        format!(" (and {more} more)")
    };
    Err(
        Error::new(ErrorCode::DEPLOYMENT_INVALID, format!("{first}{rest}")).with_help(format!(
            "{}; `nimbus validate` lists everything",
            first.help
        )),
    )
}

/// Does the work of each unit on the board.
struct Crew {
    board: Arc<Board>,
    kind: Kind,
    reports: Mutex<BTreeMap<String, (String, JobReport)>>,
}

impl Crew {
    fn note(&self, unit: &str, why: String, report: JobReport) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(unit.to_owned(), (why, report));
    }

    fn noted(&self, unit: &str) -> Option<(String, JobReport)> {
        self.reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(unit)
            .cloned()
    }

    async fn work(&self, unit: &str) -> Result<UnitOutcome> {
        match self.kind {
            Kind::Deploy { force } => match self.board.deploy(unit, force).await? {
                Deployed::Skipped => return Ok(UnitOutcome::Skipped),
                Deployed::Ran { reason, report } => self.note(unit, reason.to_string(), report),
            },
            Kind::Preview => self.note(unit, String::new(), self.board.preview(unit).await?),
            Kind::Destroy => self.note(unit, String::new(), self.board.destroy(unit).await?),
        }
        Ok(UnitOutcome::Succeeded)
    }
}

#[async_trait]
impl Worker for Crew {
    async fn start(&self, unit: &str) -> UnitOutcome {
        self.work(unit)
            .await
            .unwrap_or_else(|error| UnitOutcome::Failed {
                message: match error.help() {
                    Some(help) => format!("{error} ({help})"),
                    None => error.to_string(),
                },
                trigger: None,
            })
    }

    async fn roll_back(&self, unit: &str) -> Result<(), String> {
        self.board
            .roll_back(unit)
            .await
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

/// One line for each change of a unit, or one JSON object.
struct Progress {
    output: Output,
    kind: Kind,
    crew: Arc<Crew>,
    started: Instant,
}

impl RunSink for Progress {
    fn unit_changed(&self, unit: &str, state: &UnitState) {
        if self.output.is_json() {
            let event = UnitEvent {
                event: "unit",
                unit,
                status: word(state),
            };
            // A reader that went away does not stop a deployment.
            let _ = self.output.json_line(&event);
            return;
        }
        let terminal = self.output.stderr_terminal();
        let (mark, tone, text) = describe(self.kind, state, self.crew.noted(unit));
        let seconds = self.started.elapsed().as_secs();
        let mark = terminal.paint(tone, mark);
        self.output
            .progress(&format!("{seconds:>4}s {mark} {unit:<18} {text}"));
    }
}

fn describe(
    kind: Kind,
    state: &UnitState,
    noted: Option<(String, JobReport)>,
) -> (&'static str, Tone, String) {
    let changes = noted
        .map(|(why, report)| (why, changes_text(&report)))
        .unwrap_or_default();
    match state {
        UnitState::Waiting => (" ", Tone::Faint, "waiting".to_owned()),
        UnitState::Running => match kind {
            Kind::Deploy { .. } => ("→", Tone::Faint, "deploying".to_owned()),
            Kind::Preview => ("→", Tone::Faint, "previewing".to_owned()),
            Kind::Destroy => ("→", Tone::Faint, "destroying".to_owned()),
        },
        UnitState::Succeeded => {
            let (why, changes) = changes;
            let why = if why.is_empty() {
                why
            } else {
                format!(" — {why}")
            };
            ("✓", Tone::Good, format!("{changes}{why}"))
        }
        UnitState::Skipped => ("·", Tone::Faint, "skipped, nothing changed".to_owned()),
        UnitState::Failed { message } => ("✗", Tone::Bad, message.clone()),
        UnitState::NotStarted { because } => {
            ("·", Tone::Warning, format!("not started: {because}"))
        }
        UnitState::RollingBack => ("↩", Tone::Warning, "rolling back".to_owned()),
        UnitState::RolledBack => ("↩", Tone::Good, "rolled back".to_owned()),
        UnitState::Stuck { message } => {
            ("✗", Tone::Bad, format!("cannot be rolled back: {message}"))
        }
    }
}

fn changes_text(report: &JobReport) -> String {
    let shown = report
        .changes
        .iter()
        .filter(|(op, count)| op.as_str() != "same" && **count > 0);
    let shown: Vec<_> = shown.map(|(op, count)| format!("{count} {op}")).collect();
    if shown.is_empty() {
        "no changes".to_owned()
    } else {
        shown.join(", ")
    }
}

/// The word for a unit's state in JSON.
fn word(state: &UnitState) -> &'static str {
    match state {
        UnitState::Waiting => "waiting",
        UnitState::Running => "running",
        UnitState::Succeeded => "succeeded",
        UnitState::Skipped => "skipped",
        UnitState::Failed { .. } => "failed",
        UnitState::NotStarted { .. } => "not_started",
        UnitState::RollingBack => "rolling_back",
        UnitState::RolledBack => "rolled_back",
        UnitState::Stuck { .. } => "stuck",
    }
}

#[derive(Serialize)]
struct UnitEvent<'a> {
    event: &'static str,
    unit: &'a str,
    status: &'static str,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RunSummary {
    /// Always `summary`: the last line of a run.
    event: &'static str,
    deployment: String,
    environment: String,
    rehearsal: bool,
    /// `succeeded`, `failed`, `interrupted`, `rolled_back` or `needs_attention`.
    result: &'static str,
    seconds: u64,
    units: Vec<UnitSummary>,
}

#[derive(JsonSchema, Serialize)]
struct UnitSummary {
    name: String,
    status: &'static str,
    /// What went wrong, or why it was not started.
    message: Option<String>,
    /// Why it ran.
    reason: Option<String>,
    changes: BTreeMap<String, u64>,
}

impl RunSummary {
    fn new(
        board: &Board,
        args: &RunArgs,
        units: &BTreeMap<String, UnitState>,
        crew: &Crew,
        result: RunResult,
        started: Instant,
    ) -> Self {
        let unit = |(name, state): (&String, &UnitState)| {
            let (reason, report) = crew.noted(name).unzip();
            UnitSummary {
                name: name.clone(),
                status: word(state),
                message: match state {
                    UnitState::Failed { message } | UnitState::Stuck { message } => {
                        Some(message.clone())
                    }
                    UnitState::NotStarted { because } => Some(because.clone()),
                    _ => None,
                },
                reason: reason.filter(|reason| !reason.is_empty()),
                changes: report.map(|report| report.changes).unwrap_or_default(),
            }
        };
        Self {
            event: "summary",
            deployment: board.id().to_string(),
            environment: args.environment.to_string(),
            rehearsal: args.rehearse,
            result: match result {
                RunResult::Succeeded => "succeeded",
                RunResult::Failed => "failed",
                RunResult::Interrupted => "interrupted",
                RunResult::RolledBack => "rolled_back",
                RunResult::NeedsAttention => "needs_attention",
            },
            seconds: started.elapsed().as_secs(),
            units: units.iter().map(unit).collect(),
        }
    }
}

impl Report for RunSummary {
    const SCHEMA: &'static str = "nimbus/run/1";

    fn text(&self, terminal: Terminal) -> String {
        let count = |status: &str| {
            self.units
                .iter()
                .filter(|unit| unit.status == status)
                .count()
        };
        let mut parts = Vec::new();
        for (status, shown) in [
            ("succeeded", "done"),
            ("skipped", "skipped"),
            ("failed", "failed"),
            ("rolled_back", "rolled back"),
            ("stuck", "not rolled back"),
            ("not_started", "not started"),
        ] {
            if count(status) > 0 {
                parts.push(format!("{} {shown}", count(status)));
            }
        }
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for (op, n) in self.units.iter().flat_map(|unit| &unit.changes) {
            *totals.entry(op).or_default() += n;
        }
        let resources: Vec<_> = totals.iter().map(|(op, n)| format!("{n} {op}")).collect();
        let tone = if self.result == "succeeded" {
            Tone::Good
        } else {
            Tone::Bad
        };
        let result = terminal.paint(tone, &self.result.replace('_', " "));
        let rehearsal = if self.rehearsal { "REHEARSAL " } else { "" };
        let Self {
            deployment,
            environment,
            seconds,
            ..
        } = self;
        format!(
            "\n{rehearsal}{deployment} {environment}: {result} in {seconds}s\n  Stacks: {}\n  Resources: {}\n",
            parts.join(", "),
            if resources.is_empty() {
                "none".to_owned()
            } else {
                resources.join(", ")
            }
        )
    }
}
