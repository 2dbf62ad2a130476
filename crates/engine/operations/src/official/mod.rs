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
mod child;
mod cli;
mod copy;
mod events;
mod follow;
mod outcome;
mod reap;
mod simulated_providers;
mod tokens;

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_backend::project::Project;
use nimbus_engine_backend::{
    BackendError, DeclaredSecrets, EnvironmentVariables, Keyring, Owner, PASSPHRASE,
    PASSPHRASE_FILE, Stack, StackSecrets,
};
use nimbus_engine_model::{PropertyMap, PropertyValue, Snapshot};
use nimbus_engine_ports::{EngineEvent, EventSink, ProviderHost, Summary};
use tokio::sync::OnceCell;

use crate::broadcast::BroadcastSink;
use crate::cancel::Cancellation;
use crate::engine::Engine;
use crate::given::GivenConfig;
use crate::notices;
use crate::redact;
use crate::report::OperationReport;
use crate::request::OperationRequest;
use crate::spans;
use crate::stacks::stack_outputs;
use crate::unknown::refuse_unknown;
use crate::workspace::StackWorkspace;

use child::ExitedChild;
use cli::OfficialCli;
use copy::WorkspaceCopy;
use outcome::outcome;
use simulated_providers::SimulatedProviders;

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
    environment: &'a EnvironmentVariables,
    given: Option<&'a GivenConfig>,
    simulated: Option<&'a Arc<dyn ProviderHost>>,
    cli: &'a OfficialCli,
    workspace: &'a StackWorkspace,
    events: Arc<dyn EventSink>,
    cancellation: &'a Cancellation,
    started: Instant,
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
        if made && self.request.options.dry_run {
            self.unmake(&stack).await?;
        }
        self.report(&stack, ended?).await
    }

    /// The recorded state; `None` when the stack is still to be made.
    async fn prepare(&self, stack: &Stack) -> Result<Option<Snapshot>> {
        let recorded = match stack.load(&self.workspace.access.keyring).await {
            Ok(loaded) => loaded.snapshot.unwrap_or_default(),
            Err(BackendError::NotFound { .. })
                if self.request.operation == StackOperation::Update =>
            {
                if self.request.options.dry_run {
                    notices::new_stack(self.events.as_ref(), &self.workspace.access.name);
                }
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        match (self.request.options.dry_run, stack.interrupted().await?) {
            (_, None) => {}
            (true, Some(report)) => {
                notices::interrupted(self.events.as_ref(), &report);
            }
            (false, Some(report)) => {
                return Err(
                    Error::new(ErrorCode::OUTCOMES_UNKNOWN, notices::describe(&report)).with_help(
                        "its journal is known to the embedded engine only: run `nimbus program \
                         refresh --engine embedded` first",
                    ),
                );
            }
        }
        if !self.request.options.dry_run {
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

    async fn unmake(&self, stack: &Stack) -> Result<()> {
        let keyring = &self.workspace.access.keyring;
        Ok(stack.remove(false, self.owner(), keyring).await?)
    }

    async fn report(&self, stack: &Stack, ended: ExitedChild) -> Result<OperationReport> {
        let stopped = self.cancellation.is_stopping();
        let result = outcome(ended.exit, &ended.seen, &ended.written, stopped);
        let summary = ended.summary.unwrap_or_else(|| Summary {
            is_preview: self.request.options.dry_run,
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
        if self.request.options.dry_run {
            report.outputs = unblanked(ended.outputs);
        } else {
            let loaded = stack.load(&self.workspace.access.keyring).await?;
            let snapshot = loaded.snapshot.unwrap_or_default();
            report.outputs = stack_outputs(&snapshot);
            report.unknown = snapshot.pending_operations;
            report.version = Some(loaded.version);
        }
        Ok(report)
    }

    fn owner(&self) -> Owner {
        Owner::current(&self.request.command())
    }
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
fn surroundings(command: &mut Command, environment: &EnvironmentVariables) {
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
