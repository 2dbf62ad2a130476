//! `nimbus status`: what is deployed in each environment, and what happens to it now.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_local::{Locks, RunStore, Versions};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::memory::MemoryStore;
use nimbus_orchestrator::run::RunResult;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::Place;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Environment: dev, stage, prod or all
    #[arg(long, short, value_name = "ENVIRONMENT", default_value = "all", value_parser = choice)]
    environment: Choice,
    /// All environments
    #[arg(long, conflicts_with = "environment")]
    all_environments: bool,
    /// Show the rehearsal instead
    #[arg(long)]
    rehearse: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    All,
    One(Environment),
}

fn choice(text: &str) -> std::result::Result<Choice, String> {
    match text {
        "all" => Ok(Choice::All),
        other => super::environment(other).map(Choice::One),
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let place = Place::find(&args.id, args.rehearse, context)?;
    let wanted = match args.environment {
        Choice::One(environment) => Some(environment),
        Choice::All => None,
    };
    let mut shown = Vec::new();
    for environment in place.environments(wanted) {
        shown.push(environment_status(&place, environment)?);
    }
    context.output.result(&StatusReport {
        deployment: place.deployment.manifest.metadata.id.to_string(),
        rehearsal: args.rehearse,
        environments: shown,
    })?;
    Ok(Outcome::Done)
}

fn environment_status(place: &Place, environment: Environment) -> Result<EnvironmentStatus> {
    let manifest = &place.deployment.manifest;
    let Some(target) = manifest.environments.get(&environment) else {
        let message = format!("this deployment has no environment {environment}");
        return Err(Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message));
    };
    let held = Locks::of_deployment(&place.directory).holder(environment)?;
    let store = RunStore::of_deployment(&place.directory);
    let last = store.of_environment(environment)?.into_iter().next();
    let last = last
        .map(|run| run.standing().map(|standing| (run, standing)))
        .transpose()?;
    let version = Versions::of_environment(&place.directory, environment).last()?;
    let running = held.as_ref().and_then(|held| held.record.run);
    let last_run = last.as_ref().map(|(run, standing)| LastRun {
        run: run.record.run.to_string(),
        kind: run.record.kind.as_str(),
        started: run.record.started.clone(),
        ended: standing.ended_at.clone(),
        user: run.record.user.clone(),
        result: match standing.result {
            Some(result) => result.word(),
            None if running == Some(run.record.run) => "running",
            None => RunResult::Interrupted.word(),
        },
    });
    let memories = MemoryStore::of_deployment(&place.directory);
    let mut stacks = Vec::new();
    for (name, _) in manifest.enabled() {
        let memory = memories.load(name, environment)?;
        let state = match &memory.last_run {
            None => "not_deployed",
            Some(run) if run.drifted => "drifted",
            Some(run) if run.succeeded => "deployed",
            Some(_) => "incomplete",
        };
        stacks.push(StackStatus {
            name: name.clone(),
            state,
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
    last_run: Option<LastRun>,
    stacks: Vec<StackStatus>,
}

#[derive(JsonSchema, Serialize)]
struct LastRun {
    run: String,
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
    /// `deployed`, `not_deployed`, `incomplete` (its last run did not succeed) or `drifted`.
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
            text.push_str(&terminal.paint(Tone::Heading, &title));
            text.push('\n');
            if let Some(holder) = &environment.locked_by {
                text.push_str(&format!("  locked by {holder}\n"));
            }
            match &environment.last_run {
                None => text.push_str("  no run yet\n"),
                Some(run) => {
                    let LastRun {
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
                    "deployed" => Tone::Good,
                    "not_deployed" => Tone::Faint,
                    _ => Tone::Warning,
                };
                let state = terminal.paint(tone, &format!("{:<13}", state.replace('_', " ")));
                text.push_str(&format!("  {name:<20} {state} {resources:>4} resources\n"));
            }
        }
        text
    }
}
