//! The whole environment, each unit with the outputs that units before it would have. Nothing is
//! locked, recorded or changed, but for what resolvers lease to the plan for a while: what it shows is what a
//! deploy gets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_core::{ComponentName, EnvironmentName, Result};
use nimbus_orchestrator::{OnFailure, Run, RunAction, RunDirection, RunResult, UnitGraph};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::bus::{EventBus, timestamp};
use crate::context::RunContext;
use crate::execute::{RunLimits, execute};
use crate::planning;
use crate::ports::RunPorts;
use crate::progress::{UnitSummary, UnitWork, summaries};
use crate::record::EngineChoice;
use crate::seal::{SealedPlan, SealedUnit};
use crate::spans;
use crate::worker::{RunWork, RunWorker};

/// What is to be previewed.
#[derive(Clone, Debug)]
pub struct PreviewRequest {
    pub environment: EnvironmentName,
    pub rehearsal: bool,
    /// Only these components; all of them when absent.
    pub components: Option<Vec<ComponentName>>,
    pub parallel: usize,
    /// What carries it out, and with it everything that is held to it.
    pub engine: EngineChoice,
}

/// What a deploy would do.
#[derive(Clone, Debug)]
pub struct PreviewReport {
    pub result: RunResult,
    pub units: BTreeMap<ComponentName, UnitSummary>,
    pub warnings: Vec<String>,
    pub graph: UnitGraph,
    pub took: Duration,
    /// What a deploy can be held to, if the preview succeeded.
    pub sealed: Option<SealedPlan>,
}

/// Previews an environment. `begun` is told the graph before anything happens.
///
/// # Errors
///
/// When the deployment cannot be read or is not valid.
pub async fn preview(
    ports: Arc<RunPorts>,
    request: &PreviewRequest,
    bus: Arc<EventBus>,
    stop: CancellationToken,
    begun: impl FnOnce(&UnitGraph),
) -> Result<PreviewReport> {
    let context = Arc::new(RunContext::load(ports, request.environment).await?);
    let taken = context.taken_leases();
    let report = look(context, request, bus, stop, begun).await;
    // What a plan shows is held for it; what shows nothing holds nothing.
    let whole = |report: &PreviewReport| report.sealed.is_some();
    if !report.as_ref().is_ok_and(whole) {
        taken.give_back().await;
    }
    report
}

async fn look(
    context: Arc<RunContext>,
    request: &PreviewRequest,
    bus: Arc<EventBus>,
    stop: CancellationToken,
    begun: impl FnOnce(&UnitGraph),
) -> Result<PreviewReport> {
    let started = Instant::now();
    context.refuse_lost_states().await?;
    let findings = planning::check(&context, request.components.as_deref()).await?;
    let graph = planning::graph(&context, request.components.as_deref())?;
    // Units would find out one by one, in the middle, that their states cannot be opened.
    context.ready(graph.names()).await?;
    begun(&graph);
    let worker = RunWorker::new(Arc::clone(&context), RunWork::Preview, bus, None, None);
    let worker = Arc::new(worker);
    let run = Run::new(
        graph.clone(),
        RunDirection::Forward,
        OnFailure::Continue,
        request.parallel,
    );
    let limits = RunLimits {
        cancel: stop,
        overtime: None,
    };
    let dyn_worker = Arc::clone(&worker);
    let span = spans::run(&context, RunAction::Preview, None, graph.len());
    let carried_out = execute(run, dyn_worker, worker.as_ref(), &limits);
    let report = carried_out.instrument(span.clone()).await;
    spans::run_ended(&span, &report);
    let work = worker.done();
    let sealed = match report.result {
        RunResult::Succeeded => Some(seal(&graph, &context, &work, request).await?),
        _ => None,
    };
    Ok(PreviewReport {
        result: report.result,
        units: with_leases(summaries(&report.units, &work), &context),
        warnings: findings.iter().map(ToString::to_string).collect(),
        graph,
        took: started.elapsed(),
        sealed,
    })
}

fn with_leases(
    mut units: BTreeMap<ComponentName, UnitSummary>,
    context: &RunContext,
) -> BTreeMap<ComponentName, UnitSummary> {
    for (name, unit) in &mut units {
        unit.leases = context.shown_leases(name);
    }
    units
}

async fn seal(
    graph: &UnitGraph,
    context: &RunContext,
    work: &BTreeMap<ComponentName, UnitWork>,
    request: &PreviewRequest,
) -> Result<SealedPlan> {
    let mut units = BTreeMap::new();
    for name in graph.names() {
        let work = work.get(name).cloned().unwrap_or_default();
        let unit = SealedUnit {
            state: context.state_version(name).await?,
            inputs: work.fingerprint.unwrap_or_default(),
            needs: graph.needs(name).cloned().collect(),
            steps: work.report.steps,
            leases: context.shown_leases(name),
            made: context.made_up(name),
        };
        units.insert(name.clone(), unit);
    }
    Ok(SealedPlan::new(
        timestamp(context.ports.clock.now()),
        context.id().clone(),
        request.environment,
        request.rehearsal,
        request.engine,
        units,
    ))
}
