//! A run of this command: its ports on files, who watches it, and the signals that stop it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nimbus_core::{EnvironmentName, ErrorKind, Result, shell_word};
use nimbus_engine_backend::Owner;
use nimbus_engine_operations::{
    CancelStage, Cancellation, PackagePolicy, StackGrant, StateLocation,
};
use nimbus_local::{DeploymentPlace, LocalRunOptions, UnitEvents, local_ports, rehearsal_orders};
use nimbus_orchestrator::{DiagnosticLevel, RunAction, RunEvent, RunResult, UnitGraph};
use nimbus_rehearsal::Observer;
use nimbus_runs::ports::{LockHolder, RunPorts};
use nimbus_runs::{
    EventBus, FORGET_CREATES, LockWait, PlannedRun, RunChoices, RunObserver, RunRequest,
    RunSession, timestamp,
};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};

use super::forecast;
use super::summary::{RunAddress, RunSummary};
use super::view::{RunTitle, RunView};
use crate::commands::deployment::local::sandbox_of;
use crate::commands::program::refuse_rehearsed;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::CommandOutput;

/// Everything that one command needs to run a deployment on this machine, put together once.
pub(crate) struct LocalRunner {
    pub(crate) place: DeploymentPlace,
    pub(crate) ports: Arc<RunPorts>,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) cancellation: Cancellation,
    observer: Observer,
    pub(crate) environment: EnvironmentName,
    started: Instant,
}

impl LocalRunner {
    /// `listener` hears units besides whoever watches the run.
    pub(crate) fn open(
        place: DeploymentPlace,
        environment: EnvironmentName,
        choices: RunChoices,
        listener: Option<UnitEvents>,
        context: &CommandContext,
    ) -> Result<Self> {
        let packages = PackagePolicy::Install;
        Self::open_with(place, environment, choices, listener, packages, context)
    }

    /// For a look at projects of somebody else's, which are left as they are: packages that are not there are missing.
    pub(crate) fn open_untouching(
        place: DeploymentPlace,
        environment: EnvironmentName,
        choices: RunChoices,
        context: &CommandContext,
    ) -> Result<Self> {
        let packages = PackagePolicy::LeaveAlone;
        Self::open_with(place, environment, choices, None, packages, context)
    }

    fn open_with(
        place: DeploymentPlace,
        environment: EnvironmentName,
        choices: RunChoices,
        listener: Option<UnitEvents>,
        packages: PackagePolicy,
        context: &CommandContext,
    ) -> Result<Self> {
        if let Some(backend) = &choices.backend {
            refuse_rehearsed(&StateLocation {
                directory: context.directory.clone(),
                backend: Some(backend.clone()),
                // Only its address is looked at.
                granted: StackGrant::default(),
            })?;
        }
        let bus = Arc::new(EventBus::default());
        if !context.output.is_json() {
            bus.observe(Arc::new(EarlyDiagnostics(context.output)));
        }
        let cancellation = Cancellation::new();
        let observer = Observer::default();
        let options = LocalRunOptions {
            sandbox: sandbox_of(&choices.sandbox, context)?,
            orders: rehearsal_orders(&choices.rehearsal)?,
            observer: observer.clone(),
            listener,
            choices,
            packages,
        };
        let ports = local_ports(&place, environment, options, &bus, &cancellation)?;
        Ok(Self {
            place,
            ports: Arc::new(ports),
            bus,
            cancellation,
            observer,
            environment,
            started: Instant::now(),
        })
    }

    /// A request of whoever runs this command.
    pub(crate) fn request(&self, action: RunAction, choices: RunChoices) -> RunRequest {
        let owner = Owner::current("");
        RunRequest {
            action,
            deployment: self.place.deployment.manifest.metadata.id.clone(),
            environment: self.environment,
            rehearsal: self.place.records.is_rehearsal(),
            user: owner.username,
            host: owner.hostname,
            choices,
            manifest: String::new(),
            manifest_parts: BTreeMap::new(),
            plan: String::new(),
        }
    }

    /// Takes the environment, or waits for it.
    pub(crate) async fn session(
        &self,
        request: RunRequest,
        wait: Option<Duration>,
        context: &CommandContext,
    ) -> Result<RunSession> {
        let command = self.command(request.action.as_str(), context);
        let ports = Arc::clone(&self.ports);
        let mut waiting = Waiting::new(context);
        let opened = {
            let mut told = |holder: &LockHolder, left| waiting.tell(holder, left);
            let wait = wait.map(|limit| LockWait {
                limit,
                waiting: &mut told,
            });
            RunSession::open(ports, request, &command, wait).await
        };
        waiting.end();
        opened
    }

    /// How the lock names this command.
    pub(crate) fn command(&self, verb: &str, context: &CommandContext) -> String {
        let id = &self.place.deployment.manifest.metadata.id;
        format!("{} {verb} {id}", context.program)
    }

    pub(crate) fn rehearsal_note(&self, context: &CommandContext) {
        rehearsal_note(self.place.records.is_rehearsal(), context);
    }

    /// Who watches from now on.
    pub(crate) fn watch(
        &self,
        action: RunAction,
        graph: &UnitGraph,
        context: &CommandContext,
    ) -> Arc<RunWatcher> {
        let id = self.place.deployment.manifest.metadata.id.as_str();
        let place = RunAddress {
            deployment: id,
            environment: self.environment,
            rehearsal: self.place.records.is_rehearsal(),
            backend: None,
        };
        let subject = RunTitle::new(action, place);
        let view = RunView::open(context.output, subject, graph);
        let watcher = Arc::new(RunWatcher(Mutex::new(view)));
        self.bus
            .observe(Arc::clone(&watcher) as Arc<dyn RunObserver>);
        watcher
    }

    /// The first signal lets running steps finish and starts nothing; the second ends everything.
    pub(crate) fn listen_to_signals(&self) -> SignalListener {
        let signals = pass_signals_on(self.cancellation.clone(), Arc::clone(&self.bus));
        SignalListener(tokio::spawn(signals))
    }

    /// Carries a planned run out and tells how it ended.
    pub(crate) async fn carry_out(
        self,
        planned: PlannedRun,
        official: bool,
        context: &CommandContext,
    ) -> Result<CommandOutcome> {
        let action = planned.request().action;
        let watcher = self.watch(action, planned.graph(), context);
        let signals = self.listen_to_signals();
        let stop = self.cancellation.stop_token().clone();
        // A run is large, and every command that has one would carry it on its stack.
        let finished = Box::pin(planned.carry_out(Arc::clone(&self.bus), stop)).await;
        drop(signals);
        watcher.end();
        let finished = finished?;
        let prediction = match finished.result {
            // The official command line does not tell what resources depend on.
            RunResult::Succeeded if !official => {
                forecast::predict(&self.observer, self.started, &finished)
            }
            _ => None,
        };
        let request = &finished.record.request;
        let place = RunAddress {
            deployment: request.deployment.as_str(),
            environment: request.environment,
            rehearsal: request.rehearsal,
            backend: request.choices.backend.as_deref(),
        };
        let next = next_step(finished.result, finished.open_creates, place, context);
        let summary = RunSummary::of_run(&finished, prediction, next);
        summary.tell_text(context)?;
        Ok(outcome(finished.result))
    }
}

pub(crate) fn rehearsal_note(rehearsal: bool, context: &CommandContext) {
    if rehearsal {
        let note = "REHEARSAL: a simulated cloud; nothing real is touched";
        context.output.note(note);
    }
}

pub(crate) fn outcome(result: RunResult) -> CommandOutcome {
    match result {
        RunResult::Succeeded => CommandOutcome::Done,
        RunResult::Interrupted => CommandOutcome::Reported(ErrorKind::Cancelled),
        RunResult::Failed | RunResult::RolledBack | RunResult::NeedsAttention => {
            CommandOutcome::Reported(ErrorKind::Failed)
        }
    }
}

/// The command that goes on from where a run was left. `open` says that a unit waits for somebody to look
/// for what it may have created.
pub(crate) fn next_step(
    result: RunResult,
    open: bool,
    place: RunAddress<'_>,
    context: &CommandContext,
) -> Option<String> {
    let RunAddress {
        deployment: id,
        environment,
        rehearsal,
        backend,
    } = place;
    let rehearse = if rehearsal { " --rehearse" } else { "" };
    let flagged = context.server.as_ref().filter(|server| server.by_flag);
    let server = flagged.map(|server| format!(" --server {}", server.url));
    let (program, server) = (context.program, server.unwrap_or_default());
    let words = format!("{id} --environment {environment}{rehearse}{server}");
    // A run that goes on has it in its record; one that begins is told.
    let elsewhere = backend.map(|backend| format!(" --backend {}", shell_word(backend)));
    let elsewhere = elsewhere.unwrap_or_default();
    let resume = format!("{program} resume {words}");
    let rollback = format!("{program} rollback {words}{elsewhere}");
    let deploy = format!("{program} deploy {words}{elsewhere}");
    let look = match (rehearsal, &context.server) {
        (true, _) => "nothing real was created;".to_owned(),
        (false, Some(_)) => {
            "look in the cloud for what may have been created, delete what is there, then"
                .to_owned()
        }
        (false, None) => format!(
            "look in the cloud for what may have been created; `{program} run view {words}` names the command that \
             takes it in; then"
        ),
    };
    match result {
        RunResult::Failed | RunResult::Interrupted if open => {
            Some(format!("{look} `{resume} {FORGET_CREATES}`"))
        }
        // A run that went back is over and cannot be gone on with.
        RunResult::NeedsAttention if open => Some(format!("{look} `{rollback} {FORGET_CREATES}`")),
        RunResult::Succeeded | RunResult::RolledBack => None,
        RunResult::Interrupted => Some(format!("`{resume}` goes on with it")),
        RunResult::Failed => Some(format!(
            "put right what failed, then `{resume}`, or, where that changed the manifest or a configuration file, \
             `{deploy}`; `{rollback}` undoes what it left"
        )),
        RunResult::NeedsAttention => Some(format!(
            "put right what keeps a stack listed above from going back, then `{rollback}` tries again; where \
             one went back with values that no longer hold, `{deploy}` applies its program and those of all \
             that built on it"
        )),
    }
}

/// Shows a run as it happens.
pub(crate) struct RunWatcher(Mutex<RunView>);

impl RunWatcher {
    /// Shows the rest and takes the picture away.
    pub(crate) fn end(&self) {
        self.0.lock().end();
    }
}

impl RunObserver for RunWatcher {
    fn event(&self, event: &RunEvent) {
        self.0.lock().event(event);
    }
}

/// Before there is a picture, warnings and errors of units go to standard error, with the unit's
/// name in front.
struct EarlyDiagnostics(CommandOutput);

impl RunObserver for EarlyDiagnostics {
    fn event(&self, event: &RunEvent) {
        let RunEvent::Diagnostic {
            unit: Some(unit),
            level: DiagnosticLevel::Warning | DiagnosticLevel::Error,
            message,
            ..
        } = event
        else {
            return;
        };
        let lines = message.lines().map(|line| format!("  {unit}: {line}"));
        // In one piece, because others may have something to say at the same time.
        self.0.progress(&lines.collect::<Vec<_>>().join("\n"));
    }
}

/// Listens until it is dropped.
pub(crate) struct SignalListener(tokio::task::JoinHandle<()>);

impl Drop for SignalListener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass_signals_on(cancellation: Cancellation, bus: Arc<EventBus>) {
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
            CancelStage::Stopping => {
                "stopping: running steps finish, nothing starts; once more ends all"
            }
            CancelStage::Killing => "ending everything at once",
        };
        bus.publish(RunEvent::Diagnostic {
            at: timestamp(Timestamp::now()),
            unit: None,
            level: DiagnosticLevel::Warning,
            message: message.to_owned(),
        });
    }
}

/// Tells who holds an environment while somebody waits for it.
pub(crate) struct Waiting<'a> {
    context: &'a CommandContext,
    told: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(context: &'a CommandContext) -> Self {
        Self {
            context,
            told: false,
        }
    }

    pub(crate) fn tell(&mut self, holder: &LockHolder, left: Duration) {
        let output = self.context.output;
        if !self.told {
            let minutes = left.as_secs().div_ceil(60);
            output.note(&format!("Error: State locked by {}", holder.user));
            output.note(&format!(
                "Waiting for lock release... (timeout: {minutes} minutes)"
            ));
        } else if self.draws() && !output.is_quiet() {
            let left = left.as_secs();
            let line = format!("\r{}:{:02} left \u{1b}[K", left / 60, left % 60);
            // There is nowhere left to report that standard error is closed.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        self.told = true;
    }

    pub(crate) fn end(&self) {
        if self.told && self.draws() {
            self.context.output.complain("\r\u{1b}[K");
        }
    }

    fn draws(&self) -> bool {
        let output = self.context.output;
        output.stderr_terminal().interactive && !output.is_json()
    }
}
