//! A run from its lock to its end, in stages that cannot be taken out of order.

mod resumption;
pub(crate) mod stale;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_core::{ComponentName, Error, ErrorCode, Result, StackOperation};
use nimbus_orchestrator::{
    EarlierAttempt, Fingerprint, FingerprintInput, Manifest, OnFailure, Run, RunAction,
    RunDirection, RunEvent, RunId, RunPlan, RunResult, RunStatus, UnitGraph,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::bus::{EventBus, timestamp};
use crate::checks::RunChecks;
use crate::context::RunContext;
use crate::execute::{RunLimits, execute};
use crate::lock_wait::{LockWait, take_environment};
use crate::manifest_parts::manifest_parts;
use crate::ports::{EnvironmentGuard, RunPorts};
use crate::progress::{FinishedRun, attention, summaries};
use crate::record::{RunRecord, RunRequest};
use crate::rollback::plan_rollback;
use crate::seal::refuse_moved;
use crate::unit::Recovery;
use crate::versions::{self, RunOutcome};
use crate::worker::{RunWork, RunWorker};
use crate::{leases, planning, readiness, spans};

/// Records of so many runs of an environment are kept.
const RUNS_KEPT: usize = 100;

/// An environment that is held for one run, with its manifest as it is under the lock.
pub struct RunSession {
    pub(crate) ports: Arc<RunPorts>,
    pub(crate) request: RunRequest,
    pub(crate) guard: Box<dyn EnvironmentGuard>,
    pub(crate) context: RunContext,
}

/// A run of which everything is decided, and nothing has begun.
pub struct PlannedRun {
    ports: Arc<RunPorts>,
    request: RunRequest,
    guard: Box<dyn EnvironmentGuard>,
    context: RunContext,
    graph: UnitGraph,
    work: RunWork,
    plan: Option<RunPlan>,
    warnings: Vec<String>,
    /// An earlier attempt that this one goes on with.
    earlier: Option<(RunRecord, EarlierAttempt)>,
    recovery: Recovery,
    interrupted: Option<RunId>,
}

impl RunSession {
    /// Takes the environment, or waits for it, and reads the manifest.
    ///
    /// # Errors
    ///
    /// When the environment may not be deployed, is held by another run, or the manifest cannot be
    /// read.
    pub async fn open(
        ports: Arc<RunPorts>,
        request: RunRequest,
        command: &str,
        wait: Option<LockWait<'_>>,
    ) -> Result<Self> {
        // A courtesy: whoever names a wrong environment need not wait for its lock. The manifest
        // that counts is read under the lock, for whoever holds it may change it.
        load(&ports, &request).await?;
        let guard =
            take_environment(ports.locks.as_ref(), request.environment, command, wait).await?;
        ports.deployment.follow().await?;
        let context = load(&ports, &request).await?;
        context.refuse_lost_states().await?;
        Ok(Self {
            ports,
            request,
            guard,
            context,
        })
    }

    /// The manifest under the lock, which nobody changes before the run is over.
    pub fn manifest(&self) -> &Manifest {
        &self.context.manifest
    }

    /// Decides what the run does, and refuses one that cannot go well or whose plan no longer fits.
    ///
    /// # Errors
    ///
    /// When anything stands in the way; nothing was recorded or changed then.
    pub async fn plan(self) -> Result<PlannedRun> {
        let taken = self.context.taken_leases();
        let planned = self.decide().await;
        if planned.is_err() {
            taken.give_back().await;
        }
        planned
    }

    async fn decide(mut self) -> Result<PlannedRun> {
        let mut to_version = None;
        let request = &self.request;
        let context = &self.context;
        let mut warnings = Vec::new();
        let mut plan = None;
        let (work, graph) = match request.action {
            RunAction::Deploy => {
                warnings = readiness::require(context, request).await?;
                let (work, graph) = deploy_work(context, request, None).await?;
                plan = Some(planning::plan(context, &graph, request).await?);
                (work, graph)
            }
            RunAction::Destroy => {
                let chosen = request.choices.components.as_deref();
                planning::refuse_needed(context, chosen).await?;
                let graph = planning::existing(context, chosen).await?;
                (RunWork::Destroy, graph)
            }
            RunAction::Rollback => {
                let plan = plan_rollback(context, request.choices.to_version, None).await?;
                to_version = Some(plan.version);
                (RunWork::Restore(plan.targets), plan.graph)
            }
            RunAction::Refresh => {
                let chosen = request.choices.components.as_deref();
                let graph = planning::existing(context, chosen).await?;
                (RunWork::Refresh, graph)
            }
            RunAction::Preview => {
                let message = "a preview is not recorded as a run";
                return Err(Error::new(ErrorCode::INTERNAL, message));
            }
        };
        // A deploy looked at this with everything else that may be in its way. The others are about what
        // there is, which the manifest may have switched off or no longer have.
        if request.action != RunAction::Deploy && !request.rehearsal {
            let names: Vec<_> = graph.names().cloned().collect();
            readiness::account(context, Some(&names)).await?;
        }
        let interrupted = planning::interrupted_run(&self.ports, request.environment).await?;
        // Recorded as decided: whoever goes on with the run later means the same version.
        self.request.choices.to_version = to_version.or(self.request.choices.to_version);
        let recovery = Recovery {
            look_up: false,
            forget_creates: self.request.choices.forget_creates,
        };
        Ok(PlannedRun {
            ports: self.ports,
            guard: self.guard,
            context: self.context,
            request: self.request,
            graph,
            work,
            plan,
            warnings,
            earlier: None,
            recovery,
            interrupted,
        })
    }
}

impl PlannedRun {
    /// What a deploy would do; nothing for a destroy or a rollback.
    pub fn plan(&self) -> Option<&RunPlan> {
        self.plan.as_ref()
    }

    pub fn graph(&self) -> &UnitGraph {
        &self.graph
    }

    pub fn request(&self) -> &RunRequest {
        &self.request
    }

    /// Which run of this environment was cut off, if the last one was.
    pub fn interrupted(&self) -> Option<RunId> {
        self.interrupted
    }

    fn direction(&self) -> RunDirection {
        match StackOperation::from(self.request.action) {
            // The graph of a rollback says who waits for whom: what goes away and what returns are in it.
            StackOperation::Update
            | StackOperation::Refresh
            | StackOperation::Import
            | StackOperation::Restore => RunDirection::Forward,
            StackOperation::Destroy => RunDirection::Reverse,
        }
    }

    /// Records the whole request, carries it out and says how it ended. When `stop` is cancelled,
    /// what runs finishes and nothing more starts.
    ///
    /// # Errors
    ///
    /// When the run could not begin. One that began ends with a result, whatever happens.
    pub async fn carry_out(
        self,
        bus: Arc<EventBus>,
        stop: CancellationToken,
    ) -> Result<FinishedRun> {
        let started = Instant::now();
        let direction = self.direction();
        let Self {
            ports,
            mut request,
            mut guard,
            context,
            graph,
            work,
            plan,
            mut warnings,
            earlier,
            recovery,
            interrupted: _,
        } = self;
        // Before the record: a run that is refused here has not begun. The states of a rehearsal have
        // a key that is always there.
        if !request.rehearsal {
            context.ready(graph.names()).await?;
        }
        request.manifest = manifest_digest(&context);
        let chosen = request.choices.components.as_deref();
        request.manifest_parts = manifest_parts(&context, chosen);
        request.plan = plan.as_ref().map(RunPlan::digest).unwrap_or_default();
        let resumed = earlier.is_some();
        let (record, earlier) = match earlier {
            // Its record stays as it was written; what it was asked for does not change by going on.
            Some((record, earlier)) => (record, Some(earlier)),
            None => (ports.runs.begin(request).await?, None),
        };
        guard.name_run(record.run).await?;
        let log = ports.logs.open(&record)?;
        bus.record(Arc::clone(&ports.runs), record.run, log);
        announce(&bus, &ports, &record, resumed, plan.as_ref(), &warnings).await?;

        let context = context.within(record.run).recovering(recovery);
        let limits = plan.as_ref().map(RunPlan::unit_limits).unwrap_or_default();
        let scale = record.request.choices.rehearsal.time_scale;
        let context = context.limited(scaled(limits, record.request.rehearsal, scale));
        let context = Arc::new(context.looking_first(record.request.choices.refresh));
        let is_deploy = record.request.action == RunAction::Deploy;
        let checks = is_deploy.then(|| RunChecks::of_run(&context, &record, &graph, &stop));
        let targets = match &work {
            RunWork::Restore(targets) => Some(targets.clone()),
            RunWork::Deploy { .. } | RunWork::Preview | RunWork::Destroy | RunWork::Refresh => None,
        };
        let worker = RunWorker::new(
            Arc::clone(&context),
            work,
            Arc::clone(&bus),
            Some(record.run),
            checks,
        );
        let worker = Arc::new(worker);
        let choices = &record.request.choices;
        let mut run = Run::new(
            graph.clone(),
            direction,
            on_failure(&record.request),
            choices.parallel,
        )
        .checking(is_deploy);
        if let Some(earlier) = earlier {
            run = run.after(earlier);
        }
        let limits = RunLimits {
            cancel: stop,
            overtime: plan.and_then(|plan| plan.time_limit(choices.parallel)),
        };
        let dyn_worker = Arc::clone(&worker);
        let span = spans::run(
            &context,
            record.request.action,
            Some(record.run),
            graph.len(),
        );
        let carried_out = execute(run, dyn_worker, worker.as_ref(), &limits);
        let mut report = carried_out.instrument(span.clone()).await;
        // Before anything is said of the end: what no longer holds must not be skipped by the next deploy.
        let action = record.request.action;
        let marked = stale::distrust(&context, action, &report, targets.as_ref(), worker.stale());
        let stale = match marked.await {
            Ok(stale) => stale,
            Err(error) => {
                warnings.push(format!(
                    "deploy with --force: what no longer holds was not marked: {error}"
                ));
                worker.stale()
            }
        };
        report.result = stale::result(report.result, &stale);
        spans::run_ended(&span, &report);

        let done = worker.done();
        let outcome = RunOutcome {
            record: &record,
            graph: &graph,
            report: &report,
            work: &done,
            targets: targets.as_ref(),
        };
        // Before the end is recorded as well: whoever reads that a run is over finds its leases settled.
        if let Err(error) = leases::settle(&context, &outcome).await {
            warnings.push(format!("what resolvers leased was not settled: {error}"));
        }
        // Before the end is recorded: a run that says that it succeeded has its version.
        let version = match report.result {
            // A look changes nothing of what is there, so it makes no version of it.
            RunResult::Succeeded if record.request.action != RunAction::Refresh => {
                versions::keep(&context, &outcome).await
            }
            _ => Ok(None),
        };
        let checks = worker.checks().map(RunChecks::results);
        let (checks, noticed) = checks.unwrap_or_default();
        warnings.extend(noticed);
        let version = version.unwrap_or_else(|error| {
            warnings.push(format!("the version was not recorded: {error}"));
            None
        });
        bus.publish(RunEvent::Run {
            at: timestamp(ports.clock.now()),
            run: record.run,
            status: RunStatus::Ended,
            result: Some(report.result),
            message: report.trigger.map(|trigger| trigger.to_string()),
            trigger: report.trigger,
            version,
            warnings: warnings.clone(),
        });
        warnings.extend(bus.close().await);
        // Old records are no reason to fail a run that went well.
        let _ = ports
            .runs
            .prune(record.request.environment, RUNS_KEPT)
            .await;
        // Held until the record is closed: whoever takes the environment next goes by it.
        drop(guard);
        Ok(FinishedRun {
            result: report.result,
            trigger: report.trigger,
            version,
            units: summaries(&report.units, &done),
            checks,
            warnings,
            attention: attention(&report.units, &stale),
            open_creates: worker.leaves_creates_open(),
            took: started.elapsed(),
            record,
            graph,
            direction,
        })
    }
}

/// The deployment, if the request may be carried out in its environment. What an environment has that
/// is switched off can be looked at and taken away.
pub(crate) async fn load(ports: &Arc<RunPorts>, request: &RunRequest) -> Result<RunContext> {
    let (ports, environment) = (Arc::clone(ports), request.environment);
    match request.action {
        RunAction::Destroy | RunAction::Refresh => RunContext::load_any(ports, environment).await,
        RunAction::Deploy | RunAction::Preview | RunAction::Rollback => {
            RunContext::load(ports, environment).await
        }
    }
}

/// A rehearsal that waits for a part of the time only has that part of it. One that waits for nothing
/// has no limit: what it takes is not what it would take.
fn scaled(
    limits: BTreeMap<ComponentName, Duration>,
    rehearsal: bool,
    scale: Option<f64>,
) -> BTreeMap<ComponentName, Duration> {
    let scale = scale.filter(|scale| rehearsal && *scale < 1.0);
    let Some(scale) = scale else {
        return limits;
    };
    if scale <= 0.0 {
        return BTreeMap::new();
    }
    let part = |(name, limit): (ComponentName, Duration)| (name, limit.mul_f64(scale));
    limits.into_iter().map(part).collect()
}

/// What a deploy does, held to its sealed plan if it has one.
async fn deploy_work(
    context: &RunContext,
    request: &RunRequest,
    earlier: Option<&EarlierAttempt>,
) -> Result<(RunWork, UnitGraph)> {
    let choices = &request.choices;
    let graph = planning::graph(context, choices.components.as_deref())?;
    let plan = match &choices.sealed_plan {
        None => None,
        Some(plan) => {
            plan.refuse_other(context.id(), request.environment, request.rehearsal)?;
            plan.refuse_other_engine(choices.engine)?;
            refuse_moved(context, plan, &graph, earlier).await?;
            Some(Arc::new(plan.clone()))
        }
    };
    let work = RunWork::Deploy {
        force: choices.force,
        look_first: choices.refresh,
        plan,
    };
    Ok((work, graph))
}

/// Only a deploy keeps what units were before it, so only a deploy can be undone. Whoever recorded
/// another wish for a destroy would be told that everything is back while it is gone.
fn on_failure(request: &RunRequest) -> OnFailure {
    match request.action {
        RunAction::Deploy => request.choices.on_failure,
        RunAction::Preview | RunAction::Destroy | RunAction::Refresh | RunAction::Rollback => {
            OnFailure::Hold
        }
    }
}

async fn announce(
    bus: &EventBus,
    ports: &RunPorts,
    record: &RunRecord,
    resumed: bool,
    plan: Option<&RunPlan>,
    warnings: &[String],
) -> Result<()> {
    let now = timestamp(ports.clock.now());
    let status = if resumed {
        RunStatus::Resumed
    } else {
        RunStatus::Started
    };
    bus.publish(RunEvent::run(now.clone(), record.run, status));
    if let Some(plan) = plan {
        bus.log("plan", &plan.to_string());
        bus.publish(plan.event(now));
    }
    for warning in warnings {
        bus.log("validation", warning);
    }
    bus.settle().await
}

fn manifest_digest(context: &RunContext) -> String {
    let mut digest = Fingerprint::default();
    let input = FingerprintInput::Config("manifest".to_owned());
    digest.add(input, context.manifest.write());
    digest.digest()
}
