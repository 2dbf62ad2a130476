//! A unit on the embedded engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{BackendError, Keyring};
use nimbus_engine_model::{OperationKind, Snapshot, StepOp, Urn};
use nimbus_engine_operations::{
    Action, Cancellation, EmbeddedEngine, Engine, GivenConfig, Mode, Network, OfficialEngine,
    PolicyPackRequest, Processes, RunOptions, RunReport, RunRequest, SandboxSettings, StackAccess,
    StackLocation, stack_outputs,
};
use nimbus_engine_ports::{EventSink, ProviderHost};
use nimbus_orchestrator::fingerprint::{Fingerprint, Input};
use nimbus_orchestrator::network::NetworkAccess;
use nimbus_orchestrator::program::add_program;
use nimbus_orchestrator::resolve::{Answer, Resolved};
use nimbus_orchestrator::unit::{Job, JobAction, JobError, JobReport, UnitEngine};
use serde_json::Value;

use crate::before::{self, Before};
use crate::failures::FailureWatch;
use crate::passphrase::environment;
use crate::values::{UNKNOWN_TEXT, answers};

/// Who hears what a unit's engine says.
pub type EventsOf = Arc<dyn Fn(&str) -> Arc<dyn EventSink> + Send + Sync>;

/// Where and how units run.
pub struct LocalOptions {
    /// Address of the state; that of a rehearsal must be another than the real one.
    pub backend: String,
    /// Stands in for every provider: a rehearsal.
    pub simulated: Option<Arc<dyn ProviderHost>>,
    /// Skip type-checking of TypeScript.
    pub transpile_only: bool,
    /// Steps of one unit at once.
    pub parallel: Option<usize>,
    /// Rules that every unit is held to when it is previewed or deployed.
    pub policy_packs: Vec<PolicyPackRequest>,
}

/// How to go on with units that an earlier attempt left unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Look up what became of acts that nobody saw the end of.
    pub look_up: bool,
    /// Somebody has looked for creates of unknown outcome, in vain.
    pub forget_creates: bool,
}

pub struct LocalEngine {
    options: LocalOptions,
    events: EventsOf,
    cancellation: Cancellation,
    /// One for all units, so that they share what can be shared.
    keyring: Arc<Keyring>,
    processes: Arc<Processes>,
    before: Before,
    recovery: Recovery,
    /// How programs are kept from everything else; `None`: not at all.
    sandbox: Option<SandboxSettings>,
    /// An installed `pulumi` carries operations out, as far as it can.
    official: Option<OfficialEngine>,
}

impl LocalEngine {
    pub fn new(options: LocalOptions, events: EventsOf, cancellation: Cancellation) -> Self {
        let rehearsing = options.simulated.is_some();
        let processes = match &options.simulated {
            Some(simulated) => Processes::simulating(Arc::clone(simulated)),
            None => Processes::new(),
        };
        Self {
            options,
            events,
            cancellation,
            keyring: Keyring::new(environment(rehearsing)),
            processes: Arc::new(processes),
            before: Before::default(),
            recovery: Recovery::default(),
            sandbox: None,
            official: None,
        }
    }

    /// Lets an installed `pulumi` carry operations out. What only the embedded engine can do, such
    /// as bringing a recorded state back, it still does.
    pub fn official(mut self, official: bool) -> Self {
        self.official = official.then(|| {
            OfficialEngine::with_keys(Arc::clone(&self.keyring))
                .simulating(self.options.simulated.clone())
        });
        self
    }

    /// Shares providers of these packages between units in different folders, instead of those
    /// that were reviewed for it.
    pub fn sharing(mut self, packages: Option<Vec<String>>) -> Self {
        if let Some(packages) = packages {
            let processes = self.processes.as_ref().clone();
            self.processes = Arc::new(processes.sharing(packages));
        }
        self
    }

    /// The keys to the units' secrets.
    pub fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring)
    }

    /// Runs every unit's program in a sandbox.
    pub fn sandboxed(mut self, sandbox: Option<SandboxSettings>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Keeps what units were before this run in a folder, so that they can be returned to it.
    pub fn keeping(mut self, folder: PathBuf) -> Self {
        self.before = Before::new(Some(folder));
        self
    }

    pub fn recovering(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    fn location(&self, directory: PathBuf, project: &str, unit: &str) -> StackLocation {
        StackLocation {
            directory,
            stack: format!("organization/{project}/{unit}"),
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
    fn policy_packs(&self, action: JobAction) -> Vec<PolicyPackRequest> {
        match action {
            JobAction::Preview | JobAction::Deploy => self.options.policy_packs.clone(),
            JobAction::Destroy
            | JobAction::Refresh
            | JobAction::RollBack
            | JobAction::Restore(_) => Vec::new(),
        }
    }

    /// A stack may say for itself what its program reaches.
    fn sandbox_of(&self, job: &Job) -> Option<SandboxSettings> {
        let mut sandbox = self.sandbox.clone()?;
        match job.network {
            Some(NetworkAccess::None) => sandbox.network = Network::None,
            Some(NetworkAccess::Full) => sandbox.network = Network::Full,
            None => {}
        }
        Some(sandbox)
    }

    async fn access(&self, location: &StackLocation) -> Result<StackAccess> {
        StackAccess::with_keys(location, &self.keyring).await
    }

    fn engine(&self, request: &RunRequest, config: GivenConfig) -> Box<dyn Engine> {
        let only_ours = matches!(request.action, Action::Restore(_) | Action::Import(_))
            || request.options.clear_pending_creates;
        if let Some(official) = self.official.as_ref().filter(|_| !only_ours) {
            return Box::new(official.clone().given(config));
        }
        let keyring = Arc::clone(&self.keyring);
        let processes = Arc::clone(&self.processes) as _;
        Box::new(EmbeddedEngine::with_keys(keyring, processes).given(config))
    }

    /// Runs one operation of the engine.
    async fn operate(&self, job: &Job, action: Action, mode: Mode) -> Result<Operated, JobError> {
        let location = self.location(job.program.clone(), &job.project, &job.unit);
        let options = RunOptions {
            parallel: self.options.parallel,
            transpile_only: self.options.transpile_only,
            policy_packs: self.policy_packs(job.action),
            sandbox: self.sandbox_of(job),
            ..self.recovery_options(&location, &action, mode).await?
        };
        let request = RunRequest {
            location,
            action,
            mode,
            options,
        };
        let engine = self.engine(&request, given(&job.config));
        let watch = FailureWatch::new((self.events)(&job.stack));
        let audience = Arc::clone(&watch) as Arc<dyn EventSink>;
        let ended = engine.run(&request, audience, &self.cancellation).await;
        let failed = |error: Error| JobError {
            trigger: watch.trigger(&error),
            error,
        };
        let mut report = ended.map_err(failed)?;
        match std::mem::replace(&mut report.result, Ok(())) {
            Ok(()) => Ok(Operated {
                report,
                steps: watch.steps(),
            }),
            Err(error) => Err(failed(error)),
        }
    }

    /// What an interrupted operation left open is looked up. A create cannot be: nobody knows what
    /// to look for, so a person must have.
    async fn recovery_options(
        &self,
        location: &StackLocation,
        action: &Action,
        mode: Mode,
    ) -> Result<RunOptions> {
        let mut options = RunOptions::default();
        let undoes = matches!(action, Action::Restore(_) | Action::Destroy);
        if mode == Mode::Preview || !(self.recovery.look_up || undoes) {
            return Ok(options);
        }
        let open = self.unfinished(location).await?;
        if open.is_empty() {
            return Ok(options);
        }
        options.refresh = true;
        options.clear_pending_creates = self.recovery.forget_creates;
        let creates: Vec<_> = open
            .iter()
            .filter(|(kind, _)| *kind == OperationKind::Creating)
            .map(|(_, urn)| urn.to_string())
            .collect();
        if creates.is_empty() || self.recovery.forget_creates {
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
    async fn put_back(&self, job: &Job, target: Snapshot) -> Result<JobReport, JobError> {
        let location = self.location(job.program.clone(), &job.project, &job.unit);
        if self.recorded(&location).await?.is_none() && target.resources.is_empty() {
            return Ok(JobReport::default());
        }
        let wanted = urns(&target);
        let action = Action::Restore(Box::new(target));
        let report = self.operate(job, action, Mode::Apply).await?;
        let recorded = self.recorded(&location).await?.unwrap_or_default();
        let unproved = |what: String| {
            let message = format!("{} was rolled back, but {what}", job.stack);
            JobError::from(Error::new(ErrorCode::ROLLBACK_UNPROVED, message))
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
            let look = self.operate(job, Action::Refresh, Mode::Preview).await?;
            let look = look.report;
            if look.has_changes() {
                let changes = look.changes.iter().filter(|(op, _)| **op != StepOp::Same);
                let count: usize = changes.map(|(_, count)| count).sum();
                return Err(unproved(format!(
                    "a refresh finds {count} resources that are not as recorded"
                )));
            }
        }
        Ok(told(report))
    }

    /// A state of a unit's history.
    async fn historic(&self, job: &Job, number: Option<usize>) -> Result<Snapshot> {
        let Some(number) = number else {
            return Ok(Snapshot::default());
        };
        let location = self.location(job.program.clone(), &job.project, &job.unit);
        let access = self.access(&location).await?;
        let stack = access.stack();
        let mut versions = stack.history().await?.into_iter();
        let Some(version) = versions.find(|version| version.number == number) else {
            let message = format!("the history of {} has no version {number}", job.unit);
            return Err(Error::new(ErrorCode::STATE_VERSION_UNKNOWN, message));
        };
        before::open(&stack.version_bytes(&version).await?, &access.keyring)
    }
}

#[async_trait]
impl UnitEngine for LocalEngine {
    async fn run(&self, job: &Job) -> Result<JobReport, JobError> {
        let location = self.location(job.program.clone(), &job.project, &job.unit);
        let (action, mode) = match job.action {
            JobAction::Preview => (Action::Update, Mode::Preview),
            JobAction::Deploy => {
                let access = self.access(&location).await?;
                self.before.keep(&job.unit, &access.stack()).await?;
                (Action::Update, Mode::Apply)
            }
            JobAction::Destroy if self.recorded(&location).await?.is_none() => {
                return Ok(JobReport::default());
            }
            JobAction::Destroy => (Action::Destroy, Mode::Apply),
            JobAction::Refresh => (Action::Refresh, Mode::Apply),
            JobAction::RollBack => {
                let keyring = self.access(&location).await?.keyring;
                return match self.before.find(&job.unit, &keyring)? {
                    Some(before) => self.put_back(job, before).await,
                    // It failed before it was touched.
                    None => Ok(JobReport::default()),
                };
            }
            JobAction::Restore(number) => {
                let target = self.historic(job, number).await?;
                return self.put_back(job, target).await;
            }
        };
        Ok(told(self.operate(job, action, mode).await?))
    }

    async fn outputs(&self, project: &str, unit: &str) -> Result<Option<BTreeMap<String, Answer>>> {
        let location = self.location(std::env::temp_dir(), project, unit);
        let recorded: Result<Option<Snapshot>, Error> = self.recorded(&location).await;
        Ok(recorded?.map(|snapshot| answers(&stack_outputs(&snapshot))))
    }

    async fn state_version(&self, project: &str, unit: &str) -> Result<Option<String>> {
        let location = self.location(std::env::temp_dir(), project, unit);
        let access = self.access(&location).await?;
        match access.stack().load_unverified().await {
            Ok(found) => Ok(Some(found.version.to_string())),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn history_length(&self, project: &str, unit: &str) -> Result<usize> {
        let location = self.location(std::env::temp_dir(), project, unit);
        let access = self.access(&location).await?;
        let versions = access.stack().history().await?;
        Ok(versions.last().map_or(0, |version| version.number))
    }

    /// One passphrase protects all units, so it is tried on the first that has secrets.
    async fn ready(&self, project: &str, units: &[String]) -> Result<()> {
        for unit in units {
            let location = self.location(std::env::temp_dir(), project, unit);
            let access = self.access(&location).await?;
            let bytes = match access.stack().export().await {
                Ok(bytes) => bytes,
                Err(BackendError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if before::try_secrets(&bytes, &access.keyring)? {
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
        let packs = self.options.policy_packs.iter().map(pack_version);
        packs.chain([("nimbus".to_owned(), nimbus)]).collect()
    }
}

/// A policy pack by its name and everything in it: what passed under other rules is looked at again.
fn pack_version(pack: &PolicyPackRequest) -> (String, String) {
    let name = pack.folder.file_name().unwrap_or_default();
    let mut content = Fingerprint::default();
    // A pack that cannot be read is refused with its reason when it is started.
    let read = add_program(&mut content, &pack.folder, &pack.folder);
    if let Some(Ok(config)) = pack.config.as_ref().map(std::fs::read) {
        content.add(Input::Config("policies".to_owned()), config);
    }
    let version = format!("{} {}", content.digest(), read.is_ok());
    (format!("policy pack {}", name.display()), version)
}

/// What came of an operation, and what it did to which resource.
struct Operated {
    report: RunReport,
    steps: BTreeMap<String, String>,
}

fn told(operated: Operated) -> JobReport {
    let Operated { report, steps } = operated;
    JobReport {
        steps,
        outputs: answers(&report.outputs),
        resources: left(&report.changes),
        changes: report
            .changes
            .into_iter()
            .map(|(op, count)| (op.to_string(), count as u64))
            .collect(),
        seconds: report.duration.as_secs_f64().ceil() as u64,
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

/// What is unknown reaches the program as the protocol's own word for it.
fn given(config: &BTreeMap<String, Resolved>) -> GivenConfig {
    let mut given = GivenConfig::default();
    for (key, value) in config {
        match value {
            Resolved::Known { value, secret } => given.set(key.as_str(), value.clone(), *secret),
            Resolved::Unknown => given.set(key.as_str(), Value::from(UNKNOWN_TEXT), false),
        }
    }
    given
}
