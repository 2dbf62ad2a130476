//! Completion that knows what there is: ids of deployments, environments, stacks and runs.
//!
//! The shell asks the program itself, through a variable that its script sets. Which values an
//! argument takes is told by how help names it (`DEPLOYMENT-ID`, `RUN`, `STACK`), so a new command
//! is completed without doing anything for it. Nothing here fails: what cannot be read completes to
//! nothing.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_local::{DeploymentPlace, RunFiles};
use nimbus_orchestrator::Manifest;
use nimbus_runs::ports::RunStore as _;
use nimbus_workspace::Workspace;

use crate::args;

/// Set by the scripts, to the name of the shell.
const VARIABLE: &str = "NIMBUS_COMPLETE";

/// Completes a command line if a shell asks for that.
pub(crate) fn complete_if_asked(program: &str, arguments: &[OsString]) -> Option<u8> {
    env::var_os(VARIABLE)?;
    let directory = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_values(args::command(program)))
        .var(VARIABLE)
        .completer(program)
        .try_complete(arguments.iter().cloned(), directory.as_deref());
    match asked {
        Ok(true) => Some(0),
        Ok(false) => None,
        // A shell shows nothing of this, and types on.
        Err(_) => Some(2),
    }
}

/// The script for a shell.
pub(crate) fn script(shell: &str, program: &str) -> Result<String> {
    let failed = || Error::new(ErrorCode::INTERNAL, format!("no script for {shell}"));
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(failed)?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, program, program, program, &mut script)
        .map_err(|error| failed().with_source(error))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// The parser with what its arguments can be.
fn with_values(command: clap::Command) -> clap::Command {
    let stack_verb = matches!(command.get_name(), "select" | "rm");
    let command = command.mut_args(|arg| match values_of(&arg, stack_verb) {
        Some(values) => arg.add(values),
        None => arg,
    });
    command.mut_subcommands(with_values)
}

fn values_of(arg: &clap::Arg, of_stacks: bool) -> Option<ArgValueCandidates> {
    let named = arg.get_value_names().and_then(|names| names.first());
    let named = named.map_or("", |name| name.as_str());
    Some(match (arg.get_id().as_str(), named) {
        (_, "DEPLOYMENT-ID") => ArgValueCandidates::new(deployments),
        (_, "RUN|DEPLOYMENT-ID") => {
            ArgValueCandidates::new(|| runs().into_iter().chain(deployments()).collect())
        }
        (_, "RUN") => ArgValueCandidates::new(runs),
        (_, "STACK") => ArgValueCandidates::new(components),
        ("environment", _) => ArgValueCandidates::new(environments),
        ("stack", "NAME") => ArgValueCandidates::new(project_stacks),
        ("name", "NAME") if of_stacks => ArgValueCandidates::new(project_stacks),
        _ => return None,
    })
}

fn manifests() -> Vec<Manifest> {
    let found = env::current_dir().ok();
    let workspace = found.and_then(|directory| Workspace::find(&directory).ok());
    let read = workspace.and_then(|workspace| workspace.readable_deployments().ok());
    read.unwrap_or_default()
}

fn candidates(values: BTreeSet<String>) -> Vec<CompletionCandidate> {
    values.into_iter().map(CompletionCandidate::new).collect()
}

fn deployments() -> Vec<CompletionCandidate> {
    let candidate = |manifest: Manifest| {
        let metadata = manifest.metadata;
        let project = format!("{} {}", metadata.organization, metadata.project);
        CompletionCandidate::new(metadata.id.to_string()).help(Some(project.into()))
    };
    manifests().into_iter().map(candidate).collect()
}

fn environments() -> Vec<CompletionCandidate> {
    let manifests = manifests();
    let names = manifests.iter().flat_map(|one| one.environments.keys());
    candidates(names.map(ToString::to_string).collect())
}

fn components() -> Vec<CompletionCandidate> {
    let manifests = manifests();
    let names = manifests.iter().flat_map(|one| one.stacks.keys());
    candidates(names.map(ToString::to_string).collect())
}

/// Stacks that the project in this folder has a configuration file of.
fn project_stacks() -> Vec<CompletionCandidate> {
    let entries = env::current_dir()
        .ok()
        .and_then(|directory| directory.read_dir().ok());
    let name = |file: &OsStr| {
        let file = file.to_str()?;
        let stack = file.strip_prefix("Pulumi.")?;
        let stack = stack
            .strip_suffix(".yaml")
            .or_else(|| stack.strip_suffix(".yml"))?;
        Some(stack.to_owned())
    };
    let names = entries.into_iter().flatten().flatten();
    candidates(names.filter_map(|entry| name(&entry.file_name())).collect())
}

/// Newest first, with what they did.
fn runs() -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let Ok(directory) = env::current_dir() else {
        return Vec::new();
    };
    let Ok(workspace) = Workspace::find(&directory) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for manifest in manifests() {
        for rehearsal in [false, true] {
            let id = manifest.metadata.id.as_str();
            let Ok(place) = DeploymentPlace::find(workspace.clone(), id, rehearsal) else {
                continue;
            };
            let files = RunFiles::new(&place.records);
            for environment in place.environments(None) {
                let records = runtime.block_on(files.of_environment(environment));
                found.extend(records.unwrap_or_default());
            }
        }
    }
    found.sort_by(|one, other| other.started.cmp(&one.started));
    let candidate = |record: nimbus_runs::RunRecord| {
        let request = record.request;
        let rehearsal = if request.rehearsal { ", rehearsed" } else { "" };
        let what = format!(
            "{} of {} in {}{rehearsal}",
            request.action.as_str(),
            request.deployment,
            request.environment
        );
        CompletionCandidate::new(record.run.to_string()).help(Some(what.into()))
    };
    found.into_iter().map(candidate).collect()
}
