//! A unit on the embedded engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_core::{ComponentName, Error, ErrorCode, Result, StackOperation};
use nimbus_engine_backend::{
    BackendError, DeclaredSecrets, Environment, Keyring, Owner, SessionRequest, UpdateKind,
    passphrase,
};
use nimbus_engine_model::{OperationKind, Snapshot, StepOp, Urn};
use nimbus_engine_operations::{
    Cancellation, EmbeddedEngine, Engine, GivenConfig, NeighbourOutputs, OfficialEngine,
    OperationAction, OperationMode, OperationReport, OperationRequest, PolicyPackRequest,
    Processes, ProgramNetwork, RunOptions, SandboxSettings, StackAccess, StackLocation,
    announce_recovery, stack_outputs,
};
use nimbus_engine_ports::{EventSink, ProviderHost};
use nimbus_orchestrator::{
    Fingerprint, FingerprintInput, LookupValue, NetworkAccess, RollbackTrigger, UnitConfigValue,
};
use nimbus_runs::ports::UnitEngine;
use nimbus_runs::{
    Recovery, RestorePoint, UnitAddress, UnitFailure, UnitJob, UnitOperation, UnitReport,
};
use nimbus_workspace::{Workspace, add_program};
use serde_json::Value;

use crate::conversion::{UNKNOWN_TEXT, lookup_values, property_values};
use crate::failures::FailureWatch;
use crate::kept_states::{self, KeptStates};
use crate::sources::reader_of;

/// Who hears what a unit's engine says.
pub type UnitEvents = Arc<dyn Fn(&ComponentName) -> Arc<dyn EventSink> + Send + Sync>;

/// Where and how units run.
pub(crate) struct LocalOptions {
    /// Address of the state; that of a rehearsal must be another than the real one.
    pub(crate) backend: String,
    /// Where passphrases are looked up, and storage that has no address.
    pub(crate) environment: Environment,
    /// Where states of before a run are kept.
    pub(crate) kept: KeptStates,
    /// Stands in for every provider: a rehearsal.
    pub(crate) simulated: Option<Arc<dyn ProviderHost>>,
    /// Skip type-checking of TypeScript.
    pub(crate) transpile_only: bool,
    /// Variables of providers, and of programs that run without a sandbox; those of this process without any.
    pub(crate) variables: Option<BTreeMap<String, String>>,
    /// Steps of one unit at once.
    pub(crate) parallel: Option<usize>,
    /// Believe a look that finds much of what is recorded gone.
    pub(crate) allow_mass_removal: bool,
    /// Rules that every unit is held to when it is previewed or deployed.
    pub(crate) policy_packs: Vec<PolicyPackRequest>,
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
            keyring: Keyring::new(options.environment.clone()),
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

    fn location(&self, unit: &UnitAddress) -> StackLocation {
        StackLocation {
            directory: self.workspace.stack_source(&unit.component),
            stack: unit.stack.to_string(),
            backend: Some(self.options.backend.clone()),
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
        let config = given(&job.config);
        let only_ours = matches!(
            request.action,
            OperationAction::Restore(_) | OperationAction::Import(_)
        ) || request.options.clear_pending_creates;
        if let Some(official) = self.official.as_ref().filter(|_| !only_ours) {
            return Box::new(official.clone().given(config));
        }
        let keyring = Arc::clone(&self.keyring);
        let processes = Arc::clone(&self.processes) as _;
        let engine = EmbeddedEngine::with_keys(keyring, processes).given(config);
        Box::new(match request.action {
            OperationAction::Update => engine.part_of_deployment(neighbours(job)),
            OperationAction::Destroy
            | OperationAction::Refresh
            | OperationAction::Import(_)
            | OperationAction::Restore(_) => engine,
        })
    }

    /// Runs one operation of the engine.
    async fn operate(
        &self,
        job: &UnitJob,
        action: OperationAction,
        mode: OperationMode,
    ) -> Result<OperationEffects, UnitFailure> {
        let location = self.location(&job.unit);
        let options = RunOptions {
            parallel: self.options.parallel,
            allow_mass_removal: self.options.allow_mass_removal,
            transpile_only: self.options.transpile_only,
            policy_packs: self.policy_packs(job.operation),
            sandbox: self.sandbox_of(job),
            ..self
                .recovery_options(job.recovery, &location, &action, mode)
                .await?
        };
        let mut request = OperationRequest {
            location,
            action,
            mode,
            options,
        };
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
                error: in_words_of_a_run(error),
            },
        };
        let mut report = ended.map_err(failed)?;
        match std::mem::replace(&mut report.result, Ok(())) {
            Ok(()) => Ok(OperationEffects {
                report,
                steps: watch.steps(),
            }),
            Err(error) => Err(failed(error)),
        }
    }

    /// What an interrupted operation left open is looked up; what undoes looks by itself, for it comes
    /// right after a failure. Creates are refused until a person has looked: a refresh finds one only
    /// where its object is known by its name, and the operation that goes on without it makes another.
    async fn recovery_options(
        &self,
        recovery: Recovery,
        location: &StackLocation,
        action: &OperationAction,
        mode: OperationMode,
    ) -> Result<RunOptions> {
        let mut options = RunOptions::default();
        let undoes = matches!(
            action,
            OperationAction::Restore(_) | OperationAction::Destroy
        );
        if mode == OperationMode::Preview || !(recovery.look_up || undoes) {
            return Ok(options);
        }
        let open = self.unfinished(location).await?;
        if open.is_empty() {
            return Ok(options);
        }
        options.refresh = true;
        options.clear_pending_creates = recovery.forget_creates;
        let creates: Vec<_> = open
            .iter()
            .filter(|(kind, _)| *kind == OperationKind::Creating)
            .map(|(_, urn)| urn.to_string())
            .collect();
        if creates.is_empty() || recovery.forget_creates {
            return Ok(options);
        }
        let message = format!(
            "nobody knows whether these were created: {}",
            creates.join(", ")
        );
        Err(Error::new(ErrorCode::OUTCOMES_UNKNOWN, message).with_help(
            "look for them in the cloud; import what is there with `nimbus program import`, then \
             run `nimbus resume` with --forget-creates",
        ))
    }

    /// Brings a state up to date with the journal of an operation that died. What is kept of a unit
    /// before a run has to have all that is there, or going back would delete what that operation
    /// made.
    async fn settle(&self, job: &UnitJob, access: &StackAccess) -> Result<()> {
        let stack = access.stack();
        if stack.interrupted().await?.is_none() {
            return Ok(());
        }
        let request = SessionRequest {
            kind: UpdateKind::Update,
            owner: Owner::current("nimbus deploy"),
            keyring: Arc::clone(&access.keyring),
            secrets: DeclaredSecrets::Nothing,
            expected: None,
        };
        let session = stack.begin(request).await?;
        announce_recovery(
            (self.events)(&job.unit.component).as_ref(),
            session.recovered(),
        );
        Ok(session.end().await?)
    }

    /// Acts of earlier operations whose outcome nobody knows.
    async fn unfinished(&self, location: &StackLocation) -> Result<Vec<(OperationKind, Urn)>> {
        let access = self.access(location).await?;
        let stack = access.stack();
        if !stack.exists().await? {
            return Ok(Vec::new());
        }
        let recorded = stack.load_unverified().await?.snapshot.unwrap_or_default();
        let pending = recorded.pending_operations.into_iter();
        let mut open: Vec<_> = pending
            .map(|operation| (operation.kind, operation.resource.urn.clone()))
            .collect();
        if let Some(report) = stack.interrupted().await? {
            open.extend(report.unknown.into_iter().map(|act| (act.kind, act.urn)));
        }
        Ok(open)
    }

    /// Returns a unit to a recorded state and looks whether that is what is there now.
    async fn put_back(&self, job: &UnitJob, target: Snapshot) -> Result<UnitReport, UnitFailure> {
        let location = self.location(&job.unit);
        // It did not exist and does not exist: there is no stack to be emptied.
        if self.recorded(&location).await?.is_none() && target.resources.is_empty() {
            return Ok(UnitReport::default());
        }
        let wanted = urns(&target);
        let action = OperationAction::Restore(Box::new(target));
        let report = self.operate(job, action, OperationMode::Apply).await?;
        // An operation that went well is no proof: providers may take a wish and not fulfil it. So
        // what is recorded is compared with what was wanted, and then with what is really there.
        let recorded = self.recorded(&location).await?.unwrap_or_default();
        let unproved = |what: String| {
            let message = format!("{} was rolled back, but {what}", job.unit.component);
            UnitFailure::from(Error::new(ErrorCode::ROLLBACK_UNPROVED, message))
        };
        if let Some(open) = recorded.pending_operations.first() {
            let urn = &open.resource.urn;
            return Err(unproved(format!("nobody knows what became of {urn}")));
        }
        let now = urns(&recorded);
        if let Some(urn) = wanted.symmetric_difference(&now).next() {
            return Err(unproved(format!("{urn} is not as it was")));
        }
        if !recorded.resources.is_empty() {
            let look = self
                .operate(job, OperationAction::Refresh, OperationMode::Preview)
                .await?;
            let look = look.report;
            if look.has_changes() {
                let changes = look.changes.iter().filter(|(op, _)| **op != StepOp::Same);
                let count: usize = changes.map(|(_, count)| count).sum();
                return Err(unproved(format!(
                    "a refresh finds {count} resources that are not as recorded"
                )));
            }
        }
        Ok(report.into())
    }

    /// A state of a unit's history.
    async fn historic(&self, job: &UnitJob, number: usize) -> Result<Snapshot> {
        let access = self.access(&self.location(&job.unit)).await?;
        let stack = access.stack();
        let mut versions = stack.history().await?.into_iter();
        let Some(version) = versions.find(|version| version.number == number) else {
            let unit = &job.unit.unit;
            let message = format!("the history of {unit} has no version {number}");
            return Err(Error::new(ErrorCode::STATE_VERSION_UNKNOWN, message));
        };
        kept_states::open(&stack.version_bytes(&version).await?, &access.keyring)
    }

    /// Where a unit goes back to; `None` when the run never touched it.
    async fn restore_target(&self, job: &UnitJob, point: RestorePoint) -> Result<Option<Snapshot>> {
        match point {
            RestorePoint::Nothing => Ok(Some(Snapshot::default())),
            RestorePoint::Version(number) => self.historic(job, number).await.map(Some),
            RestorePoint::BeforeRun(run) => {
                let keyring = self.access(&self.location(&job.unit)).await?.keyring;
                let kept = &self.options.kept;
                kept.find(run, &job.unit.unit, &keyring).await
            }
        }
    }
}

#[async_trait]
impl UnitEngine for LocalEngine {
    async fn run(&self, job: &UnitJob) -> Result<UnitReport, UnitFailure> {
        let location = self.location(&job.unit);
        let (action, mode) = match job.operation {
            UnitOperation::Preview => (OperationAction::Update, OperationMode::Preview),
            UnitOperation::Deploy => {
                // Before the engine starts: a rollback has to find it even if nothing else of this
                // run survives.
                let access = self.access(&location).await?;
                self.settle(job, &access).await?;
                let kept = &self.options.kept;
                kept.keep(job.run, &job.unit.unit, &access.stack()).await?;
                (OperationAction::Update, OperationMode::Apply)
            }
            UnitOperation::Destroy if self.recorded(&location).await?.is_none() => {
                return Ok(UnitReport::default());
            }
            UnitOperation::Destroy => (OperationAction::Destroy, OperationMode::Apply),
            UnitOperation::Refresh if self.recorded(&location).await?.is_none() => {
                return Ok(UnitReport::default());
            }
            UnitOperation::Refresh => (OperationAction::Refresh, OperationMode::Apply),
            UnitOperation::Restore(point) => {
                return match self.restore_target(job, point).await? {
                    Some(target) => self.put_back(job, target).await,
                    // It failed before it was touched.
                    None => Ok(UnitReport::default()),
                };
            }
        };
        Ok(self.operate(job, action, mode).await?.into())
    }

    async fn outputs(&self, unit: &UnitAddress) -> Result<Option<BTreeMap<String, LookupValue>>> {
        let recorded: Result<Option<Snapshot>, Error> = self.recorded(&self.location(unit)).await;
        Ok(recorded?.map(|snapshot| lookup_values(&stack_outputs(&snapshot))))
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
}

impl From<OperationEffects> for UnitReport {
    fn from(operation: OperationEffects) -> Self {
        let OperationEffects { report, steps } = operation;
        Self {
            steps,
            outputs: lookup_values(&report.outputs),
            resources: left(&report.changes),
            changes: report
                .changes
                .into_iter()
                .map(|(op, count)| (op.to_string(), count as u64))
                .collect(),
            seconds: report.duration.as_secs_f64().ceil() as u64,
        }
    }
}

/// The engine's advice is for a program that is run by itself. Whoever runs a deployment goes on
/// with the run, which looks up what the engine would not touch.
fn in_words_of_a_run(error: Error) -> Error {
    match error.code() {
        ErrorCode::OUTCOMES_UNKNOWN => error.with_help("`nimbus resume` looks them up"),
        ErrorCode::MASS_REMOVAL => error.with_help(
            "check the credentials; if they are really gone, `nimbus refresh` with \
             --allow-mass-removal records it",
        ),
        _ => error,
    }
}

/// How long an operation that was asked to stop has until it is killed.
const GRACE: Duration = Duration::from_secs(60);

/// Lets an operation run for so long; then it is asked to stop, and at last killed. What it left open
/// is looked up by whoever undoes it or goes on with it. Also says the limit that it exceeded.
async fn in_time<T>(
    running: impl Future<Output = T>,
    limit: Option<Duration>,
    cancellation: &Cancellation,
) -> (T, Option<Duration>) {
    let mut running = std::pin::pin!(running);
    let Some(limit) = limit else {
        return (running.await, None);
    };
    if let Ok(ended) = tokio::time::timeout(limit, running.as_mut()).await {
        return (ended, None);
    }
    cancellation.request();
    if let Ok(ended) = tokio::time::timeout(GRACE, running.as_mut()).await {
        return (ended, Some(limit));
    }
    cancellation.request();
    (running.await, Some(limit))
}

/// The failure of a unit that took too long, which undoes a run by itself.
fn too_late(component: &ComponentName, limit: Duration, error: &Error) -> UnitFailure {
    let message = format!(
        "{component} took longer than {} seconds, twice what was planned, and was stopped: {}",
        limit.as_secs_f64().ceil(),
        error.message()
    );
    UnitFailure {
        trigger: Some(RollbackTrigger::Overtime),
        error: Error::new(ErrorCode::UNIT_OVERTIME, message).with_help(
            "what it left is looked up when the run is undone or resumed; if it needs more time, give \
             its template a longer `estimate`",
        ),
    }
}

/// How many resources there are after these steps.
fn left(changes: &BTreeMap<StepOp, usize>) -> u64 {
    let gone = [
        StepOp::Delete,
        StepOp::DeleteReplaced,
        StepOp::ReadDiscard,
        StepOp::DiscardReplaced,
        StepOp::RemovePendingReplace,
    ];
    let stay = changes.iter().filter(|(op, _)| !gone.contains(op));
    stay.map(|(_, count)| *count as u64).sum()
}

fn urns(snapshot: &Snapshot) -> BTreeSet<Urn> {
    let live = snapshot.resources.iter().filter(|state| !state.delete);
    live.map(|state| state.urn.clone()).collect()
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
