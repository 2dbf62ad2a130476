//! `nimbus runs`: runs of deployments, listed, and asked to stop where somebody else carries them out.

use nimbus_core::{EnvironmentName, Result};
use nimbus_local::{DeploymentPlace, EnvironmentLockFiles, RunFiles};
use nimbus_orchestrator::{RunId, RunResult, progress_of};
use nimbus_runs::ports::RunStore as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, usage, workspace};
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
    List(ListRunsArgs),
    /// Ask a server to stop a run: running steps finish, nothing starts
    Cancel(SignalRunArgs),
    /// Ask a server to let a run rest until somebody resumes it
    Pause(SignalRunArgs),
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
pub(crate) struct SignalRunArgs {
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
    let RunsCommand::List(args) = args.command else {
        return Err(usage("runs of this machine are stopped where they run")
            .with_help("press Ctrl-C there; with --server URL this asks a server to stop one"));
    };
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
        let status = match progress.result {
            Some(result) => result.word(),
            None if running == Some(record.run) => "running",
            None => RunResult::Interrupted.word(),
        };
        let request = record.request;
        runs.push(ListedRun {
            deployment: request.deployment.to_string(),
            run: record.run.to_string(),
            kind: request.action.as_str().to_owned(),
            environment: environment.to_string(),
            rehearsal: request.rehearsal,
            status: status.to_owned(),
            started: record.started,
            user: request.user,
            message: request.choices.message,
        });
    }
    Ok(runs)
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
    /// `deploy`, `destroy`, `rollback`, or on a server also `preview`.
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
            text.push_str(&format!(
                "{deployment:<16} {number:<8} {kind:<9} {environment:<8} {status:<16} {started:<21} {user}{rehearsal}\n"
            ));
        }
        text
    }
}
