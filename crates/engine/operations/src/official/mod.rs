//! The official command line as an engine.
//!
//! It is driven the way its own libraries for programs drive it: without a terminal, with an event
//! log that is followed while it grows. Backend, locks and state are its own, which are ours too,
//! so a stack can be continued by either engine. Secrets reach it encrypted in files or in its
//! environment, never in its arguments.
//!
//! In a rehearsal it attaches to the simulated cloud, which this process serves to it.
//!
//! What it does not know must not be lost: a journal that the embedded engine left behind is
//! settled by that engine first.

mod arguments;
mod cli;
mod copy;
mod events;
mod follow;
mod outcome;
mod reap;
mod simulated_providers;
mod tokens;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::Project;
use nimbus_engine_backend::{
    BackendError, DeclaredSecrets, Environment, Keyring, Owner, PASSPHRASE, PASSPHRASE_FILE, Stack,
    StackSecrets,
};
use nimbus_engine_model::{PropertyMap, PropertyValue, ROOT_STACK_TYPE, Snapshot, Urn};
use nimbus_engine_ports::{EngineEvent, EventSink, FailureCause, ProviderHost, Severity, Summary};
use nimbus_engine_process::{ChildProcess, CodeIsolation, CodeOrigin, Exit, Pump, Signal, Tail};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::broadcast::BroadcastSink;
use crate::cancel::Cancellation;
use crate::engine::Engine;
use crate::given::GivenConfig;
use crate::notices;
use crate::redact;
use crate::report::OperationReport;
use crate::request::{OperationAction, OperationMode, OperationRequest};
use crate::spans;
use crate::stacks::stack_outputs;
use crate::unknown::refuse_unknown;
use crate::workspace::{BACKEND_VARIABLE, StackWorkspace, backend_address};

use arguments::CliLocation;
use cli::OfficialCli;
use copy::WorkspaceCopy;
use events::Logged;
use follow::LineReader;
use outcome::{ObservedOperation, outcome};
use simulated_providers::SimulatedProviders;

/// How often the event log is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long pipes and clean-ups may take after the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Carries operations out with an installed `pulumi`. Clones share what was found out about it.
#[derive(Clone)]
pub struct OfficialEngine {
    cli: Arc<OnceCell<OfficialCli>>,
    keyring: Arc<Keyring>,
    given: Option<GivenConfig>,
    /// Stands in for every plugin.
    simulated: Option<Arc<dyn ProviderHost>>,
}

impl OfficialEngine {
    pub fn new() -> Self {
        Self::with(Environment::process())
    }

    pub fn with(environment: Environment) -> Self {
        Self::with_keys(Keyring::new(environment))
    }

    /// Shares keys with others, so that each is derived only once.
    pub fn with_keys(keyring: Arc<Keyring>) -> Self {
        Self {
            cli: Arc::default(),
            keyring,
            given: None,
            simulated: None,
        }
    }

    /// With providers that are not plugins, as in a rehearsal. The program is the real one.
    pub fn simulating(mut self, providers: Option<Arc<dyn ProviderHost>>) -> Self {
        self.simulated = providers;
        self
    }

    /// Gives every run this configuration, whatever the stack's file says.
    pub fn given(mut self, config: GivenConfig) -> Self {
        self.given = Some(config);
        self
    }
}

impl Default for OfficialEngine {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Engine for OfficialEngine {
    async fn run(
        &self,
        request: &OperationRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<OperationReport> {
        spans::operation(request, self.carry_out(request, events, cancellation)).await
    }
}

impl OfficialEngine {
    async fn carry_out(
        &self,
        request: &OperationRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<OperationReport> {
        let environment = self.keyring.environment();
        let directory = &request.location.directory;
        let find = || OfficialCli::find(environment, directory);
        let cli = self.cli.get_or_try_init(find).await?;
        let workspace = StackWorkspace::open(&request.location, &self.keyring, None).await?;
        let run = OfficialOperation {
            request,
            environment,
            given: self.given.as_ref(),
            simulated: self.simulated.as_ref(),
            cli,
            workspace: &workspace,
            events: Arc::new(BroadcastSink::new(vec![events])),
            cancellation,
            started: Instant::now(),
        };
        run.hide_secrets()?;
        run.carry_out().await
    }
}

/// One operation under way.
struct OfficialOperation<'a> {
    request: &'a OperationRequest,
    environment: &'a Environment,
    given: Option<&'a GivenConfig>,
    simulated: Option<&'a Arc<dyn ProviderHost>>,
    cli: &'a OfficialCli,
    workspace: &'a StackWorkspace,
    events: Arc<dyn EventSink>,
    cancellation: &'a Cancellation,
    started: Instant,
}

/// What a child left when it had gone.
struct ExitedChild {
    exit: Exit,
    seen: ObservedOperation,
    written: String,
    killed: bool,
    summary: Option<Summary>,
    /// Outputs of the stack as events told them.
    outputs: PropertyMap,
}

impl OfficialOperation<'_> {
    /// Whatever the configuration has of secrets is hidden wherever it turns up.
    fn hide_secrets(&self) -> Result<()> {
        let config = match self.given {
            Some(given) => given.resolved(),
            None => self.workspace.config()?,
        };
        redact::hide_config(&config);
        Ok(())
    }

    async fn carry_out(&self) -> Result<OperationReport> {
        let stack = self.workspace.access.stack();
        let recorded = self.prepare(&stack).await?;
        let made = recorded.is_none();
        let recorded = recorded.unwrap_or_default();
        let secrets = self.secrets(&recorded)?;
        // Its words are better than those of the official command line.
        secrets.crypter().map_err(Error::from)?;
        let copy = self.copy(&secrets)?;
        let stage = self.stage(&recorded).await?;
        if made {
            stack.create(self.owner()).await?;
        }
        let ended = self.run_child(copy.as_ref(), stage.as_ref()).await;
        if made && self.request.mode == OperationMode::Preview {
            self.unmake(&stack).await?;
        }
        self.report(&stack, ended?).await
    }

    /// The recorded state; `None` when the stack is still to be made.
    async fn prepare(&self, stack: &Stack) -> Result<Option<Snapshot>> {
        let recorded = match stack.load(&self.workspace.access.keyring).await {
            Ok(loaded) => loaded.snapshot.unwrap_or_default(),
            Err(BackendError::NotFound { .. })
                if self.request.action == OperationAction::Update =>
            {
                if self.request.mode == OperationMode::Preview {
                    notices::new_stack(self.events.as_ref(), &self.workspace.access.name);
                }
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        match (self.request.mode, stack.interrupted().await?) {
            (_, None) => {}
            (OperationMode::Preview, Some(report)) => {
                notices::interrupted(self.events.as_ref(), &report);
            }
            (OperationMode::Apply, Some(report)) => {
                return Err(
                    Error::new(ErrorCode::OUTCOMES_UNKNOWN, notices::describe(&report)).with_help(
                        "its journal is known to the embedded engine only: run `nimbus program \
                         refresh --engine embedded` first",
                    ),
                );
            }
        }
        if self.request.mode == OperationMode::Apply {
            refuse_unknown(self.request, &recorded)?;
        }
        Ok(Some(recorded))
    }

    fn secrets(&self, recorded: &Snapshot) -> Result<StackSecrets> {
        // A configuration that is given comes with no key of its own, see the embedded engine.
        let declared = match self.given {
            Some(_) => DeclaredSecrets::Nothing,
            None => self.workspace.settings.secrets()?,
        };
        let keyring = &self.workspace.access.keyring;
        let provider = recorded.secrets_provider.clone();
        Ok(StackSecrets::declared(keyring, &declared, provider))
    }

    /// A program that runs under its own name, with its own settings, runs where it is.
    fn copy(&self, secrets: &StackSecrets) -> Result<Option<WorkspaceCopy>> {
        let project = &self.workspace.project;
        let own = Project::find(&self.request.location.directory)?;
        let stack = self.workspace.access.name.stack();
        match self.given {
            Some(given) => WorkspaceCopy::make(project, stack, given, secrets).map(Some),
            None if own.name == project.name => Ok(None),
            None => {
                let message = format!(
                    "the official command line runs {} only under its own name, not as {}",
                    own.name, project.name
                );
                Err(Error::new(ErrorCode::OFFICIAL_CLI_UNSUPPORTED, message)
                    .with_help("name the stack alone, or use `--engine embedded`"))
            }
        }
    }

    /// The simulated cloud of a rehearsal.
    async fn stage(&self, recorded: &Snapshot) -> Result<Option<SimulatedProviders>> {
        let Some(host) = self.simulated else {
            return Ok(None);
        };
        let project = &self.workspace.project;
        let needs_program = self.request.needs_program();
        let stage = SimulatedProviders::set(host, project, recorded, needs_program).await?;
        Ok(Some(stage))
    }

    async fn run_child(
        &self,
        copy: Option<&WorkspaceCopy>,
        stage: Option<&SimulatedProviders>,
    ) -> Result<ExitedChild> {
        let scratch = simulated_providers::empty_folder()?;
        let log = scratch.path().join("events.json");
        let directory = match copy {
            Some(copy) => copy.directory(),
            None => self.workspace.project.directory(),
        };
        let stack = self.workspace.access.name.to_string();
        let place = CliLocation {
            directory,
            stack: &stack,
            config: copy.map(WorkspaceCopy::config),
            log: &log,
        };
        let arguments = arguments::arguments(self.request, &place)?;
        let mark = Uuid::new_v4().to_string();
        let mut command = self.command(directory)?;
        command.args(&arguments).env(reap::MARK, &mark);
        if let Some(stage) = stage {
            stage.lead(&mut command);
        }
        let ended = self.follow(command, &log).await;
        // Plugins of a child that was killed do not know that nobody needs them any more.
        let marked = tokio::task::spawn_blocking(move || reap::kill_marked(&mark));
        let _ = marked.await;
        let ended = ended?;
        if ended.killed {
            self.cancel(directory, &stack).await?;
        }
        Ok(ended)
    }

    fn command(&self, directory: &Path) -> Result<Command> {
        let mut command = Command::new(&self.cli.program);
        surroundings(&mut command, self.environment);
        let project = Some(&self.workspace.project);
        let backend = backend_address(&self.request.location, project, self.environment)?;
        command
            .current_dir(directory)
            .env(BACKEND_VARIABLE, backend)
            .env("PULUMI_SKIP_UPDATE_CHECK", "true")
            // Without it there is no --event-log.
            .env("PULUMI_DEBUG_COMMANDS", "true");
        if self.request.options.transpile_only {
            command.env("PULUMI_NODEJS_TRANSPILE_ONLY", "true");
        }
        Ok(command)
    }

    /// Passes events on until the child has gone.
    async fn follow(&self, command: Command, log: &Path) -> Result<ExitedChild> {
        let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
        let started = ChildProcess::start(command, origin)
            .await
            .map_err(|error| {
                let message = format!("{} cannot be started: {error}", self.cli.program.display());
                Error::new(ErrorCode::OFFICIAL_CLI_UNUSABLE, message).with_source(error)
            })?;
        let tail = Arc::new(Tail::default());
        let mut pumps = [
            // What people would see is told by the events.
            Pump::start(started.stdout, |_| ()),
            Pump::start(started.stderr, {
                let tail = Arc::clone(&tail);
                move |line| tail.push(line)
            }),
        ];
        let process = started.process;
        let mut logged = EventLogState::default();
        let mut follower = LineReader::new(log);
        let (exit, killed) = self.watch(&process, &mut follower, &mut logged).await;
        for pump in &mut pumps {
            pump.drain(PATIENCE).await;
        }
        logged.take(&mut follower, self.events.as_ref());
        Ok(ExitedChild {
            exit,
            seen: logged.seen,
            written: tail.text(),
            killed,
            summary: logged.summary,
            outputs: logged.outputs,
        })
    }

    /// How it ended, and whether we killed it.
    async fn watch(
        &self,
        process: &ChildProcess,
        follower: &mut LineReader,
        logged: &mut EventLogState,
    ) -> (Exit, bool) {
        let mut asked = false;
        loop {
            tokio::select! {
                exit = process.ended() => return (exit, false),
                () = self.cancellation.killed() => {
                    process.signal(Signal::SIGKILL);
                    return (process.ended().await, true);
                }
                () = self.cancellation.stop_token().cancelled(), if !asked => {
                    // Once: it takes a second one for an order to drop everything.
                    process.signal(Signal::SIGINT);
                    asked = true;
                }
                () = tokio::time::sleep(GLANCE) => logged.take(follower, self.events.as_ref()),
            }
        }
    }

    /// Frees the stack of a child that was killed and cannot do it itself.
    async fn cancel(&self, directory: &Path, stack: &str) -> Result<()> {
        let mut command = self.command(directory)?;
        command.args(["cancel", "--yes", "--non-interactive", "--stack", stack]);
        if let Ok(started) = ChildProcess::start(command, CodeOrigin::Operators).await {
            let _drained = [
                Pump::start(started.stdout, |_| ()),
                Pump::start(started.stderr, |_| ()),
            ];
            // If it cannot, the lock stays and says who left it.
            let _ = tokio::time::timeout(PATIENCE, started.process.ended()).await;
        }
        Ok(())
    }

    async fn unmake(&self, stack: &Stack) -> Result<()> {
        let keyring = &self.workspace.access.keyring;
        Ok(stack.remove(false, self.owner(), keyring).await?)
    }

    async fn report(&self, stack: &Stack, ended: ExitedChild) -> Result<OperationReport> {
        let stopped = self.cancellation.is_stopping();
        let result = outcome(ended.exit, &ended.seen, &ended.written, stopped);
        let summary = ended.summary.unwrap_or_else(|| Summary {
            is_preview: self.request.mode == OperationMode::Preview,
            duration: self.started.elapsed(),
            changes: Default::default(),
            maybe_corrupt: ended.killed,
            succeeded: false,
            policy_packs: Default::default(),
        });
        let changes = summary.changes.clone();
        if stopped {
            self.events.emit(EngineEvent::Cancelled);
        }
        self.events.emit(EngineEvent::Summary(Summary {
            succeeded: result.is_ok(),
            ..summary
        }));
        let mut report = OperationReport {
            result,
            changes,
            outputs: PropertyMap::new(),
            unknown: Vec::new(),
            recovered: Vec::new(),
            version: None,
            duration: self.started.elapsed(),
        };
        match self.request.mode {
            OperationMode::Preview => report.outputs = unblanked(ended.outputs),
            OperationMode::Apply => {
                let loaded = stack.load(&self.workspace.access.keyring).await?;
                let snapshot = loaded.snapshot.unwrap_or_default();
                report.outputs = stack_outputs(&snapshot);
                report.unknown = snapshot.pending_operations;
                report.version = Some(loaded.version);
            }
        }
        Ok(report)
    }

    fn owner(&self) -> Owner {
        Owner::current(&self.request.command())
    }
}

/// What the event log has said so far.
#[derive(Default)]
struct EventLogState {
    seen: ObservedOperation,
    /// Kept until the exit code is known.
    summary: Option<Summary>,
    outputs: PropertyMap,
    /// Of resources, by what their errors say. The log has no cause of its own.
    causes: HashMap<Urn, FailureCause>,
}

impl EventLogState {
    fn take(&mut self, follower: &mut LineReader, events: &dyn EventSink) {
        for line in follower.lines() {
            let Logged::Event(event) = events::parse(&line) else {
                continue;
            };
            self.seen.note(&event);
            match event {
                EngineEvent::Summary(summary) => self.summary = Some(summary),
                // What is wrong with a resource is said before that its step failed.
                EngineEvent::Diagnostic(said) => {
                    if let Some(urn) = said
                        .urn
                        .as_ref()
                        .filter(|_| said.severity == Severity::Error)
                    {
                        let cause = FailureCause::of_provider_text(&said.message);
                        self.causes.insert(urn.clone(), cause);
                    }
                    events.emit(EngineEvent::Diagnostic(said));
                }
                EngineEvent::ResourceFailed { step, planning, .. } => {
                    let cause = self.causes.get(&step.urn).copied().unwrap_or_default();
                    events.emit(EngineEvent::ResourceFailed {
                        step,
                        planning,
                        cause,
                    });
                }
                EngineEvent::ResourceOutputs { step, planning } => {
                    if let Some(new) = step.new.as_ref().filter(|new| is_root(&new.type_)) {
                        self.outputs = new.outputs.clone();
                    }
                    events.emit(EngineEvent::ResourceOutputs { step, planning });
                }
                event => events.emit(event),
            }
        }
    }
}

fn is_root(type_: &str) -> bool {
    type_ == ROOT_STACK_TYPE
}

/// Secrets are blank in events: what they are is not known before the state tells.
fn unblanked(outputs: PropertyMap) -> PropertyMap {
    let known = |(key, value): (String, PropertyValue)| {
        let value = match value {
            PropertyValue::Secret(_) => PropertyValue::secret(PropertyValue::Computed),
            other => other,
        };
        (key, value)
    };
    outputs.into_iter().map(known).collect()
}

/// The variables of this process as the engine sees them, without Nimbus' own, which may open more
/// than a program should.
fn surroundings(command: &mut Command, environment: &Environment) {
    command.env_clear();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let always = ["PATH", "HOME", "PULUMI_HOME", PASSPHRASE, PASSPHRASE_FILE];
    let all = names.chain(always.map(str::to_owned));
    for name in all.filter(|name| !name.starts_with("NIMBUS_")) {
        if let Some(value) = environment.get(&name) {
            command.env(name, value);
        }
    }
}
