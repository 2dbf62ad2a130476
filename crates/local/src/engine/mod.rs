//! A unit on the embedded engine.

mod counts;
mod recovery;
mod restore;
mod stale;
mod time_limit;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{ComponentName, Error, ErrorCode, Result, StackOperation};
use nimbus_engine_backend::{BackendError, EnvironmentVariables, KeyServices, Keyring, passphrase};
use nimbus_engine_model::Snapshot;
use nimbus_engine_operations::{
    Cancellation, EmbeddedEngine, Engine, GivenConfig, NeighbourOutputs, OfficialEngine,
    OperationOptions, OperationReport, OperationRequest, PackagePolicy, PolicyPackRequest,
    Processes, ProgramNetwork, SandboxSettings, StackAccess, StackLocation, StateLocation,
    stack_outputs,
};
use nimbus_engine_ports::{EventSink, ProviderHost};
use nimbus_orchestrator::{
    Fingerprint, FingerprintInput, LookupValue, NetworkAccess, UnitConfigValue,
};
use nimbus_runs::ports::UnitEngine;
use nimbus_runs::{UnitAddress, UnitFailure, UnitJob, UnitOperation, UnitReport};
use nimbus_workspace::{Workspace, add_program};
use serde_json::Value;

use self::counts::{counted, left};
use self::time_limit::{in_time, too_late};
use crate::conversion::{UNKNOWN_TEXT, lookup_values, property_values};
use crate::failures::FailureWatch;
use crate::kept_states::{self, KeptStates};
use crate::sources::reader_of;

/// Who hears what a unit's engine says.
pub type UnitEvents = Arc<dyn Fn(&ComponentName) -> Arc<dyn EventSink> + Send + Sync>;

/// Where and how units run.
pub(crate) struct LocalOptions {
    /// Where states are, and which may be opened; that of a rehearsal must be another than the real one.
    pub(crate) states: StateLocation,
    /// Where passphrases are looked up, and storage that has no address.
    pub(crate) environment: EnvironmentVariables,
    /// Where states of before a run are kept.
    pub(crate) kept: KeptStates,
    /// Stands in for every provider: a rehearsal.
    pub(crate) simulated: Option<Arc<dyn ProviderHost>>,
    /// Skip type-checking of TypeScript.
    pub(crate) transpile_only: bool,
    /// Who may be asked for keys of secrets.
    pub(crate) services: KeyServices,
    /// Variables of providers, and of programs that run without a sandbox; those of this process without any.
    pub(crate) variables: Option<BTreeMap<String, String>>,
    /// Steps of one unit at once.
    pub(crate) parallel: Option<usize>,
    /// Believe a look that finds much of what is recorded gone.
    pub(crate) allow_mass_removal: bool,
    /// Rules that every unit is held to when it is previewed or deployed.
    pub(crate) policy_packs: Vec<PolicyPackRequest>,
    /// What becomes of packages that programs lack.
    pub(crate) packages: PackagePolicy,
    /// What commands about this deployment and environment end with, for whoever runs them on this machine; `None` where
    /// that is somebody else.
    pub(crate) by_hand: Option<String>,
}

/// Runs units on this machine.
pub(crate) struct LocalEngine {
    options: LocalOptions,
    events: UnitEvents,
    cancellation: Cancellation,
    /// One for all units, so that they share what can be shared.
    keyring: Arc<Keyring>,
    processes: Arc<Processes>,
    workspace: Workspace,
    /// How programs are kept from everything else; `None`: not at all.
    sandbox: Option<SandboxSettings>,
    /// An installed `pulumi` carries operations out, as far as it can.
    official: Option<OfficialEngine>,
}

impl LocalEngine {
    pub(crate) fn new(
        options: LocalOptions,
        workspace: Workspace,
        events: UnitEvents,
        cancellation: Cancellation,
    ) -> Self {
        let mut processes = match &options.simulated {
            Some(simulated) => Processes::simulating(Arc::clone(simulated)),
            None => Processes::new(),
        };
        if let Some(variables) = &options.variables {
            let own = variables.iter();
            processes =
                processes.with_variables(own.map(|(name, value)| (name.into(), value.into())));
        }
        Self {
            events,
            cancellation,
            keyring: Keyring::new(options.environment.clone(), options.services.clone()),
            processes: Arc::new(processes),
            options,
            workspace,
            sandbox: None,
            official: None,
        }
    }

    /// Lets an installed `pulumi` carry operations out. What only the embedded engine can do, such
    /// as bringing a recorded state back, it still does.
    pub(crate) fn official(mut self, official: bool) -> Self {
        self.official = official.then(|| {
            OfficialEngine::with_keys(Arc::clone(&self.keyring))
                .simulating(self.options.simulated.clone())
        });
        self
    }

    /// Shares providers of these packages between units in different folders, instead of those
    /// that were reviewed for it.
    pub(crate) fn sharing(mut self, packages: Option<Vec<String>>) -> Self {
        if let Some(packages) = packages {
            let processes = self.processes.as_ref().clone();
            self.processes = Arc::new(processes.sharing(packages));
        }
        self
    }

    /// The keys to the units' secrets.
    pub(crate) fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring)
    }

    /// Runs every unit's program in a sandbox.
    pub(crate) fn sandboxed(mut self, sandbox: Option<SandboxSettings>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Where a unit's state is.
    fn location(&self, unit: &UnitAddress) -> StackLocation {
        let states = self.options.states.clone();
        StackLocation {
            directory: self.workspace.stack_source(&unit.component),
            ..states.stack(unit.stack.to_string())
        }
    }

    async fn recorded(&self, location: &StackLocation) -> Result<Option<Snapshot>> {
        let access = self.access(location).await?;
        match access.stack().load(&access.keyring).await {
            Ok(loaded) => Ok(loaded.snapshot),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is nothing of a unit: no state, and no journal of an operation that died before it wrote
    /// one. The first operation of a stack leaves such a journal without a state, and what it made is in
    /// there alone.
    async fn is_untouched(&self, location: &StackLocation) -> Result<bool> {
        if self.recorded(location).await?.is_some() {
            return Ok(false);
        }
        let access = self.access(location).await?;
        Ok(access.stack().interrupted().await?.is_none())
    }

    /// Rules say what may be made. What takes away or goes back is not held up by them.
    fn policy_packs(&self, operation: UnitOperation) -> Vec<PolicyPackRequest> {
        match StackOperation::from(operation) {
            StackOperation::Update => self.options.policy_packs.clone(),
            StackOperation::Destroy
            | StackOperation::Refresh
            | StackOperation::Import
            | StackOperation::Restore => Vec::new(),
        }
    }

    /// A stack may say for itself what its program reaches.
    fn sandbox_of(&self, job: &UnitJob) -> Option<SandboxSettings> {
        let mut sandbox = self.sandbox.clone()?;
        match job.network {
            Some(NetworkAccess::None) => sandbox.network = ProgramNetwork::None,
            Some(NetworkAccess::Full) => sandbox.network = ProgramNetwork::Full,
            None => {}
        }
        Some(sandbox)
    }

    async fn access(&self, location: &StackLocation) -> Result<StackAccess> {
        StackAccess::with_keys(location, &self.keyring).await
    }

    fn engine(&self, request: &OperationRequest, job: &UnitJob) -> Box<dyn Engine> {
        let only_ours = matches!(
            request.operation,
            StackOperation::Restore | StackOperation::Import
        ) || request.options.clear_pending_creates;
        if let Some(official) = self.official.as_ref().filter(|_| !only_ours) {
            return Box::new(official.clone().given(given(&job.config)));
        }
        let engine = self.embedded(job);
        Box::new(match request.operation {
            StackOperation::Update => engine.part_of_deployment(neighbours(job)),
            StackOperation::Destroy
            | StackOperation::Refresh
            | StackOperation::Import
            | StackOperation::Restore => engine,
        })
    }

    fn embedded(&self, job: &UnitJob) -> EmbeddedEngine {
        let keyring = Arc::clone(&self.keyring);
        let processes = Arc::clone(&self.processes) as _;
        EmbeddedEngine::with_keys(keyring, processes).given(given(&job.config))
    }

    /// Runs one operation of the engine. What all operations of this run have in common is added to
    /// `asked`.
    async fn operate(
        &self,
        job: &UnitJob,
        operation: StackOperation,
        asked: OperationOptions,
    ) -> Result<OperationEffects, UnitFailure> {
        let mut request = OperationRequest {
            location: self.location(&job.unit),
            operation,
            options: OperationOptions {
                parallel: self.options.parallel,
                allow_mass_removal: self.options.allow_mass_removal,
                transpile_only: self.options.transpile_only,
                policy_packs: self.policy_packs(job.operation),
                packages: self.options.packages,
                sandbox: self.sandbox_of(job),
                ..asked
            },
        };
        let recovered = self.recover(&mut request, job).await;
        recovered.map_err(UnitFailure::of_recovery)?;
        request.options.refresh |= job.look_first && job.operation == UnitOperation::Deploy;
        let engine = self.engine(&request, job);
        let watch = FailureWatch::new((self.events)(&job.unit.component));
        let audience = Arc::clone(&watch) as Arc<dyn EventSink>;
        let cancellation = self.cancellation.child();
        let running = engine.run(&request, audience, &cancellation);
        let (ended, late) = in_time(running, job.limit, &cancellation).await;
        let failed = |error: Error| match late.filter(|_| !self.cancellation.is_stopping()) {
            Some(limit) => too_late(&job.unit.component, limit, &error),
            None => UnitFailure {
                trigger: watch.trigger(&error),
                ..UnitFailure::from(in_words_of_a_run(error, watch.said(), job))
            },
        };
        let mut report = ended.map_err(failed)?;
        match std::mem::replace(&mut report.result, Ok(())) {
            Ok(()) => Ok(OperationEffects {
                report,
                steps: watch.steps(),
                resources: self.recorded_resources(&request).await,
            }),
            Err(error) => Err(UnitFailure {
                changes: counted(report.changes),
                resources: self.recorded_resources(&request).await,
                ..failed(error)
            }),
        }
    }
}

#[async_trait]
impl UnitEngine for LocalEngine {
    async fn run(&self, job: &UnitJob) -> Result<UnitReport, UnitFailure> {
        let location = self.location(&job.unit);
        let mut options = OperationOptions::default();
        let operation = match job.operation {
            UnitOperation::Preview => {
                options.dry_run = true;
                StackOperation::Update
            }
            UnitOperation::Deploy => {
                // Before the engine starts: a rollback has to find it even if nothing else of this
                // run survives.
                let access = self.access(&location).await?;
                self.settle(job, &access).await?;
                let kept = &self.options.kept;
                kept.keep(job.run, &job.unit.unit, &access.stack()).await?;
                StackOperation::Update
            }
            UnitOperation::Destroy if self.is_untouched(&location).await? => {
                return Ok(UnitReport::default());
            }
            UnitOperation::Destroy => StackOperation::Destroy,
            UnitOperation::Refresh if self.is_untouched(&location).await? => {
                return Ok(UnitReport::default());
            }
            UnitOperation::Refresh => StackOperation::Refresh,
            UnitOperation::Restore(point) => {
                return match self.restore_target(job, point).await? {
                    Some(target) => self.put_back(job, target).await,
                    // It failed before it was touched.
                    None => {
                        self.refuse_unfinished(&location).await?;
                        Ok(UnitReport::default())
                    }
                };
            }
        };
        Ok(self.operate(job, operation, options).await?.into())
    }

    async fn outputs(&self, unit: &UnitAddress) -> Result<Option<BTreeMap<String, LookupValue>>> {
        let recorded = self.recorded(&self.location(unit)).await?;
        Ok(recorded.map(|snapshot| lookup_values(&stack_outputs(&snapshot))))
    }

    async fn state_version(&self, unit: &UnitAddress) -> Result<Option<String>> {
        let access = self.access(&self.location(unit)).await?;
        match access.stack().load_unverified().await {
            Ok(found) => Ok(Some(found.version.to_string())),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn history_length(&self, unit: &UnitAddress) -> Result<usize> {
        let access = self.access(&self.location(unit)).await?;
        let versions = access.stack().history().await?;
        Ok(versions.last().map_or(0, |version| version.number))
    }

    /// One passphrase protects all units, so it is tried on the first that has secrets.
    async fn ready(&self, units: &[UnitAddress]) -> Result<()> {
        passphrase(self.keyring.environment())?;
        for unit in units {
            let access = self.access(&self.location(unit)).await?;
            let bytes = match access.stack().export().await {
                Ok(bytes) => bytes,
                Err(BackendError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if kept_states::try_secrets(&bytes, &access.keyring)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn versions(&self) -> BTreeMap<String, String> {
        let engine = if self.options.simulated.is_some() {
            "rehearsal"
        } else {
            "embedded"
        };
        let nimbus = format!("{} {engine}", env!("CARGO_PKG_VERSION"));
        let sandbox = self.sandbox.as_ref();
        let packs = self.options.policy_packs.iter();
        let packs = packs.map(|pack| pack_version(pack, sandbox));
        packs.chain([("nimbus".to_owned(), nimbus)]).collect()
    }
}

/// A policy pack by its name and everything in it: what passed under other rules is looked at again.
fn pack_version(pack: &PolicyPackRequest, sandbox: Option<&SandboxSettings>) -> (String, String) {
    let name = pack.folder.file_name().unwrap_or_default();
    let digest = pack_digest(&pack.folder, pack.config.as_deref(), sandbox);
    (format!("policy pack {}", name.display()), digest)
}

/// A digest over a policy pack and its configuration.
pub(crate) fn pack_digest(
    folder: &Path,
    config: Option<&Path>,
    sandbox: Option<&SandboxSettings>,
) -> String {
    let mut content = Fingerprint::default();
    // A pack that cannot be read is refused with its reason when it is started.
    let read = std::path::absolute(folder).is_ok_and(|folder| {
        reader_of(&folder, sandbox)
            .is_ok_and(|files| add_program(&mut content, &files, &folder).is_ok())
    });
    if let Some(Ok(config)) = config.map(std::fs::read) {
        content.add(FingerprintInput::Config("policies".to_owned()), config);
    }
    format!("{} {read}", content.digest())
}

/// What came of an operation, and what it did to which resource.
struct OperationEffects {
    report: OperationReport,
    steps: BTreeMap<String, String>,
    /// How many there are now, as it is recorded: what a program only reads is among them, and is no step each time.
    resources: Option<u64>,
}

impl From<OperationEffects> for UnitReport {
    fn from(operation: OperationEffects) -> Self {
        let OperationEffects {
            report,
            steps,
            resources,
        } = operation;
        Self {
            steps,
            outputs: lookup_values(&report.outputs),
            resources: resources.unwrap_or_else(|| left(&report.changes)),
            changes: counted(report.changes),
            seconds: report.duration.as_secs_f64().ceil() as u64,
            stale: Vec::new(),
        }
    }
}

/// The engine's advice is for a program that is run by itself. Whoever runs a deployment goes on
/// with the run, which looks up what the engine would not touch.
fn in_words_of_a_run(error: Error, said: Option<String>, job: &UnitJob) -> Error {
    match error.code() {
        ErrorCode::PROGRAM_ENDED_IN_ERROR => match said {
            Some(said) if !is_explained(&error) => {
                program_failed(&error, &said, &job.unit.component)
            }
            Some(_) | None => error,
        },
        ErrorCode::OUTCOMES_UNKNOWN => error.with_help("`nimbus resume` looks them up"),
        ErrorCode::STEPS_FAILED if error.help().is_some() => {
            error.with_help("what goes on with the run or undoes it looks up what really happened")
        }
        ErrorCode::MASS_REMOVAL => error.with_help(
            "check the credentials; if they are really gone, `nimbus refresh` with \
             --allow-mass-removal records it",
        ),
        _ => error,
    }
}

/// Whether the engine says, in the last line, what the sandbox kept the program from: that helps more than the program's words.
fn is_explained(error: &Error) -> bool {
    let last = error.message().lines().next_back().unwrap_or_default();
    last.contains("sandbox") || last.contains("without network")
}

/// Why a program failed is what it said; that it ended is not. The advice of Pulumi's SDKs about a value that is missing is for a
/// stack's own file, which a deployment does not read.
fn program_failed(error: &Error, said: &str, component: &ComponentName) -> Error {
    let message = format!("the program failed: {}", cause_line(said));
    let told = Error::new(error.code(), message);
    if said.contains("Missing required configuration variable") {
        return told.with_help(format!(
            "give it a value in the manifest, under spec.stacks.{component}.config, or keep it with `nimbus secret set` and \
             name it there as {{secret: NAME}}"
        ));
    }
    told
}

/// The line of a program's complaint that says what is wrong: the last of a Python traceback, else the first that announces
/// nothing.
fn cause_line(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let found = match said.contains("Traceback (most recent call last)") {
        true => lines.next_back(),
        false => lines.find(|line| !line.ends_with(':')),
    };
    found.unwrap_or(said)
}

fn neighbours(job: &UnitJob) -> NeighbourOutputs {
    let named = job.neighbours.iter().map(|(stack, outputs)| {
        let name = (stack.project.clone(), stack.stack.clone());
        (name, property_values(outputs))
    });
    named.collect()
}

/// What is unknown reaches the program as the protocol's own word for it.
fn given(config: &BTreeMap<String, UnitConfigValue>) -> GivenConfig {
    let mut given = GivenConfig::default();
    for (key, value) in config {
        match value {
            UnitConfigValue::Known { value, secret } => {
                given.set(key.as_str(), value.clone(), *secret);
            }
            UnitConfigValue::Unknown => given.set(key.as_str(), Value::from(UNKNOWN_TEXT), false),
        }
    }
    given
}
