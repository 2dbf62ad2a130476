//! `nimbus status`: what is deployed in each environment, and what happens to it now.

use jiff::Timestamp;
use nimbus_control_wire::{Environment, Run, StackStanding};
use nimbus_core::{EnvironmentName, Result, printable_line};
use nimbus_local::{
    DeploymentPlace, EnvironmentLockFiles, EnvironmentStates, MemoryFiles, RunFiles, VersionFiles,
};
use nimbus_orchestrator::{RunResult, progress_of};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::{RunStore as _, UnitMemories as _, VersionStore as _};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use super::run::{RunAddress, next_step};
use super::run_view::tally_of;
use crate::commands::admin::ServerArgs;
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment, such as dev, or all
    #[arg(long, short, value_name = "ENVIRONMENT", default_value = "all", value_parser = choice)]
    pub(crate) environment: EnvironmentChoice,
    /// All environments
    #[arg(long, conflicts_with = "environment")]
    pub(crate) all_environments: bool,
    /// Show the rehearsal instead
    #[arg(long)]
    pub(crate) rehearse: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvironmentChoice {
    All,
    One(EnvironmentName),
}

fn choice(text: &str) -> std::result::Result<EnvironmentChoice, String> {
    match text {
        "all" => Ok(EnvironmentChoice::All),
        other => super::environment(other).map(EnvironmentChoice::One),
    }
}

pub(crate) async fn run(args: StatusArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.rehearse, context)?;
    let wanted = args.only();
    let mut shown = Vec::new();
    for environment in place.environments(wanted) {
        shown.push(environment_status(&place, environment, context).await?);
    }
    context.output.result(&StatusReport {
        deployment: place.deployment.manifest.metadata.id.to_string(),
        rehearsal: args.rehearse,
        environments: shown,
    })?;
    Ok(CommandOutcome::Done)
}

async fn environment_status(
    place: &DeploymentPlace,
    environment: EnvironmentName,
    context: &CommandContext,
) -> Result<EnvironmentStatus> {
    let manifest = &place.deployment.manifest;
    let Some(target) = manifest.environments.get(&environment) else {
        return Err(manifest.unknown_environment(environment));
    };
    let held = EnvironmentLockFiles::new(&place.records).holder(environment)?;
    let runs = RunFiles::new(&place.records);
    let version = VersionFiles::new(&place.records)
        .all(environment)
        .await?
        .pop();
    let running = held.as_ref().and_then(|held| held.record.run);
    let mut next = None;
    let last_run = match runs.of_environment(environment).await?.into_iter().next() {
        None => None,
        Some(record) => {
            let events = runs.events(record.run).await?;
            let progress = progress_of(&events);
            if running != Some(record.run) {
                let result = progress.result.unwrap_or(RunResult::Interrupted);
                let open = tally_of(&events).leaves_creates_open();
                let of_run = RunAddress {
                    deployment: manifest.metadata.id.as_str(),
                    environment,
                    rehearsal: place.records.is_rehearsal(),
                    backend: record.request.choices.backend.as_deref(),
                };
                next = next_step(result, open, of_run, context);
            }
            let RunRecord {
                run,
                started,
                request,
                ..
            } = record;
            Some(LastRunReport {
                run: run.to_string(),
                kind: request.action.as_str().to_owned(),
                started,
                ended: progress.ended_at,
                user: request.user,
                message: request.choices.message,
                result: match progress.result {
                    Some(result) => result.word(),
                    None if running == Some(run) => "running",
                    None => RunResult::Interrupted.word(),
                }
                .to_owned(),
            })
        }
    };
    let memories = MemoryFiles::new(&place.records);
    let mut stacks = Vec::new();
    let mut states = None;
    for (name, entry) in &manifest.stacks {
        let memory = memories.load(name, environment).await?;
        // A state that was taken over is somebody's resources before any run has touched them.
        let taken_over = match memory.last_run {
            Some(_) => 0,
            None => {
                if states.is_none() {
                    states = Some(states_of(place, environment, context).await?);
                }
                let states = states.iter().flatten().next();
                states.map_or(0, |states| states.resources_of(name.as_str()))
            }
        };
        // What is switched off and was never there is of no interest.
        if !entry.enabled && memory.last_run.is_none() && taken_over == 0 {
            continue;
        }
        stacks.push(StackStatus {
            name: name.to_string(),
            enabled: entry.enabled,
            state: match taken_over {
                0 => memory.standing().to_owned(),
                _ => "adopted".to_owned(),
            },
            resources: memory
                .last_run
                .as_ref()
                .map_or(taken_over, |run| run.resources),
            seconds: memory.last_run.as_ref().map_or(0, |run| run.seconds),
            version: version
                .as_ref()
                .and_then(|version| version.units.get(name))
                .map(|unit| unit.state),
        });
    }
    Ok(EnvironmentStatus {
        name: environment.to_string(),
        enabled: target.enabled,
        version: version.map(|version| version.version),
        locked_by: held.map(|held| held.record.owner.to_string()),
        last_run,
        next,
        stacks,
    })
}

/// What is recorded in the deployment's own directory, if it can be read: a status tells what it finds.
async fn states_of(
    place: &DeploymentPlace,
    environment: EnvironmentName,
    context: &CommandContext,
) -> Result<Option<EnvironmentStates>> {
    let sandbox = sandbox_settings(context)?;
    let states = EnvironmentStates::read(place, environment, None, sandbox.as_ref());
    Ok(states.await.ok())
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StatusReport {
    deployment: String,
    rehearsal: bool,
    environments: Vec<EnvironmentStatus>,
}

impl StatusArgs {
    /// The one environment that is meant, if it is one.
    pub(crate) fn only(&self) -> Option<EnvironmentName> {
        match self.environment {
            EnvironmentChoice::One(environment) => Some(environment),
            EnvironmentChoice::All => None,
        }
    }
}

impl StatusReport {
    /// What a server told of, each environment with the command that goes on from its last run.
    pub(crate) fn of_server(
        args: &StatusArgs,
        deployment: String,
        environments: Vec<(Environment, Option<String>)>,
    ) -> Self {
        let shown = environments
            .into_iter()
            .map(|(told, next)| EnvironmentStatus {
                next,
                ..EnvironmentStatus::from(told)
            });
        Self {
            deployment,
            rehearsal: args.rehearse,
            environments: shown.collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.environments.is_empty()
    }
}

impl From<Environment> for EnvironmentStatus {
    fn from(told: Environment) -> Self {
        let run = |run: Run| LastRunReport {
            result: match run.status.as_str() {
                "ended" => run.result.unwrap_or_default(),
                status => status.to_owned(),
            },
            run: run.number,
            message: run.message,
            kind: run.action,
            started: to_the_second(run.began_at.as_deref().unwrap_or(&run.queued_at)),
            ended: run.ended_at.as_deref().map(to_the_second),
            user: run.user.unwrap_or(run.requested_by),
        };
        let stack = |stack: StackStanding| StackStatus {
            name: stack.name,
            // A server tells of no others.
            enabled: true,
            state: stack.state,
            resources: stack.resources,
            seconds: stack.seconds,
            version: stack.version,
        };
        Self {
            name: told.name,
            enabled: told.enabled,
            version: told.version,
            locked_by: told.locked_by,
            last_run: told.last_run.map(run),
            next: None,
            stacks: told.stacks.into_iter().map(stack).collect(),
        }
    }
}

/// A time as records of this machine have it.
pub(crate) fn to_the_second(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => text.to_owned(),
    }
}

#[derive(JsonSchema, Serialize)]
struct EnvironmentStatus {
    name: String,
    enabled: bool,
    /// Its current version; see `nimbus rollback --list`.
    version: Option<u32>,
    /// Who is changing it now.
    locked_by: Option<String>,
    last_run: Option<LastRunReport>,
    /// What to do next, when its last run left something undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    stacks: Vec<StackStatus>,
}

#[derive(JsonSchema, Serialize)]
struct LastRunReport {
    run: String,
    /// Why it was asked for, in somebody's words.
    message: Option<String>,
    /// `deploy`, `destroy`, `rollback` or `refresh`.
    kind: String,
    started: String,
    ended: Option<String>,
    user: String,
    /// `running`, `succeeded`, `failed`, `interrupted`, `rolled_back` or `needs_attention`.
    result: String,
}

#[derive(JsonSchema, Serialize)]
struct StackStatus {
    name: String,
    /// Whether the manifest has it switched on; one that is off is shown while there is something of it.
    enabled: bool,
    /// `deployed`, `not_deployed`, `adopted` (its state was taken over, and no run has touched it yet), `rolled_back` (it is
    /// what it was in an earlier version), `incomplete` (its last run did not succeed) or `drifted`.
    state: String,
    resources: u64,
    /// What its last run took.
    seconds: u64,
    /// Its state's number in the stack's own history.
    version: Option<usize>,
}

impl Report for StatusReport {
    const SCHEMA: &'static str = "nimbus/status/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        if self.rehearsal {
            text.push_str("REHEARSAL\n");
        }
        for environment in &self.environments {
            let enabled = if environment.enabled {
                ""
            } else {
                " (not enabled)"
            };
            let version = match environment.version {
                Some(version) => format!(", version {version}"),
                None => String::new(),
            };
            let title = format!("{} {}{enabled}{version}", self.deployment, environment.name);
            text.push_str(&terminal.paint(TextStyle::Heading, &title));
            text.push('\n');
            if let Some(holder) = &environment.locked_by {
                text.push_str(&format!("  locked by {}\n", printable_line(holder)));
            }
            match &environment.last_run {
                None => text.push_str("  no run yet\n"),
                Some(run) => {
                    let LastRunReport {
                        run,
                        kind,
                        result,
                        started,
                        user,
                        ..
                    } = run;
                    let (result, user) = (result.replace('_', " "), printable_line(user));
                    text.push_str(&format!(
                        "  last run {run}: {kind} {result}, started {started} by {user}\n"
                    ));
                }
            }
            if let Some(next) = &environment.next {
                text.push_str(&format!("  next: {next}\n"));
            }
            for stack in &environment.stacks {
                let StackStatus {
                    name,
                    enabled,
                    state,
                    resources,
                    ..
                } = stack;
                let enabled = if *enabled { "" } else { "  (not enabled)" };
                let things = if *resources == 1 {
                    "resource"
                } else {
                    "resources"
                };
                let tone = match state.as_str() {
                    "deployed" | "rolled_back" => TextStyle::Good,
                    "not_deployed" | "adopted" => TextStyle::Faint,
                    _ => TextStyle::Warning,
                };
                let state = terminal.paint(tone, &format!("{:<13}", state.replace('_', " ")));
                text.push_str(&format!(
                    "  {name:<20} {state} {resources:>4} {things}{enabled}\n"
                ));
            }
        }
        text
    }
}
