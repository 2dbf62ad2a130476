//! `nimbus status`: what is deployed in each environment, and what happens to it now.

use nimbus_core::{EnvironmentName, Result};
use nimbus_local::{DeploymentPlace, EnvironmentLockFiles, MemoryFiles, RunFiles, VersionFiles};
use nimbus_orchestrator::{RunResult, progress_of};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::{MemoryStore as _, RunStore as _, VersionStore as _};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Environment, such as dev, or all
    #[arg(long, short, value_name = "ENVIRONMENT", default_value = "all", value_parser = choice)]
    environment: EnvironmentChoice,
    /// All environments
    #[arg(long, conflicts_with = "environment")]
    all_environments: bool,
    /// Show the rehearsal instead
    #[arg(long)]
    rehearse: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnvironmentChoice {
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
    let wanted = match args.environment {
        EnvironmentChoice::One(environment) => Some(environment),
        EnvironmentChoice::All => None,
    };
    let mut shown = Vec::new();
    for environment in place.environments(wanted) {
        shown.push(environment_status(&place, environment).await?);
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
    let last_run = match runs.of_environment(environment).await?.into_iter().next() {
        None => None,
        Some(record) => {
            let progress = progress_of(&runs.events(record.run).await?);
            let RunRecord {
                run,
                started,
                request,
                ..
            } = record;
            Some(LastRunReport {
                run: run.to_string(),
                kind: request.action.as_str(),
                started,
                ended: progress.ended_at,
                user: request.user,
                message: request.choices.message,
                result: match progress.result {
                    Some(result) => result.word(),
                    None if running == Some(run) => "running",
                    None => RunResult::Interrupted.word(),
                },
            })
        }
    };
    let memories = MemoryFiles::new(&place.records);
    let mut stacks = Vec::new();
    for (name, _) in manifest.enabled() {
        let memory = memories.load(name, environment).await?;
        stacks.push(StackStatus {
            name: name.to_string(),
            state: memory.standing().to_owned(),
            resources: memory.last_run.as_ref().map_or(0, |run| run.resources),
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
        stacks,
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StatusReport {
    deployment: String,
    rehearsal: bool,
    environments: Vec<EnvironmentStatus>,
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
    stacks: Vec<StackStatus>,
}

#[derive(JsonSchema, Serialize)]
struct LastRunReport {
    run: String,
    /// Why it was asked for, in somebody's words.
    message: Option<String>,
    /// `deploy`, `destroy` or `rollback`.
    kind: &'static str,
    started: String,
    ended: Option<String>,
    user: String,
    /// `running`, `succeeded`, `failed`, `interrupted`, `rolled_back` or `needs_attention`.
    result: &'static str,
}

#[derive(JsonSchema, Serialize)]
struct StackStatus {
    name: String,
    /// `deployed`, `not_deployed`, `rolled_back` (it is what it was in an earlier version),
    /// `incomplete` (its last run did not succeed) or `drifted`.
    state: &'static str,
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
                text.push_str(&format!("  locked by {holder}\n"));
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
                    let result = result.replace('_', " ");
                    text.push_str(&format!(
                        "  last run {run}: {kind} {result}, started {started} by {user}\n"
                    ));
                }
            }
            for stack in &environment.stacks {
                let StackStatus {
                    name,
                    state,
                    resources,
                    ..
                } = stack;
                let tone = match *state {
                    "deployed" | "rolled_back" => TextStyle::Good,
                    "not_deployed" => TextStyle::Faint,
                    _ => TextStyle::Warning,
                };
                let state = terminal.paint(tone, &format!("{:<13}", state.replace('_', " ")));
                text.push_str(&format!("  {name:<20} {state} {resources:>4} resources\n"));
            }
        }
        text
    }
}
