//! What a run is going to do, worked out before anything starts.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::validate::{FindingSeverity, ValidationFinding, validate};
use nimbus_orchestrator::{
    GraphUnit, LookupValue, Manifest, NeededValue, PlanSubject, RememberedRun, RunPlan, RunReason,
    UnitDecision, UnitGraph, naming, needed_inputs,
};

use crate::context::RunContext;
use crate::ports::RunPorts;
use crate::record::RunRequest;

/// Checks the manifest as `nimbus validate` does, and that the secrets and variables of what is chosen are there: errors
/// end here, warnings are returned.
pub(crate) async fn check(
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> Result<Vec<ValidationFinding>> {
    let library = context.ports.components.templates().await?;
    let mut findings = validate(&context.manifest, &library, &[context.environment]);
    findings.extend(missing_values(context, chosen).await);
    let (errors, warnings): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == FindingSeverity::Error);
    let Some(first) = errors.first() else {
        return Ok(warnings);
    };
    let rest = match errors.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let help = format!("{}; `nimbus validate` lists everything", first.help);
    let message = format!("{first}{rest}");
    let error = context.pointed(first.spot.as_ref(), ErrorCode::DEPLOYMENT_INVALID, message);
    Err(error.with_help(help))
}

/// Values that only the outside has, and has not. Asked before the first unit starts: a unit whose turn comes late
/// would find out in the middle, with half of the environment changed. What cannot be asked, for a key that does not
/// fit, is told by whoever needs it.
async fn missing_values(
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> Vec<ValidationFinding> {
    let values = &context.ports.values;
    let mut missing = Vec::new();
    for input in needed_inputs(&context.manifest, context.environment) {
        if chosen.is_some_and(|chosen| !chosen.contains(&input.stack)) {
            continue;
        }
        let answer = match &input.value {
            NeededValue::Secret(name) => values.secret(context.environment, name).await,
            NeededValue::Variable(name) => values.env(name).await,
        };
        if matches!(answer, Ok(LookupValue::Absent)) {
            missing.push(input.missing(context.id()));
        }
    }
    missing
}

/// The units that a run is about: all of them, or the chosen ones with what lies between.
pub(crate) fn graph(context: &RunContext, chosen: Option<&[ComponentName]>) -> Result<UnitGraph> {
    part_of(whole_graph(&context.manifest, context)?, context, chosen)
}

/// The units that there is something of, switched off or not: what a destroy or a look is about.
pub(crate) async fn existing(
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> Result<UnitGraph> {
    let manifest = with_existing(context).await?;
    part_of(whole_graph(&manifest, context)?, context, chosen)
}

/// The manifest with every stack switched on that something was deployed of.
async fn with_existing(context: &RunContext) -> Result<Manifest> {
    let mut manifest = context.manifest.clone();
    for (name, entry) in &mut manifest.stacks {
        if !entry.enabled {
            entry.enabled = context.memory(name).await?.last_run.is_some();
        }
    }
    // A stack that is switched off may need one that is, and is gone.
    let on: Vec<_> = manifest.enabled().map(|(name, _)| name.clone()).collect();
    for (name, entry) in &mut manifest.stacks {
        let was_on = context
            .manifest
            .stacks
            .get(name)
            .is_some_and(|one| one.enabled);
        if entry.enabled && !was_on {
            entry.dependencies.retain(|need| on.contains(need));
            entry.config.clear();
        }
    }
    Ok(manifest)
}

/// Refuses to take stacks away that others, which are still there, were made with.
pub(crate) async fn refuse_needed(
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> Result<()> {
    let Some(chosen) = chosen else {
        return Ok(());
    };
    let graph = whole_graph(&with_existing(context).await?, context)?;
    let mut still = Vec::new();
    for name in graph.names() {
        let needs = graph.needs(name).any(|need| chosen.contains(need));
        if needs && !chosen.contains(name) && context.memory(name).await?.last_run.is_some() {
            still.push(name.as_str());
        }
    }
    if still.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = chosen.iter().map(|one| one.as_str()).collect();
    let message = format!(
        "{} is needed by {}, which {} still deployed in {}",
        names.join(", "),
        still.join(", "),
        if still.len() == 1 { "is" } else { "are" },
        context.environment
    );
    Err(Error::new(ErrorCode::STACK_NEEDED, message)
        .with_help("destroy those first, or the whole environment with `nimbus destroy`"))
}

fn part_of(
    graph: UnitGraph,
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> Result<UnitGraph> {
    let Some(chosen) = chosen else {
        return Ok(graph);
    };
    for name in chosen {
        if graph.priority(name).is_none() {
            let id = context.id();
            let message = format!("deployment {id} has no enabled stack {name}");
            return Err(Error::new(ErrorCode::STACK_UNKNOWN, message).with_help(
                "`nimbus graph` shows those that are; others are switched on by `enabled: true` in the manifest",
            ));
        }
    }
    let units = chosen.iter().map(|name| GraphUnit {
        name: name.clone(),
        priority: graph.priority(name).unwrap_or_default(),
        needs: graph
            .needs(name)
            .filter(|need| chosen.contains(need))
            .cloned()
            .collect(),
    });
    UnitGraph::new(units).map_err(|error| invalid_graph(&error))
}

fn whole_graph(manifest: &Manifest, context: &RunContext) -> Result<UnitGraph> {
    manifest
        .graph(context.environment)
        .map_err(|error| invalid_graph(&error))
}

pub(crate) fn invalid_graph(error: &nimbus_orchestrator::GraphError) -> Error {
    Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}"))
}

/// What a single component needs must be there already.
///
/// # Errors
///
/// When something that it needs was never deployed, or not well.
pub async fn require_needs(context: &RunContext, component: &ComponentName) -> Result<()> {
    let graph = whole_graph(&context.manifest, context)?;
    let mut missing = Vec::new();
    for need in graph.needs(component) {
        let last = context.memory(need).await?.last_run;
        if !last.is_some_and(|run| run.outcome.is_whole()) {
            missing.push(need.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("{component} needs {}, not deployed yet", missing.join(", "));
    Err(Error::new(ErrorCode::DEPENDENCY_NOT_DEPLOYED, message)
        .with_help("deploy those first, or the whole environment with `nimbus deploy`"))
}

/// Which units run and why, and how long it should take.
pub(crate) async fn plan(
    context: &RunContext,
    graph: &UnitGraph,
    request: &RunRequest,
) -> Result<RunPlan> {
    let library = context.ports.components.templates().await?;
    let mut reasons: BTreeMap<ComponentName, RunReason> = BTreeMap::new();
    let mut estimates = BTreeMap::new();
    for name in graph.layers().into_iter().flatten() {
        let guess = library.stacks.get(name).map(|template| template.estimate);
        let guess = guess.unwrap_or_default();
        let last = context.memory(name).await?.last_run;
        let took = |run: &RememberedRun| run.seconds > 0;
        let estimate = match request.rehearsal {
            true => {
                let real = context.ports.memories.real(name, context.environment);
                let real = real.await?.filter(took);
                let cloud = real.map_or(guess, |run| guess.learnt(run.seconds, run.resources));
                let rehearsed = last.filter(took);
                rehearsed.map_or(cloud, |run| cloud.rehearsed(run.seconds, run.resources))
            }
            false => last
                .filter(took)
                .map_or(guess, |run| guess.learnt(run.seconds, run.resources)),
        };
        estimates.insert(name.clone(), estimate);
        match context.why(name).await {
            Ok(Some(reason)) => {
                reasons.insert(name.clone(), reason);
            }
            Ok(None) if request.choices.force => {
                reasons.insert(name.clone(), RunReason::Forced);
            }
            Ok(None) if request.choices.refresh => {
                reasons.insert(name.clone(), RunReason::LookedUp);
            }
            Ok(None) => {}
            // What it refers to is deployed by this very run.
            // Its reason is worked out when its turn comes.
            Err(_) if graph.needs(name).any(|need| reasons.contains_key(need)) => {}
            Err(error) => return Err(error),
        }
    }
    let metadata = &context.manifest.metadata;
    let subject = match request.rehearsal {
        true => PlanSubject::Rehearsal(metadata.id.clone()),
        false => PlanSubject::Directory(naming::directory(
            &metadata.id,
            &metadata.organization,
            &metadata.project,
        )),
    };
    Ok(RunPlan::new(
        subject,
        context.environment,
        graph,
        &reasons,
        &estimates,
    ))
}

impl RunContext {
    /// What a deploy would do with this unit, as the plan of all of them says it. Nothing of its own may have changed, and it
    /// still runs when something that it needs changes under it: that is known when its turn comes.
    pub async fn decision(&self, component: &ComponentName) -> Result<UnitDecision> {
        let own = self.why(component).await;
        if let Ok(Some(reason)) = own {
            return Ok(UnitDecision::Run(reason));
        }
        let graph = graph(self, None)?;
        let mut seen = BTreeSet::new();
        for need in graph.needs(component) {
            let mut open = vec![need];
            while let Some(next) = open.pop() {
                if !seen.insert(next) {
                    continue;
                }
                if !matches!(self.why(next).await, Ok(None)) {
                    return Ok(UnitDecision::Depends { on: need.clone() });
                }
                open.extend(graph.needs(next));
            }
        }
        own.map(|_| UnitDecision::Skip)
    }
}

/// Says so when the last run of an environment was cut off.
pub(crate) async fn interrupted_run(
    ports: &RunPorts,
    environment: nimbus_core::EnvironmentName,
) -> Result<Option<nimbus_orchestrator::RunId>> {
    let runs = ports.runs.of_environment(environment).await?;
    let Some(last) = runs.first() else {
        return Ok(None);
    };
    let progress = nimbus_orchestrator::progress_of(&ports.runs.events(last.run).await?);
    let open = matches!(
        progress.result,
        None | Some(nimbus_orchestrator::RunResult::Interrupted)
    );
    Ok(open.then_some(last.run))
}
