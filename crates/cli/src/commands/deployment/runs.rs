//! `nimbus run`: runs of deployments, listed, looked at, watched, and asked to stop.

use nimbus_core::{EnvironmentName, Result, printable_line};
use nimbus_local::{DeploymentPlace, EnvironmentLockFiles, RunFiles};
use nimbus_orchestrator::{RunId, RunResult, progress_of};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::RunStore as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, run_view, usage, workspace};
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    #[command(visible_alias = "ls")]
    List(ListRunsArgs),
    /// Show a run: what it did, stack by stack, and what to do next
    View(ChosenRunArgs),
    /// Show a run as it happens, until it ends; Ctrl-C ends the watching, not the run
    Watch(ChosenRunArgs),
    /// Ask a run to stop: running steps finish, nothing starts
    Cancel(ChosenRunArgs),
    /// Ask a server to let a run rest until somebody resumes it
    Pause(ChosenRunArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListRunsArgs {
    /// Deployment; all of them when left out
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: Option<String>,
    /// Only this environment
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: Option<EnvironmentName>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChosenRunArgs {
    /// Run, such as R0012; or a deployment, whose newest run is meant
    #[arg(value_name = "RUN|DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment whose newest run is meant, with a deployment
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Run of the deployment, when its number alone is not clear
    #[arg(long = "run", value_name = "RUN")]
    pub(crate) number: Option<RunId>,
    /// The newest rehearsal
    #[arg(long)]
    pub(crate) rehearse: bool,
}

pub(crate) async fn run(args: RunsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    match args.command {
        RunsCommand::List(args) => list(args, context).await,
        RunsCommand::View(args) => run_view::view(args, context).await,
        RunsCommand::Watch(args) => run_view::watch(args, context).await,
        RunsCommand::Cancel(args) => run_view::cancel(args, context).await,
        RunsCommand::Pause(_) => Err(usage("only a server lets runs rest").with_help(
            "`nimbus run cancel` stops one of this machine, and `nimbus resume` goes on with it",
        )),
    }
}

async fn list(args: ListRunsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let ids = match &args.id {
        Some(id) => vec![workspace.deployment(id)?.manifest.metadata.id],
        None => {
            let manifests = workspace.readable_deployments()?.into_iter();
            manifests.map(|manifest| manifest.metadata.id).collect()
        }
    };
    let mut runs = Vec::new();
    for id in ids {
        for rehearsal in [false, true] {
            let place = DeploymentPlace::find(workspace.clone(), id.as_str(), rehearsal)?;
            for environment in place.environments(args.environment) {
                runs.extend(recorded(&place, environment).await?);
            }
        }
    }
    runs.sort_by(|one, other| other.started.cmp(&one.started));
    context.output.result(&RunsReport { runs })?;
    Ok(CommandOutcome::Done)
}

async fn recorded(place: &DeploymentPlace, environment: EnvironmentName) -> Result<Vec<ListedRun>> {
    let files = RunFiles::new(&place.records);
    let holder = EnvironmentLockFiles::new(&place.records).holder(environment)?;
    let running = holder.and_then(|held| held.record.run);
    let mut runs = Vec::new();
    for record in files.of_environment(environment).await? {
        let progress = progress_of(&files.events(record.run).await?);
        let status = status_of(progress.result, running == Some(record.run));
        runs.push(ListedRun::of(record, status));
    }
    Ok(runs)
}

/// Without a result it is running, or whoever carried it out is gone.
pub(super) fn status_of(result: Option<RunResult>, is_held: bool) -> &'static str {
    match result {
        Some(result) => result.word(),
        None if is_held => "running",
        None => RunResult::Interrupted.word(),
    }
}

impl ListedRun {
    pub(super) fn of(record: RunRecord, status: &str) -> Self {
        let request = record.request;
        Self {
            deployment: request.deployment.to_string(),
            run: record.run.to_string(),
            kind: request.action.as_str().to_owned(),
            environment: request.environment.to_string(),
            rehearsal: request.rehearsal,
            status: status.to_owned(),
            started: record.started,
            user: request.user,
            message: request.choices.message,
        }
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RunsReport {
    /// Newest first.
    pub(crate) runs: Vec<ListedRun>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ListedRun {
    pub(crate) deployment: String,
    pub(crate) run: String,
    /// `deploy`, `destroy`, `rollback`, `refresh`, or on a server also `preview`.
    pub(crate) kind: String,
    pub(crate) environment: String,
    pub(crate) rehearsal: bool,
    /// `queued`, `running`, `paused`, or how it ended.
    pub(crate) status: String,
    pub(crate) started: String,
    pub(crate) user: String,
    /// Why it was asked for, in somebody's words.
    pub(crate) message: Option<String>,
}

impl Report for RunsReport {
    const SCHEMA: &'static str = "nimbus/runs/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.runs.is_empty() {
            return "No runs yet\n".to_owned();
        }
        let heading = format!(
            "{:<16} {:<8} {:<9} {:<8} {:<16} {:<21} BY",
            "DEPLOYMENT", "RUN", "KIND", "IN", "STATUS", "STARTED"
        );
        let mut text = terminal.paint(TextStyle::Heading, &heading) + "\n";
        for run in &self.runs {
            let ListedRun {
                deployment,
                run: number,
                kind,
                environment,
                status,
                started,
                user,
                ..
            } = run;
            let rehearsal = if run.rehearsal { " (rehearsal)" } else { "" };
            let status = status.replace('_', " ");
            let user = printable_line(user);
            text.push_str(&format!(
                "{deployment:<16} {number:<8} {kind:<9} {environment:<8} {status:<16} {started:<21} {user}{rehearsal}\n"
            ));
        }
        text
    }
}
