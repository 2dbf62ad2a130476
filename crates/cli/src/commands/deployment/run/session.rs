//! A run from its lock to its last line.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nimbus_core::{ErrorKind, Result};
use nimbus_engine_backend::Owner;
use nimbus_engine_operations::{Cancellation, Stage};
use nimbus_local::{
    EnvironmentLock, FoundRun, Locks, Recovery, RunLogs, RunStore, Versions, stamp,
};
use nimbus_orchestrator::execute::{Limits, RunReport, RunSink, Worker, execute};
use nimbus_orchestrator::fingerprint::{Fingerprint, Input};
use nimbus_orchestrator::graph::{Graph, Name};
use nimbus_orchestrator::plan::Plan;
use nimbus_orchestrator::record::{
    RunChoices, RunEvent, RunId, RunKind, RunRecord, RunStatus, UnitVersion, VersionRecord,
};
use nimbus_orchestrator::run::{Direction, Earlier, Run, RunResult, UnitState};
use nimbus_orchestrator::unit::Board;
use nimbus_rehearsal::Observer;
use tokio::signal::unix::{SignalKind, signal};

use super::checks::Checks;
use super::crew::{Crew, Work};
use super::events::UnitEvents;
use super::forecast;
use super::hub::{Hub, now};
use super::summary::{self, RunSummary};
use super::view::{Subject, View};
use crate::commands::deployment::local::{Hands, Place, RunArgs, board, open};
use crate::context::Context;
use crate::exit::Outcome;

/// Records of so many runs of an environment are kept.
const RUNS_KEPT: usize = 100;

/// Everything that a run is made of once it is decided what it does.
pub(super) struct Order {
    pub(super) kind: RunKind,
    pub(super) work: Work,
    pub(super) direction: Direction,
    pub(super) graph: Graph,
    pub(super) choices: RunChoices,
    pub(super) plan: Option<Plan>,
    pub(super) warnings: Vec<String>,
    /// An earlier attempt that this one goes on with.
    pub(super) goes_on: Option<(FoundRun, Earlier)>,
    pub(super) recovery: Recovery,
}

/// Takes the environment for one run, or waits for it.
pub(super) async fn lock(
    place: &Place,
    args: &RunArgs,
    wait: Option<Duration>,
    command: &str,
    context: &Context,
) -> Result<EnvironmentLock> {
    let locks = Locks::of_deployment(&place.directory);
    let command = format!("{} {command} {}", context.program, args.id);
    let Some(limit) = wait else {
        return locks.take(args.environment, &command);
    };
    let output = context.output;
    let interactive = output.stderr_terminal().interactive;
    let mut first = true;
    let taken = locks
        .wait(args.environment, &command, limit, |held, left| {
            let user = &held.record.owner.username;
            let minutes = left.as_secs().div_ceil(60);
            if first {
                output.note(&format!("Error: State locked by {user}"));
                output.note(&format!(
                    "Waiting for lock release... (timeout: {minutes} minutes)"
                ));
            } else if interactive && !output.is_quiet() && !output.is_json() {
                let left = left.as_secs();
                let line = format!("\r{}:{:02} left \u{1b}[K", left / 60, left % 60);
                // There is nowhere left to report that standard error is closed.
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            first = false;
        })
        .await?;
    if !first && interactive && !output.is_json() {
        output.complain("\r\u{1b}[K");
    }
    Ok(taken)
}

/// Carries an order out, records it and tells how it ended.
pub(super) async fn carry_out(
    order: Order,
    args: &RunArgs,
    place: Place,
    mut lock: EnvironmentLock,
    context: &Context,
) -> Result<Outcome> {
    let started = Instant::now();
    let cancellation = Cancellation::new();
    if !args.rehearse {
        let board = open(args, context, &cancellation)?;
        board.ready(order.graph.names()).await?;
    }
    let hub = Arc::new(Hub::new(view(&order, args, context)));
    let found = match &order.goes_on {
        Some((found, _)) => found.clone(),
        None => begin(&order, args, &place)?,
    };
    let id = found.record.run;
    lock.name_run(id)?;
    let logs = RunLogs::open(&place.directory, &found.record).and_then(|logs| {
        hub.record(found.append()?, logs);
        Ok(())
    });
    logs.map_err(|error| super::unwritable(&found.folder, error))?;
    let directory = place.directory.clone();
    let observer = Observer::default();
    let hands = Hands {
        events: forecast::observed(&observer, events(&hub)),
        keep: Some(found.before()),
        recovery: order.recovery,
        observer: observer.clone(),
    };
    let board = Arc::new(board(args, place, hands, context, &cancellation)?);
    announce(&order, &hub, id)?;

    let crew = Crew::new(
        Arc::clone(&board),
        order.work.clone(),
        Arc::clone(&hub),
        Some(id),
    );
    let checks = (order.kind == RunKind::Deploy)
        .then(|| Checks::of_run(&board, &order, &found, args, &cancellation));
    let crew = Arc::new(crew.checked_by(checks));
    let mut run = Run::new(
        order.graph.clone(),
        order.direction,
        order.choices.on_failure,
        order.choices.parallel,
    )
    .checking(order.kind == RunKind::Deploy);
    if let Some((_, earlier)) = order.goes_on.clone() {
        run = run.after(earlier);
    }
    let plan = order.plan.as_ref();
    let overtime = plan.and_then(|plan| plan.time_limit(order.choices.parallel));
    let report = drive(run, &crew, &hub, &cancellation, overtime).await;

    let prediction = match report.result {
        // The official command line does not tell what resources depend on.
        RunResult::Succeeded if !args.engine.is_official() => {
            forecast::predict(&observer, started, &order)
        }
        _ => None,
    };
    let version = match report.result {
        RunResult::Succeeded => keep_version(&order, &board, &crew, &report, id).await,
        _ => Ok(None),
    };
    hub.tell(RunEvent::Run {
        at: now(),
        run: id,
        status: RunStatus::Ended,
        result: Some(report.result),
        message: report.trigger.map(|trigger| trigger.to_string()),
    });
    let mut warnings = order.warnings.clone();
    warnings.extend(hub.close());
    let checks = crew.checks.as_ref().map(Checks::results);
    let (checks, noticed) = checks.unwrap_or_default();
    warnings.extend(noticed);
    let version = version.unwrap_or_else(|error| {
        warnings.push(format!("the version was not recorded: {error}"));
        None
    });
    // Old records are no reason to fail a run that went well.
    let _ = RunStore::of_deployment(&directory).prune(args.environment, RUNS_KEPT);
    drop(lock);
    let units = summary::units(&report, &crew);
    let summary = RunSummary {
        event: "summary",
        run: Some(id.to_string()),
        kind: order.kind.as_str(),
        deployment: board.id().to_string(),
        environment: args.environment.to_string(),
        rehearsal: args.rehearse,
        result: report.result.word(),
        changes: summary::has_changes(&units),
        seconds: started.elapsed().as_secs(),
        trigger: report.trigger.map(|trigger| trigger.to_string()),
        version,
        units,
        checks,
        attention: attention(&report),
        warnings,
        prediction,
        next: next_step(&report, args, context),
    };
    context.output.result(&summary)?;
    Ok(outcome(report.result))
}

/// Previews: nothing is locked, recorded or changed.
pub(super) async fn look(
    graph: Graph,
    board: &Arc<Board>,
    hub: &Arc<Hub>,
    cancellation: &Cancellation,
    parallel: usize,
) -> (RunReport, Arc<Crew>) {
    let crew = Crew::new(Arc::clone(board), Work::Preview, Arc::clone(hub), None);
    let crew = Arc::new(crew);
    let policy = nimbus_orchestrator::run::OnFailure::Continue;
    let run = Run::new(graph, Direction::Forward, policy, parallel);
    let report = drive(run, &crew, hub, cancellation, None).await;
    (report, crew)
}

/// Who hears the units of a run.
pub(super) fn events(hub: &Arc<Hub>) -> nimbus_local::EventsOf {
    let hub = Arc::clone(hub);
    Arc::new(move |unit: &str| Arc::new(UnitEvents::new(unit, Arc::clone(&hub))) as _)
}

fn view(order: &Order, args: &RunArgs, context: &Context) -> View {
    let (title, doing) = match order.kind {
        RunKind::Deploy => ("Deploying", "deploying"),
        RunKind::Destroy => ("Destroying", "destroying"),
        RunKind::Rollback => ("Rolling back", "rolling back"),
    };
    let subject = Subject {
        title: format!("{title} {} {}", args.id, args.environment),
        doing,
        rehearsal: args.rehearse,
    };
    View::open(context.output, subject, &order.graph)
}

fn begin(order: &Order, args: &RunArgs, place: &Place) -> Result<FoundRun> {
    let owner = Owner::current("");
    let started = Timestamp::now();
    let mut digest = Fingerprint::default();
    digest.add(
        Input::Config("manifest".to_owned()),
        place.deployment.manifest.write(),
    );
    let plan = order.plan.as_ref().map(|plan| format!("{plan:?}"));
    let mut planned = Fingerprint::default();
    planned.add(Input::Config("plan".to_owned()), plan.unwrap_or_default());
    let store = RunStore::of_deployment(&place.directory);
    store.begin(|run| RunRecord {
        run,
        kind: order.kind,
        deployment: place.deployment.manifest.metadata.id.to_string(),
        environment: args.environment,
        rehearsal: args.rehearse,
        started: now(),
        user: owner.username.clone(),
        host: owner.hostname.clone(),
        options: order.choices.clone(),
        manifest: digest.digest(),
        plan: planned.digest(),
        stamp: stamp(started),
    })
}

fn announce(order: &Order, hub: &Hub, run: RunId) -> Result<()> {
    let status = match order.goes_on {
        Some(_) => RunStatus::Resumed,
        None => RunStatus::Started,
    };
    hub.must_tell(RunEvent::Run {
        at: now(),
        run,
        status,
        result: None,
        message: None,
    })?;
    if let Some(plan) = &order.plan {
        hub.log("plan", &plan.to_string());
        hub.tell(plan.event(now()));
    }
    for warning in &order.warnings {
        hub.log("validation", warning);
    }
    Ok(())
}

/// Runs to the end. The first request to stop lets running steps finish and starts nothing; the
/// second ends everything.
async fn drive(
    run: Run,
    crew: &Arc<Crew>,
    hub: &Arc<Hub>,
    cancellation: &Cancellation,
    overtime: Option<Duration>,
) -> RunReport {
    let limits = Limits {
        cancel: cancellation.stop_token().clone(),
        overtime,
    };
    let signals = tokio::spawn(pass_signals_on(cancellation.clone(), Arc::clone(hub)));
    let worker = Arc::clone(crew) as Arc<dyn Worker>;
    let sink: &dyn RunSink = crew.as_ref();
    let report = execute(run, worker, sink, &limits).await;
    signals.abort();
    report
}

async fn pass_signals_on(cancellation: Cancellation, hub: Arc<Hub>) {
    let listeners = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let Ok((mut interrupt, mut terminate)) = listeners else {
        // Without listeners a signal ends the process, and records have what was known.
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        let message = match cancellation.request() {
            Stage::Stopping => "stopping: running steps finish, nothing starts; once more ends all",
            Stage::Killing => "ending everything at once",
        };
        hub.tell(RunEvent::Diagnostic {
            at: now(),
            unit: None,
            level: nimbus_orchestrator::record::Level::Warning,
            message: message.to_owned(),
        });
    }
}

/// A run that changed something makes a version of the environment.
async fn keep_version(
    order: &Order,
    board: &Board,
    crew: &Crew,
    report: &RunReport,
    run: RunId,
) -> Result<Option<u32>> {
    let ran = |state: &UnitState| *state == UnitState::Succeeded;
    if !report.units.values().any(ran) {
        return Ok(None);
    }
    let versions = Versions::of_environment(&board.directory, board.environment);
    let last = versions.last()?;
    let mut units: BTreeMap<Name, UnitVersion> = last
        .as_ref()
        .map(|last| last.units.clone())
        .unwrap_or_default();
    for (name, state) in &report.units {
        let gone = match &order.work {
            Work::Destroy => true,
            Work::Restore(states) => states.get(name).copied().flatten().is_none(),
            Work::Deploy { .. } | Work::Preview => false,
        };
        if gone {
            units.remove(name);
        } else if ran(state) || !units.contains_key(name) {
            units.insert(name.clone(), unit_version(order, board, crew, name).await?);
        }
    }
    let version = last.map_or(1, |last| last.version + 1);
    versions.add(&VersionRecord {
        version,
        run,
        kind: order.kind,
        at: now(),
        user: Owner::current("").username,
        units,
    })?;
    Ok(Some(version))
}

async fn unit_version(
    order: &Order,
    board: &Board,
    crew: &Crew,
    name: &str,
) -> Result<UnitVersion> {
    let (project, stack) = board.address(name);
    let fingerprint = crew.note(name).and_then(|note| note.fingerprint);
    let fingerprint = match fingerprint {
        Some(fingerprint) => Some(fingerprint),
        None => board.memory(name)?.last_run.map(|run| run.fingerprint),
    };
    let fingerprint = fingerprint.unwrap_or_default();
    Ok(UnitVersion {
        state: board.engine.history_length(&project, &stack).await?,
        stack,
        program: fingerprint.program_digest(),
        fingerprint: fingerprint.digest(),
        needs: order.graph.needs(name).map(str::to_owned).collect(),
    })
}

fn attention(report: &RunReport) -> Vec<String> {
    let stuck = report.units.iter().filter_map(|(name, state)| match state {
        UnitState::Stuck { message } => {
            Some(format!("{name}: {}", nimbus_telemetry::redact(message)))
        }
        _ => None,
    });
    stuck.collect()
}

fn next_step(report: &RunReport, args: &RunArgs, context: &Context) -> Option<String> {
    let RunArgs {
        id, environment, ..
    } = args;
    let rehearse = if args.rehearse { " --rehearse" } else { "" };
    let program = context.program;
    let resume = format!("{program} resume {id} --environment {environment}{rehearse}");
    match report.result {
        RunResult::Succeeded | RunResult::RolledBack => None,
        RunResult::Interrupted => Some(format!("`{resume}` goes on with it")),
        RunResult::Failed => Some(format!(
            "put right what failed, then `{resume}`; `{program} rollback {id} --environment \
             {environment}{rehearse}` goes back to the version before"
        )),
        RunResult::NeedsAttention => Some(
            "look at each stack listed above; what is recorded of it is what is known".to_owned(),
        ),
    }
}

pub(super) fn outcome(result: RunResult) -> Outcome {
    match result {
        RunResult::Succeeded => Outcome::Done,
        RunResult::Interrupted => Outcome::Reported(ErrorKind::Cancelled),
        RunResult::Failed | RunResult::RolledBack | RunResult::NeedsAttention => {
            Outcome::Reported(ErrorKind::Failed)
        }
    }
}
