//! The engine of this process.
//!
//! An operation that changes something holds the stack's session from before it reads the state
//! until its new state is written: lease, journal and checkpoint belong together. A preview holds
//! nothing and writes nothing. Whatever goes wrong on the way, processes end and the lease is given
//! back; what was recorded stays recorded.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_backend::{
    BackendError, Environment, Keyring, ORGANIZATION, Owner, RecoveryReport, Session,
    SessionRequest, Stack, StackSecrets, StateVersion, UpdateInfo, UpdateKind, UpdateResult,
};
use nimbus_engine_deploy::{
    DeployError, DeploymentSpec, Options, Outcome, Plan, RandomIds, SystemClock, Targets,
};
use nimbus_engine_model::secrets::Crypter;
use nimbus_engine_model::{OperationKind, REDACTED, Snapshot};
use nimbus_engine_ports::{DeploymentContext, EngineEvent, EventSink, Journal};

use crate::bench::{Setup, Tools, Workbench};
use crate::cancel::Cancellation;
use crate::engine::Engine;
use crate::fan::EventFan;
use crate::given::GivenConfig;
use crate::import::ImportScope;
use crate::plan::{self, Seal};
use crate::processes::Processes;
use crate::redact;
use crate::report::RunReport;
use crate::request::{Action, Choice, Mode, RunRequest};
use crate::restore::Recorded;
use crate::scratch::NoJournal;
use crate::stacks::{BackendStacks, stack_outputs};
use crate::tell;
use crate::workspace::Workspace;

/// Steps at once, per processor: most of them wait for a network.
const STEPS_PER_CPU: usize = 4;

pub struct EmbeddedEngine {
    environment: Environment,
    workbench: Arc<dyn Workbench>,
    given: Option<GivenConfig>,
}

impl EmbeddedEngine {
    /// Works with real processes and this process's environment.
    pub fn new() -> Self {
        Self::with(Environment::process(), Arc::new(Processes::new()))
    }

    pub fn with(environment: Environment, workbench: Arc<dyn Workbench>) -> Self {
        Self {
            environment,
            workbench,
            given: None,
        }
    }

    /// Gives every run this configuration, whatever the stack's file says.
    pub fn given(mut self, config: GivenConfig) -> Self {
        self.given = Some(config);
        self
    }
}

impl Default for EmbeddedEngine {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn run(
        &self,
        request: &RunRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<RunReport> {
        let workspace = Workspace::open(&request.location, &self.environment).await?;
        let config = match &self.given {
            Some(given) => given.resolved(),
            None => workspace.config()?,
        };
        for key in &config.secret_keys {
            config
                .values
                .get(key)
                .into_iter()
                .for_each(|text| redact::hide(text));
        }
        let run = Run {
            request,
            workspace: &workspace,
            config: &config,
            config_is_given: self.given.is_some(),
            workbench: self.workbench.as_ref(),
            events: Arc::new(EventFan::new(vec![events])),
            cancellation,
            started: Instant::now(),
        };
        match request.mode {
            Mode::Preview => run.preview().await,
            Mode::Apply => run.apply().await,
        }
    }
}

/// One operation under way.
struct Run<'a> {
    request: &'a RunRequest,
    workspace: &'a Workspace,
    config: &'a ResolvedConfig,
    /// Then the stack's file is not this run's to change either.
    config_is_given: bool,
    workbench: &'a dyn Workbench,
    events: Arc<dyn EventSink>,
    cancellation: &'a Cancellation,
    started: Instant,
}

/// The state that an operation starts from.
struct Start {
    snapshot: Snapshot,
    /// `None` before the stack's first operation.
    version: Option<StateVersion>,
    secrets: Arc<StackSecrets>,
}

impl Run<'_> {
    async fn preview(&self) -> Result<RunReport> {
        let stack = self.workspace.access.stack();
        self.tell_others(&stack).await?;
        let start = self.look(&stack).await?;
        let outcome = self.operate(&start, Arc::new(NoJournal)).await?;
        if let (Some(path), Some(plan)) = (&self.request.options.save_plan, &outcome.plan) {
            let seal = self.seal(start.version.as_ref())?;
            plan::save(path, plan, &seal, Timestamp::now(), start.secrets.as_ref())?;
        }
        Ok(self.report(outcome, Vec::new(), None))
    }

    async fn apply(&self) -> Result<RunReport> {
        let stack = self.workspace.access.stack();
        let owner = Owner::current(&format!("nimbus program {}", self.verb()));
        if self.creates_stacks() && !stack.exists().await? {
            stack.create(owner.clone()).await?;
        }
        let session = stack
            .begin(SessionRequest {
                kind: self.kind(),
                owner,
                keyring: Arc::clone(&self.workspace.access.keyring),
                salt: self.workspace.settings.salt()?.map(str::to_owned),
                expected: None,
            })
            .await?;
        let recovered = session.recovered().to_vec();
        tell::recovered(self.events.as_ref(), &recovered);
        match self.apply_under(&session).await {
            Ok(Applied::Done(outcome)) => self.finish(session, *outcome, recovered).await,
            Ok(Applied::Killed) => Ok(self.killed(session, recovered).await),
            Err(error) => {
                // Nothing was recorded, so there is nothing to write either.
                session.end().await?;
                Err(error)
            }
        }
    }

    async fn apply_under(&self, session: &Session) -> Result<Applied> {
        let start = Start {
            snapshot: session.snapshot().cloned().unwrap_or_default(),
            version: Some(session.version()),
            secrets: Arc::clone(session.secrets()),
        };
        self.refuse_unknown(&start.snapshot)?;
        let operate = self.operate(&start, session.journal());
        tokio::select! {
            outcome = operate => Ok(Applied::Done(Box::new(outcome?))),
            () = self.cancellation.killed() => Ok(Applied::Killed),
            holder = session.lease().lost() => {
                let message = format!("{holder} took over the stack while this was running");
                Err(Error::new(ErrorCode::LEASE_LOST, message))
            }
        }
    }

    /// Sets the bench up, runs the deployment and clears the bench away, whatever happens.
    async fn operate(&self, start: &Start, journal: Arc<dyn Journal>) -> Result<Outcome> {
        let options = self.options(start)?;
        let context = self.context();
        self.events.emit(EngineEvent::Prelude {
            config: shown_config(self.config),
        });
        let tools = self
            .workbench
            .set_up(Setup {
                request: self.request,
                workspace: self.workspace,
                config: self.config,
                context: context.clone(),
                stacks: Arc::new(BackendStacks {
                    backend: self.workspace.access.backend.clone(),
                    keyring: Arc::clone(&self.workspace.access.keyring),
                    project: self.workspace.project.name.clone(),
                }),
                events: Arc::clone(&self.events),
                cancellation: self.cancellation,
            })
            .await?;
        let outcome = self
            .deploy(tools.as_ref(), start, journal, options, &context)
            .await;
        tools.tear_down().await;
        outcome
    }

    async fn deploy(
        &self,
        tools: &dyn Tools,
        start: &Start,
        journal: Arc<dyn Journal>,
        options: Options,
        context: &DeploymentContext,
    ) -> Result<Outcome> {
        let spec = DeploymentSpec {
            project: context.project.clone(),
            stack: context.stack.clone(),
            organization: context.organization.clone(),
            base: start.snapshot.clone(),
            host: tools.host(),
            journal,
            events: Arc::clone(&self.events),
            hooks: tools.hooks(),
            analyzers: tools.analyzers(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            cancel: self.cancellation.stop_token().clone(),
            options,
        };
        Ok(match &self.request.action {
            Action::Update => match tools.program() {
                Some(program) => nimbus_engine_deploy::update(spec, program).await,
                None => {
                    let message = "an update was set up without its program";
                    return Err(Error::new(ErrorCode::INTERNAL, message));
                }
            },
            Action::Destroy => nimbus_engine_deploy::destroy(spec).await,
            Action::Restore(snapshot) if snapshot.resources.is_empty() => {
                nimbus_engine_deploy::destroy(spec).await
            }
            Action::Restore(snapshot) => {
                let recorded = Recorded::new(snapshot.as_ref().clone());
                nimbus_engine_deploy::update(spec, Arc::new(recorded)).await
            }
            Action::Refresh => nimbus_engine_deploy::refresh(spec).await,
            Action::Import(items) => {
                let packages = tools.packages();
                let imports = ImportScope { context, packages }.specs(items)?;
                nimbus_engine_deploy::import(spec, imports).await
            }
        })
    }

    fn options(&self, start: &Start) -> Result<Options> {
        let asked = &self.request.options;
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Options {
            parallel: asked.parallel.unwrap_or(cpus * STEPS_PER_CPU),
            dry_run: self.request.mode == Mode::Preview,
            continue_on_error: asked.continue_on_error,
            refresh: asked.refresh || self.workspace.project.refresh_always,
            targets: chosen(&asked.targets),
            excludes: chosen(&asked.excludes),
            replace_targets: asked.replace.clone(),
            plan: self.plan(start)?,
            generate_plan: asked.save_plan.is_some(),
            base_serial: serial(start.version.as_ref()),
            allow_mass_removal: asked.allow_mass_removal,
            ..Options::default()
        })
    }

    /// The plan that this run is held to, if what it was made for is still there.
    fn plan(&self, start: &Start) -> Result<Option<Plan>> {
        let Some(path) = &self.request.options.plan else {
            return Ok(None);
        };
        let seal = self.seal(start.version.as_ref())?;
        let crypter: &dyn Crypter = start.secrets.as_ref();
        Ok(Some(plan::load(path, &seal, crypter)?))
    }

    fn seal(&self, version: Option<&StateVersion>) -> Result<Seal> {
        let options = &self.request.options;
        let file = options.plan.as_ref().or(options.save_plan.as_ref());
        let root = self.workspace.project.directory();
        let program = plan::program_digest(root, file.map(|path| path.as_path()));
        let program = program.map_err(|error| {
            let message = format!("the files of {} cannot be read: {error}", root.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
        })?;
        Ok(Seal {
            project: self.workspace.project.name.clone(),
            stack: self.workspace.access.name.stack().to_owned(),
            state: serial(version),
            config: plan::text_digest(&self.config.encrypted.to_json().to_string()),
            program,
        })
    }

    fn context(&self) -> DeploymentContext {
        let parallel = self.request.options.parallel.unwrap_or(0);
        DeploymentContext {
            project: self.workspace.project.name.clone(),
            stack: self.workspace.access.name.stack().to_owned(),
            organization: ORGANIZATION.to_owned(),
            config: self.config.values.clone(),
            config_secret_keys: self.config.secret_keys.clone(),
            dry_run: self.request.mode == Mode::Preview,
            parallel: i32::try_from(parallel).unwrap_or(i32::MAX),
            monitor_endpoint: String::new(),
        }
    }

    /// Reads the state without holding anything. A stack that does not exist yet is empty.
    async fn look(&self, stack: &Stack) -> Result<Start> {
        let keyring = &self.workspace.access.keyring;
        let loaded = match stack.load(keyring).await {
            Ok(loaded) => Some(loaded),
            Err(BackendError::NotFound { .. }) if self.creates_stacks() => None,
            Err(error) => return Err(error.into()),
        };
        let version = loaded.as_ref().map(|loaded| loaded.version);
        let snapshot = loaded
            .and_then(|loaded| loaded.snapshot)
            .unwrap_or_default();
        let secrets = self.secrets(keyring, &snapshot)?;
        Ok(Start {
            snapshot,
            version,
            secrets,
        })
    }

    fn secrets(&self, keyring: &Arc<Keyring>, snapshot: &Snapshot) -> Result<Arc<StackSecrets>> {
        let salt = self.workspace.settings.salt()?;
        Ok(Arc::new(match salt {
            Some(salt) => StackSecrets::with_salt(keyring, Some(salt)),
            None => StackSecrets::new(keyring, snapshot.secrets_provider.clone()),
        }))
    }

    /// A preview shows the state as it is written down; whoever is changing it, or died changing
    /// it, knows more.
    async fn tell_others(&self, stack: &Stack) -> Result<()> {
        match stack.holder().await? {
            Some(holder) if !is_dead(&holder.owner) => tell::held(self.events.as_ref(), &holder),
            Some(_) | None => {
                if let Some(report) = stack.interrupted().await? {
                    tell::interrupted(self.events.as_ref(), &report);
                }
            }
        }
        Ok(())
    }

    fn refuse_unknown(&self, snapshot: &Snapshot) -> Result<()> {
        let asked = &self.request.options;
        let looks_up = asked.refresh || self.request.action == Action::Refresh;
        if snapshot.pending_operations.is_empty() || looks_up || asked.allow_unknown {
            return Ok(());
        }
        let list: Vec<String> = snapshot
            .pending_operations
            .iter()
            .map(|operation| format!("{} {}", operation.kind.as_str(), operation.resource.urn))
            .collect();
        let message = format!("nobody knows what became of {}", list.join(", "));
        Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(
            "`nimbus program refresh` looks them up; --allow-unknown leaves the question open",
        ))
    }

    async fn finish(
        &self,
        session: Session,
        mut outcome: Outcome,
        recovered: Vec<RecoveryReport>,
    ) -> Result<RunReport> {
        // Without its journal an operation does not know what it may write.
        if let Err(DeployError::Journal(_)) = &outcome.result {
            let _ = session.end().await;
            return Ok(self.report(outcome, recovered, None));
        }
        self.forget_cleared(session.snapshot(), &mut outcome);
        let secrets = Arc::clone(session.secrets());
        let update = self.history(&outcome);
        let saved = session.finish(outcome.snapshot.clone(), &update).await;
        let version = match saved {
            Ok(finished) => {
                tell::findings(self.events.as_ref(), &finished.findings);
                Some(finished.version)
            }
            Err(error) => {
                let failed = not_saved(error, &outcome);
                let mut report = self.report(outcome, recovered, None);
                report.result = Err(failed);
                return Ok(report);
            }
        };
        self.keep_salt(&secrets)?;
        Ok(self.report(outcome, recovered, version))
    }

    /// Creates of unknown outcome that somebody has looked for, in vain.
    fn forget_cleared(&self, base: Option<&Snapshot>, outcome: &mut Outcome) {
        if !self.request.options.clear_pending_creates || outcome.result.is_err() {
            return;
        }
        let before = base
            .map(|base| base.pending_operations.as_slice())
            .unwrap_or_default();
        outcome.snapshot.pending_operations.retain(|operation| {
            operation.kind != OperationKind::Creating || !before.contains(operation)
        });
    }

    /// The first secret of a stack brings a salt, which belongs into its settings.
    fn keep_salt(&self, secrets: &StackSecrets) -> Result<()> {
        if self.config_is_given {
            // The state itself carries the salt.
            return Ok(());
        }
        if let Some(salt) = secrets.created_salt() {
            let mut settings = self.workspace.settings.clone();
            settings.set_salt(&salt)?;
            settings.save()?;
        }
        Ok(())
    }

    /// Everything was ended at once. The journal stays, and the next command settles it.
    async fn killed(&self, session: Session, recovered: Vec<RecoveryReport>) -> RunReport {
        let _ = session.end().await;
        let message = "killed; what was running has an unknown outcome";
        RunReport {
            result: Err(Error::new(ErrorCode::CANCELLED, message)
                .with_help("the next command on this stack says what is known and what is not")),
            changes: Default::default(),
            outputs: Default::default(),
            unknown: Vec::new(),
            recovered,
            version: None,
            duration: self.started.elapsed(),
        }
    }

    fn history(&self, outcome: &Outcome) -> UpdateInfo {
        let now = Timestamp::now();
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        let count = |(op, count): (&nimbus_engine_model::StepOp, &usize)| {
            (op.to_string(), i64::try_from(*count).unwrap_or(i64::MAX))
        };
        UpdateInfo {
            kind: self.kind(),
            start_time: now.as_second() - elapsed,
            message: self.request.options.message.clone(),
            environment: Some(Default::default()),
            config: self.config.encrypted.to_json(),
            version: 0,
            result: match outcome.result {
                Ok(()) => UpdateResult::Succeeded,
                Err(_) => UpdateResult::Failed,
            },
            end_time: now.as_second(),
            resource_changes: Some(outcome.changes.iter().map(count).collect()),
        }
    }

    fn report(
        &self,
        outcome: Outcome,
        recovered: Vec<RecoveryReport>,
        version: Option<StateVersion>,
    ) -> RunReport {
        RunReport {
            outputs: stack_outputs(&outcome.snapshot),
            result: outcome.result.map_err(Error::from),
            changes: outcome.changes,
            unknown: outcome.unknown,
            recovered,
            version,
            duration: self.started.elapsed(),
        }
    }

    fn kind(&self) -> UpdateKind {
        match self.request.action {
            Action::Update | Action::Restore(_) => UpdateKind::Update,
            Action::Destroy => UpdateKind::Destroy,
            Action::Refresh => UpdateKind::Refresh,
            Action::Import(_) => UpdateKind::ResourceImport,
        }
    }

    /// The word for it on the command line.
    fn verb(&self) -> &'static str {
        match self.request.action {
            Action::Update => "up",
            Action::Destroy => "destroy",
            Action::Refresh => "refresh",
            Action::Import(_) => "import",
            Action::Restore(_) => "restore",
        }
    }

    /// Whether a stack that does not exist is made, rather than missed.
    fn creates_stacks(&self) -> bool {
        match self.request.action {
            Action::Update | Action::Import(_) => true,
            Action::Destroy | Action::Refresh | Action::Restore(_) => false,
        }
    }
}

/// How the work under a session ended.
enum Applied {
    Done(Box<Outcome>),
    Killed,
}

/// Whether the holder of a lease was a process of this machine and is gone.
fn is_dead(owner: &Owner) -> bool {
    owner.hostname == Owner::current("").hostname && !owner.is_running_here()
}

fn chosen(choice: &Choice) -> Targets {
    Targets {
        patterns: choice.patterns.clone(),
        dependents: choice.dependents,
    }
}

fn serial(version: Option<&StateVersion>) -> String {
    version.map_or_else(|| "none".to_owned(), ToString::to_string)
}

fn shown_config(config: &ResolvedConfig) -> std::collections::BTreeMap<String, String> {
    let entries = config.values.iter();
    entries
        .map(|(key, value)| {
            let secret = config.secret_keys.contains(key);
            let shown = if secret { REDACTED } else { value };
            (key.clone(), shown.to_owned())
        })
        .collect()
}

fn not_saved(error: BackendError, outcome: &Outcome) -> Error {
    let error = Error::from(error);
    let how = if outcome.result.is_ok() {
        "succeeded"
    } else {
        "failed"
    };
    let message = format!("the operation {how}, but its state could not be saved: {error}");
    Error::new(ErrorCode::STATE_NOT_SAVED, message)
        .with_help("remove the cause; the next command builds the state from the journal")
        .with_source(error)
}
