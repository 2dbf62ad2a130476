//! A stack under test: its recorded state and the cloud behind it, over many runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_engine_deploy::{
    Clock, DeployError, DeploymentOptions, DeploymentOutcome, DeploymentSpec, IdSource, ImportSpec,
};
use nimbus_engine_model::{JournalEntry, ROOT_STACK_TYPE, ResourceState, Snapshot, StepOp, Urn};
use nimbus_engine_ports::{
    Analyzer, Diagnostic, EngineEvent, HookError, HookRequest, HookRunner, Program, ProviderHost,
    StepEvent,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cloud::Cloud;
use crate::journal::MemoryJournal;
use crate::program::{Execution, ScriptedProgram};
use crate::provider::{FakeProvider, Faults};
use crate::sink::RecordingSink;

pub const PROJECT: &str = "proj";
pub const STACK: &str = "test";

/// Keeps the state between runs, as a backend does.
pub struct Rig {
    pub cloud: Arc<Cloud>,
    pub faults: Arc<Mutex<Faults>>,
    pub hooks: Arc<RecordedHooks>,
    pub analyzers: Vec<Arc<dyn Analyzer>>,
    pub snapshot: Snapshot,
    pub options: DeploymentOptions,
    pub cancel: CancellationToken,
    /// Instead of the provider of the cloud.
    host: Option<Arc<dyn ProviderHost>>,
    ids: Arc<CountedIds>,
    clock: Arc<TickingClock>,
    dies_after: Option<usize>,
}

/// What one run announced, recorded and returned.
pub struct RigRun {
    pub outcome: DeploymentOutcome,
    pub events: Vec<EngineEvent>,
    pub entries: Vec<JournalEntry>,
}

impl Default for Rig {
    fn default() -> Self {
        Self {
            cloud: Arc::default(),
            faults: Arc::default(),
            hooks: Arc::default(),
            analyzers: Vec::new(),
            snapshot: Snapshot::default(),
            options: DeploymentOptions {
                parallel: 1,
                ..DeploymentOptions::default()
            },
            cancel: CancellationToken::new(),
            host: None,
            ids: Arc::default(),
            clock: Arc::default(),
            dies_after: None,
        }
    }
}

impl Rig {
    pub fn new() -> Self {
        Self::default()
    }

    /// With providers of the test's own, which have no cloud behind them.
    pub fn with_host(host: Arc<dyn ProviderHost>) -> Self {
        Self {
            host: Some(host),
            ..Self::default()
        }
    }

    /// Sets what goes wrong from now on.
    pub fn fault(&self, set: impl FnOnce(&mut Faults)) {
        let mut faults = Faults::default();
        set(&mut faults);
        *self.faults.lock() = faults;
    }

    /// From now on the journal takes only so many entries a run.
    pub fn journal_dies_after(&mut self, entries: Option<usize>) {
        self.dies_after = entries;
    }

    pub async fn up(&mut self, program: &ScriptedProgram) -> RigRun {
        self.run(Arc::new(Execution::new(program.clone()))).await
    }

    pub(crate) async fn run(&mut self, program: Arc<dyn Program>) -> RigRun {
        let (spec, watch) = self.spec(false);
        let outcome = nimbus_engine_deploy::update(spec, program).await;
        self.keep(outcome, watch)
    }

    /// Leaves the state as it was.
    pub async fn preview(&self, program: &ScriptedProgram) -> RigRun {
        self.rehearse(Arc::new(Execution::new(program.clone())))
            .await
    }

    pub(crate) async fn rehearse(&self, program: Arc<dyn Program>) -> RigRun {
        let (spec, watch) = self.spec(true);
        let outcome = nimbus_engine_deploy::update(spec, program).await;
        watch.into_run(outcome)
    }

    pub async fn destroy(&mut self) -> RigRun {
        let (spec, watch) = self.spec(false);
        let outcome = nimbus_engine_deploy::destroy(spec).await;
        self.keep(outcome, watch)
    }

    pub async fn refresh(&mut self) -> RigRun {
        let (spec, watch) = self.spec(false);
        let outcome = nimbus_engine_deploy::refresh(spec).await;
        self.keep(outcome, watch)
    }

    pub async fn import(&mut self, imports: Vec<ImportSpec>) -> RigRun {
        let (spec, watch) = self.spec(false);
        let outcome = nimbus_engine_deploy::import(spec, imports).await;
        self.keep(outcome, watch)
    }

    pub fn urn(&self, type_: &str, name: &str) -> Urn {
        Urn::new(STACK, PROJECT, None, type_, name)
    }

    fn keep(&mut self, outcome: DeploymentOutcome, watch: RigWatch) -> RigRun {
        self.snapshot = outcome.snapshot.clone();
        watch.into_run(outcome)
    }

    /// The recorded resource of this name that is not waiting for its delete.
    #[track_caller]
    pub fn resource(&self, name: &str) -> Arc<ResourceState> {
        self.find(name)
            .unwrap_or_else(|| panic!("{name} is not recorded"))
    }

    pub fn find(&self, name: &str) -> Option<Arc<ResourceState>> {
        let live = self.snapshot.resources.iter().filter(|state| !state.delete);
        let mut named = live.filter(|state| state.urn.name() == name);
        named.next().cloned()
    }

    pub fn names(&self) -> Vec<String> {
        let states = self.snapshot.resources.iter();
        states.map(|state| state.urn.name().to_owned()).collect()
    }

    /// Changes a record behind the engine's back.
    #[track_caller]
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut ResourceState)) {
        let mut states = self.snapshot.resources.iter_mut();
        let Some(found) = states.find(|state| state.urn.name() == name) else {
            panic!("{name} is not recorded");
        };
        change(Arc::make_mut(found));
    }

    /// An operation on this stack as it is now, and who watches it.
    pub fn spec(&self, dry_run: bool) -> (DeploymentSpec, RigWatch) {
        let journal = self
            .dies_after
            .map_or_else(MemoryJournal::default, MemoryJournal::dying_after);
        let watch = RigWatch {
            journal: Arc::new(journal),
            events: Arc::default(),
        };
        let host = self.host.clone().unwrap_or_else(|| {
            let (cloud, faults) = (Arc::clone(&self.cloud), Arc::clone(&self.faults));
            Arc::new(FakeProvider::new(cloud, faults))
        });
        let spec = DeploymentSpec {
            project: PROJECT.to_owned(),
            stack: STACK.to_owned(),
            organization: "organization".to_owned(),
            base: self.snapshot.clone(),
            host,
            journal: Arc::clone(&watch.journal) as _,
            events: Arc::clone(&watch.events) as _,
            hooks: Arc::clone(&self.hooks) as _,
            analyzers: self.analyzers.clone(),
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
            cancel: self.cancel.clone(),
            options: DeploymentOptions {
                dry_run,
                ..self.options.clone()
            },
        };
        (spec, watch)
    }
}

impl RigRun {
    pub fn succeeded(&self) -> bool {
        self.outcome.result.is_ok()
    }

    /// The run, which must have succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        if let Err(error) = &self.outcome.result {
            panic!("{error}\n{}", self.all_step_lines().join("\n"));
        }
        self
    }

    /// Why the run failed, as it must have.
    #[track_caller]
    pub fn error(&self) -> &DeployError {
        match &self.outcome.result {
            Ok(_) => panic!("the run should have failed"),
            Err(error) => error,
        }
    }

    /// `op name` of every announced step of the program's own resources, sames left out.
    pub fn step_lines(&self) -> Vec<String> {
        let steps = self.all_step_lines().into_iter();
        steps.filter(|step| !step.starts_with("same ")).collect()
    }

    pub fn all_step_lines(&self) -> Vec<String> {
        self.step_events()
            .filter(|step| step.type_ != ROOT_STACK_TYPE && step.urn.name() != "default")
            .map(|step| format!("{} {}", step.op, step.urn.name()))
            .collect()
    }

    /// Whether a message has this text in it.
    pub fn says(&self, text: &str) -> bool {
        let mut messages = self.diagnostics().into_iter();
        messages.any(|diagnostic| diagnostic.message.contains(text))
    }

    /// How many steps of this kind ended well.
    pub fn count(&self, op: StepOp) -> usize {
        self.outcome.changes.get(&op).copied().unwrap_or(0)
    }

    /// Steps that were announced, in order, as `(op, resource name)`; sames and the root are left
    /// out unless asked for.
    pub fn steps(&self) -> Vec<(StepOp, String)> {
        self.step_events()
            .filter(|step| step.op != StepOp::Same)
            .filter(|step| step.type_ != ROOT_STACK_TYPE)
            .map(|step| (step.op, step.urn.name().to_owned()))
            .collect()
    }

    pub fn step_events(&self) -> impl Iterator<Item = &StepEvent> {
        self.events.iter().filter_map(|event| match event {
            EngineEvent::ResourcePre { step, .. } => Some(step),
            _ => None,
        })
    }

    pub fn diagnostics(&self) -> Vec<&Diagnostic> {
        self.events
            .iter()
            .filter_map(|event| match event {
                EngineEvent::Diagnostic(diagnostic) => Some(diagnostic),
                _ => None,
            })
            .collect()
    }
}

/// Who watches an operation.
pub struct RigWatch {
    journal: Arc<MemoryJournal>,
    events: Arc<RecordingSink>,
}

impl RigWatch {
    pub fn into_run(self, outcome: DeploymentOutcome) -> RigRun {
        RigRun {
            outcome,
            events: self.events.take(),
            entries: self.journal.entries(),
        }
    }
}

/// Hooks that write down their calls; those listed as failing fail, error hooks retry so often, and
/// those whose names start with `always` run in previews too.
#[derive(Default)]
pub struct RecordedHooks {
    calls: Mutex<Vec<String>>,
    failing: Mutex<Vec<String>>,
    retries: Mutex<BTreeMap<String, usize>>,
    forgotten: Mutex<Vec<String>>,
}

impl RecordedHooks {
    pub fn fail(&self, name: &str) {
        self.failing.lock().push(name.to_owned());
    }

    pub fn retry(&self, name: &str, times: usize) {
        self.retries.lock().insert(name.to_owned(), times);
    }

    /// From now on nobody has this hook.
    pub fn forget(&self, name: &str) {
        self.forgotten.lock().push(name.to_owned());
    }

    pub fn remember_all(&self) {
        self.forgotten.lock().clear();
    }

    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }
}

#[async_trait]
impl HookRunner for RecordedHooks {
    fn runs_on_dry_run(&self, name: &str) -> Option<bool> {
        let known = !self.forgotten.lock().iter().any(|one| one == name);
        known.then(|| name.starts_with("always"))
    }

    async fn run(&self, request: HookRequest) -> Result<(), HookError> {
        self.calls.lock().push(format!(
            "{:?} {} {}",
            request.kind, request.hook, request.name
        ));
        if self.failing.lock().contains(&request.hook) {
            return Err(HookError::Failed {
                hook: request.hook,
                message: "no".to_owned(),
            });
        }
        Ok(())
    }

    async fn retry(&self, request: HookRequest, errors: &[String]) -> Result<bool, HookError> {
        self.calls
            .lock()
            .push(format!("retry? {} {}", request.hook, errors.len()));
        let mut retries = self.retries.lock();
        let left = retries.entry(request.hook).or_default();
        let again = *left > 0;
        *left = left.saturating_sub(1);
        Ok(again)
    }
}

/// Another second every time it is asked.
#[derive(Default)]
struct TickingClock(AtomicU64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        let now = i64::try_from(seconds).ok().map(Timestamp::from_second);
        now.and_then(Result::ok).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Ids in sequence, so that goldens stay the same.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn seed(&self) -> [u8; 32] {
        [7; 32]
    }
}
