//! What a deploy is going to do, worked out before anything starts.

use std::collections::BTreeMap;
use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::fingerprint::Reason;
use nimbus_orchestrator::graph::{Graph, Name, Unit};
use nimbus_orchestrator::manifest::Manifest;
use nimbus_orchestrator::memory::MemoryStore;
use nimbus_orchestrator::plan::Plan;
use nimbus_orchestrator::unit::Board;
use nimbus_orchestrator::validate::{Finding, Severity, validate};
use nimbus_orchestrator::workspace::Workspace;

/// Checks the manifest as `nimbus validate` does: errors end here, warnings are returned.
pub(super) fn check(
    workspace: &Workspace,
    manifest: &Manifest,
    environment: Environment,
) -> Result<Vec<Finding>> {
    let findings = validate(manifest, &workspace.library()?, &[environment]);
    let (errors, warnings): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Error);
    let Some(first) = errors.first() else {
        return Ok(warnings);
    };
    let rest = match errors.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let help = format!("{}; `nimbus validate` lists everything", first.help);
    Err(Error::new(ErrorCode::DEPLOYMENT_INVALID, format!("{first}{rest}")).with_help(help))
}

/// The units that a run is about: all of them, or the chosen ones with what lies between.
pub(super) fn graph(board: &Board, chosen: Option<&[Name]>) -> Result<Graph> {
    let graph = whole_graph(&board.manifest, board.environment)?;
    let Some(chosen) = chosen else {
        return Ok(graph);
    };
    for name in chosen {
        if graph.priority(name).is_none() {
            let id = board.id();
            let message = format!("deployment {id} has no enabled stack {name}");
            return Err(Error::new(ErrorCode::STACK_UNKNOWN, message));
        }
    }
    let units = chosen.iter().map(|name| Unit {
        name: name.clone(),
        priority: graph.priority(name).unwrap_or_default(),
        needs: graph
            .needs(name)
            .filter(|need| chosen.iter().any(|one| one == need))
            .map(str::to_owned)
            .collect(),
    });
    Graph::new(units)
        .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))
}

fn whole_graph(manifest: &Manifest, environment: Environment) -> Result<Graph> {
    let graph = manifest.graph(environment);
    graph.map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))
}

/// What a single stack needs must be there already. `directory` holds what is recorded.
pub(super) fn require_needs(
    manifest: &Manifest,
    environment: Environment,
    directory: &Path,
    stack: &str,
) -> Result<()> {
    let memories = MemoryStore::of_deployment(directory);
    let graph = whole_graph(manifest, environment)?;
    let mut missing = Vec::new();
    for need in graph.needs(stack) {
        let last = memories.load(need, environment)?.last_run;
        let good = last.is_some_and(|run| run.succeeded);
        if !good {
            missing.push(need.to_owned());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("{stack} needs {}, not deployed yet", missing.join(", "));
    Err(Error::new(ErrorCode::DEPENDENCY_NOT_DEPLOYED, message)
        .with_help("deploy those first, or the whole environment with `nimbus deploy`"))
}

/// Which units run and why, and how long it should take.
pub(super) async fn plan(board: &Board, graph: &Graph, force: bool) -> Result<Plan> {
    let library = board.workspace.library()?;
    let mut reasons: BTreeMap<Name, Reason> = BTreeMap::new();
    let mut estimates = BTreeMap::new();
    for name in graph.layers().into_iter().flatten() {
        let guess = library.stacks.get(name).map(|template| template.estimate);
        let guess = guess.unwrap_or_default();
        let learnt = board.memory(name)?.last_run.filter(|run| run.seconds > 0);
        let estimate = learnt.map_or(guess, |run| guess.learnt(run.seconds, run.resources));
        estimates.insert(name.to_owned(), estimate);
        match board.why(name).await {
            Ok(Some(reason)) => {
                reasons.insert(name.to_owned(), reason);
            }
            Ok(None) if force => {
                reasons.insert(name.to_owned(), Reason::Forced);
            }
            Ok(None) => {}
            // What it refers to is deployed by this very run.
            Err(_) if graph.needs(name).any(|need| reasons.contains_key(need)) => {}
            Err(error) => return Err(error),
        }
    }
    let directory = board.directory.file_name().unwrap_or_default();
    let shown = match directory.to_string_lossy() {
        name if name == "rehearsal" => board.id().to_string(),
        name => name.into_owned(),
    };
    let environment = board.environment.as_str();
    Ok(Plan::new(&shown, environment, graph, &reasons, &estimates))
}
