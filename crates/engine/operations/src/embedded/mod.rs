//! The engine of this process.
//!
//! An operation that changes something holds the stack's session from before it reads the state
//! until its new state is written: lease, journal and checkpoint belong together. A preview holds
//! nothing and writes nothing. Whatever goes wrong on the way, processes end and the lease is given
//! back; what was recorded stays recorded.

mod begin;
mod finish;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_backend::{
    Keyring, Owner, SessionRequest, StackSecrets, StackSession, StateVersion, UpdateKind,
};
use nimbus_engine_deploy::{
    DeploymentOptions, DeploymentOutcome, DeploymentSpec, RandomIds, SystemClock,
};
use nimbus_engine_model::{REDACTED, Snapshot};
use nimbus_engine_ports::{DeploymentContext, EngineEvent, EventSink, Journal};

use crate::broadcast::BroadcastSink;
use crate::cancel::Cancellation;
use crate::engine::Engine;
use crate::given::GivenConfig;
use crate::import::ImportScope;
use crate::notices;
use crate::plan;
use crate::redact;
use crate::report::OperationReport;
use crate::request::OperationRequest;
use crate::restore::RecordedProgram;
use crate::runtime::{OperationRuntime, RuntimeLauncher, RuntimeSetup};
use crate::scratch::NoJournal;
use crate::spans;
use crate::stacks::{BackendStacks, NeighbourOutputs};
use crate::unknown::refuse_unknown;
use crate::unmarked::WatchedProgram;
use crate::workspace::StackWorkspace;

pub struct EmbeddedEngine {
    keyring: Arc<Keyring>,
    launcher: Arc<dyn RuntimeLauncher>,
    given: Option<ResolvedConfig>,
    neighbours: Option<NeighbourOutputs>,
}

impl EmbeddedEngine {
    /// With keys that other operations use too.
    pub fn with_keys(keyring: Arc<Keyring>, launcher: Arc<dyn RuntimeLauncher>) -> Self {
        Self {
            keyring,
            launcher,
            given: None,
            neighbours: None,
        }
    }

    /// Gives every run this configuration, whatever the stack's file says.
    pub fn given(self, config: GivenConfig) -> Self {
        self.given_resolved(config.resolved())
    }

    /// Runs as one stack of a deployment. Other stacks of it have these outputs, whatever is recorded;
    /// what the project declares completes the configuration that is given; and a secret that the
    /// program uses without its mark is marked.
    pub fn part_of_deployment(mut self, neighbours: NeighbourOutputs) -> Self {
        self.neighbours = Some(neighbours);
        self
    }

    /// Gives every run the configuration that a stack's file was resolved to.
    pub fn given_resolved(mut self, config: ResolvedConfig) -> Self {
        self.given = Some(config);
        self
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn run(
        &self,
        request: &OperationRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<OperationReport> {
        Box::pin(spans::operation(
            request,
            self.carry_out(request, events, cancellation),
        ))
        .await
    }
}

impl EmbeddedEngine {
    async fn carry_out(
        &self,
        request: &OperationRequest,
        events: Arc<dyn EventSink>,
        cancellation: &Cancellation,
    ) -> Result<OperationReport> {
        let workspace = StackWorkspace::open(
            &request.location,
            &self.keyring,
            request.options.sandbox.as_ref(),
        )
        .await?;
        let config = match &self.given {
            Some(given) if self.neighbours.is_some() => workspace.completed(given)?,
            Some(given) => given.clone(),
            None => workspace.config()?,
        };
        redact::hide_config(&config);
        let told = Arc::new(BroadcastSink::new(vec![events]));
        let run = EmbeddedOperation {
            request,
            workspace: &workspace,
            config: &config,
            config_is_given: self.given.is_some(),
            neighbours: self.neighbours.as_ref(),
            launcher: self.launcher.as_ref(),
            events: Arc::clone(&told) as Arc<dyn EventSink>,
            told,
            cancellation,
            started: Instant::now(),
        };
        match request.options.dry_run {
            true => run.preview().await,
            false => run.apply().await,
        }
    }
}

/// One operation under way.
struct EmbeddedOperation<'a> {
    request: &'a OperationRequest,
    workspace: &'a StackWorkspace,
    config: &'a ResolvedConfig,
    /// Then the stack's file is not this run's to change either.
    config_is_given: bool,
    /// Of the deployment that this is part of, if it is.
    neighbours: Option<&'a NeighbourOutputs>,
    launcher: &'a dyn RuntimeLauncher,
    events: Arc<dyn EventSink>,
    /// The same, which learns what is secret.
    told: Arc<BroadcastSink>,
    cancellation: &'a Cancellation,
    started: Instant,
}

/// The state that an operation starts from.
struct StartState {
    snapshot: Snapshot,
    /// `None` before the stack's first operation.
    version: Option<StateVersion>,
    secrets: Arc<StackSecrets>,
}

impl EmbeddedOperation<'_> {
    async fn preview(&self) -> Result<OperationReport> {
        let stack = self.workspace.access.stack();
        self.tell_others(&stack).await?;
        let start = self.look(&stack).await?;
        let outcome = self.operate(&start, Arc::new(NoJournal)).await?;
        if let (Some(path), Some(plan)) = (&self.request.options.save_plan, &outcome.plan) {
            let seal = self.seal(&start)?;
            plan::save(path, plan, &seal, Timestamp::now(), start.secrets.as_ref())?;
        }
        Ok(self.report(outcome, Vec::new(), None))
    }

    async fn apply(&self) -> Result<OperationReport> {
        let stack = self.workspace.access.stack();
        let owner = Owner::current(&self.request.command());
        let keyring = &self.workspace.access.keyring;
        let declared = self.declared_secrets()?;
        self.try_keys(StackSecrets::declared(keyring, &declared, None).into())
            .await?;
        if self.creates_stacks() && !stack.exists().await? {
            stack.create(owner.clone()).await?;
        }
        let session = stack
            .begin(SessionRequest {
                kind: self.kind(),
                owner,
                keyring: Arc::clone(&self.workspace.access.keyring),
                secrets: self.declared_secrets()?,
                expected: None,
            })
            .await?;
        let recovered = session.recovered().to_vec();
        notices::recovered(self.events.as_ref(), &recovered);
        match self.apply_under(&session).await {
            Ok(SessionEnd::Done(outcome)) => self.finish(session, *outcome, recovered).await,
            Ok(SessionEnd::Killed) => Ok(self.killed(session, recovered).await),
            Err(error) => {
                // What was recorded, if anything, stays in the journal.
                session.end().await?;
                Err(error)
            }
        }
    }

    async fn apply_under(&self, session: &StackSession) -> Result<SessionEnd> {
        let start = StartState {
            snapshot: session.snapshot().cloned().unwrap_or_default(),
            version: Some(session.version()),
            secrets: Arc::clone(session.secrets()),
        };
        self.try_keys(Arc::clone(&start.secrets)).await?;
        // After the session has settled what was left, which may have made acts known that nobody saw
        // the end of; and before any process starts.
        refuse_unknown(self.request, &start.snapshot)?;
        let operate = self.operate(&start, session.journal());
        tokio::select! {
            outcome = operate => Ok(SessionEnd::Done(Box::new(outcome?))),
            // Neither of these writes a state: the journal knows what was done, and whoever comes next
            // builds it from there.
            () = self.cancellation.killed() => Ok(SessionEnd::Killed),
            holder = session.lease().lost() => {
                let message = format!("{holder} took over the stack while this was running");
                Err(Error::new(ErrorCode::LEASE_LOST, message))
            }
        }
    }

    /// Refuses keys that do not fit before anything changes: whatever an act brings that is secret
    /// has to be written down after it. A destroy brings nothing.
    async fn try_keys(&self, secrets: Arc<StackSecrets>) -> Result<()> {
        let only_takes = self.request.operation == StackOperation::Destroy;
        if secrets.provider().is_none() || (only_takes && !self.request.options.run_program) {
            return Ok(());
        }
        let opened = tokio::task::spawn_blocking(move || secrets.crypter().map(drop));
        let failed =
            |error| Error::new(ErrorCode::INTERNAL, "a key was not tried").with_source(error);
        Ok(opened.await.map_err(failed)??)
    }

    /// Launches the runtime, runs the deployment and tears the runtime down, whatever happens.
    async fn operate(
        &self,
        start: &StartState,
        journal: Arc<dyn Journal>,
    ) -> Result<DeploymentOutcome> {
        let options = self.options(start)?;
        let context = self.context();
        self.told.hide_state(&start.snapshot);
        self.events.emit(EngineEvent::Prelude {
            config: shown_config(self.config),
        });
        let tools = self
            .launcher
            .set_up(RuntimeSetup {
                request: self.request,
                workspace: self.workspace,
                config: self.config,
                tags: self.tags().await?,
                context: context.clone(),
                stacks: Arc::new(BackendStacks {
                    backend: self.workspace.access.backend.clone(),
                    keyring: Arc::clone(&self.workspace.access.keyring),
                    project: self.workspace.project.name.clone(),
                    others: self.request.options.readable_projects(),
                    neighbours: self.neighbours.cloned(),
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

    /// Only policy packs see them, so nobody else waits for the storage.
    async fn tags(&self) -> Result<BTreeMap<String, String>> {
        if self.request.options.policy_packs.is_empty() {
            return Ok(BTreeMap::new());
        }
        Ok(self.workspace.access.stack().tags().await?)
    }

    async fn deploy(
        &self,
        tools: &dyn OperationRuntime,
        start: &StartState,
        journal: Arc<dyn Journal>,
        options: DeploymentOptions,
        context: &DeploymentContext,
    ) -> Result<DeploymentOutcome> {
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
        let program = || {
            let message = "an operation was set up without its program";
            let missing = || Error::new(ErrorCode::INTERNAL, message);
            let program = tools.program().ok_or_else(missing)?;
            Ok::<_, Error>(match self.neighbours {
                Some(_) => WatchedProgram::around(program, self.config),
                None => program,
            })
        };
        let runs_program = self.request.options.run_program;
        Ok(match self.request.operation {
            StackOperation::Update => nimbus_engine_deploy::update(spec, program()?).await,
            StackOperation::Destroy if runs_program => {
                nimbus_engine_deploy::destroy_with_program(spec, program()?).await
            }
            StackOperation::Destroy => nimbus_engine_deploy::destroy(spec).await,
            StackOperation::Restore => {
                let message = "a restore was asked for without its state";
                let missing = || Error::new(ErrorCode::INTERNAL, message);
                let target = self.request.options.restore_to.as_deref();
                let target = target.ok_or_else(missing)?;
                if target.resources.is_empty() {
                    nimbus_engine_deploy::destroy(spec).await
                } else {
                    let recorded = RecordedProgram::new(target.clone());
                    nimbus_engine_deploy::update(spec, Arc::new(recorded)).await
                }
            }
            StackOperation::Refresh if runs_program => {
                nimbus_engine_deploy::refresh_with_program(spec, program()?).await
            }
            StackOperation::Refresh => nimbus_engine_deploy::refresh(spec).await,
            StackOperation::Import => {
                let packages = tools.packages();
                let imports =
                    ImportScope { context, packages }.specs(&self.request.options.imports)?;
                nimbus_engine_deploy::import(spec, imports).await
            }
        })
    }

    fn kind(&self) -> UpdateKind {
        self.request.operation.into()
    }

    /// Whether a stack that does not exist is made, rather than missed.
    fn creates_stacks(&self) -> bool {
        match self.request.operation {
            StackOperation::Update | StackOperation::Import => true,
            StackOperation::Destroy | StackOperation::Refresh | StackOperation::Restore => false,
        }
    }
}

/// How the work under a session ended.
enum SessionEnd {
    Done(Box<DeploymentOutcome>),
    Killed,
}

fn shown_config(config: &ResolvedConfig) -> BTreeMap<String, String> {
    let entries = config.values.iter();
    entries
        .map(|(key, value)| {
            let secret = config.secret_keys.contains(key);
            let shown = if secret { REDACTED } else { value };
            (key.clone(), shown.to_owned())
        })
        .collect()
}
