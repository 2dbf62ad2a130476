//! A laboratory for whole operations: a provider whose answers tests replace, programs as closures,
//! and a state that lives from run to run.
//!
//! Unless told otherwise the provider accepts everything, sees a difference in every changed input,
//! replaces when an input whose name starts with `replace` changes, and returns its inputs and `out`
//! as outputs.

mod fake;
mod program;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;
use nimbus_engine_model::{
    Goal, JournalEntry, PropertyMap, PropertyValue, ROOT_STACK_TYPE, ResourceState, Snapshot,
    StepOp, Urn,
};
use nimbus_engine_ports::*;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use fake::{compare, failed, unknown};
pub(super) use program::{Monitor, program};

use crate::{Clock, DeploymentOptions, DeploymentOutcome, DeploymentSpec, IdSource, ImportSpec};
use fake::{Fake, Host, Replies};

pub(in crate::tests) const STACK: &str = "dev";
pub(in crate::tests) const PROJECT: &str = "shop";
pub(in crate::tests) const TYPE: &str = "pkg:m:T";

/// A stack under test.
pub(in crate::tests) struct Lab {
    pub fake: Arc<Fake>,
    pub hooks: Arc<Hooks>,
    pub analyzers: Vec<Arc<dyn Analyzer>>,
    pub options: DeploymentOptions,
    pub cancel: CancellationToken,
    pub snapshot: Snapshot,
    ids: Arc<Ids>,
    clock: Arc<Ticking>,
}

pub(in crate::tests) struct Run {
    pub outcome: DeploymentOutcome,
    pub events: Vec<EngineEvent>,
    pub entries: Vec<JournalEntry>,
}

impl Lab {
    pub(in crate::tests) fn new() -> Self {
        Self {
            fake: Arc::default(),
            hooks: Arc::default(),
            analyzers: Vec::new(),
            options: DeploymentOptions {
                parallel: 1,
                ..DeploymentOptions::default()
            },
            cancel: CancellationToken::new(),
            snapshot: Snapshot::default(),
            ids: Arc::default(),
            clock: Arc::default(),
        }
    }

    /// Replaces some of the provider's answers.
    pub(in crate::tests) fn answers(&self, change: impl FnOnce(&mut Replies)) {
        change(&mut self.fake.replies.lock());
    }

    pub(in crate::tests) fn default_answers(&self) {
        *self.fake.replies.lock() = Replies::default();
    }

    pub(in crate::tests) fn take_calls(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.fake.calls.lock());
        calls
            .into_iter()
            .filter(|call| !call.starts_with("configure"))
            .collect()
    }

    pub(in crate::tests) async fn up<F>(&mut self, program: F) -> Run
    where
        F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
    {
        let run = self.operate(program, false).await;
        self.snapshot = run.outcome.snapshot.clone();
        run
    }

    pub(in crate::tests) async fn preview<F>(&self, program: F) -> Run
    where
        F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
    {
        self.operate(program, true).await
    }

    async fn operate<F>(&self, program: F, dry_run: bool) -> Run
    where
        F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
    {
        let (spec, watch) = self.spec(dry_run);
        let outcome = crate::update(spec, self::program(program)).await;
        watch.into_run(outcome)
    }

    pub(in crate::tests) async fn destroy(&mut self) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::destroy(spec).await, watch)
    }

    pub(in crate::tests) async fn refresh(&mut self) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::refresh(spec).await, watch)
    }

    pub(in crate::tests) async fn import(&mut self, imports: Vec<ImportSpec>) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::import(spec, imports).await, watch)
    }

    fn keep(&mut self, outcome: DeploymentOutcome, watch: Watch) -> Run {
        self.snapshot = outcome.snapshot.clone();
        watch.into_run(outcome)
    }

    pub(in crate::tests) fn spec(&self, dry_run: bool) -> (DeploymentSpec, Watch) {
        let watch = Watch::default();
        let spec = DeploymentSpec {
            project: PROJECT.to_owned(),
            stack: STACK.to_owned(),
            organization: "organization".to_owned(),
            base: self.snapshot.clone(),
            host: Arc::new(Host(Arc::clone(&self.fake))),
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

    /// The recorded resource of this name that is not waiting for its delete.
    #[track_caller]
    pub(in crate::tests) fn resource(&self, name: &str) -> Arc<ResourceState> {
        self.find(name)
            .unwrap_or_else(|| panic!("{name} is not recorded"))
    }

    pub(in crate::tests) fn find(&self, name: &str) -> Option<Arc<ResourceState>> {
        let live = self.snapshot.resources.iter().filter(|state| !state.delete);
        let mut named = live.filter(|state| state.urn.name() == name);
        named.next().cloned()
    }

    pub(in crate::tests) fn names(&self) -> Vec<String> {
        let states = self.snapshot.resources.iter();
        states.map(|state| state.urn.name().to_owned()).collect()
    }

    /// Changes a record behind the engine's back.
    pub(in crate::tests) fn edit(&mut self, name: &str, change: impl FnOnce(&mut ResourceState)) {
        let index = self
            .snapshot
            .resources
            .iter()
            .position(|s| s.urn.name() == name)
            .unwrap();
        let mut state = ResourceState::clone(&self.snapshot.resources[index]);
        change(&mut state);
        self.snapshot.resources[index] = Arc::new(state);
    }
}

impl Run {
    #[track_caller]
    pub(in crate::tests) fn ok(self) -> Self {
        if let Err(error) = &self.outcome.result {
            panic!("{error}\n{}", self.steps_with_sames().join("\n"));
        }
        self
    }

    #[track_caller]
    pub(in crate::tests) fn error(&self) -> &crate::DeployError {
        self.outcome
            .result
            .as_ref()
            .expect_err("the run should have failed")
    }

    /// `op name` of every announced step of the program's own resources, sames left out.
    pub(in crate::tests) fn steps(&self) -> Vec<String> {
        let steps = self.steps_with_sames().into_iter();
        steps.filter(|step| !step.starts_with("same ")).collect()
    }

    pub(in crate::tests) fn steps_with_sames(&self) -> Vec<String> {
        self.step_events()
            .filter(|step| step.type_ != ROOT_STACK_TYPE && step.urn.name() != "default")
            .map(|step| format!("{} {}", step.op, step.urn.name()))
            .collect()
    }

    pub(in crate::tests) fn step_events(&self) -> impl Iterator<Item = &StepEvent> {
        self.events.iter().filter_map(|event| match event {
            EngineEvent::ResourcePre { step, .. } => Some(step),
            _ => None,
        })
    }

    pub(in crate::tests) fn count(&self, op: StepOp) -> usize {
        self.outcome.changes.get(&op).copied().unwrap_or(0)
    }

    pub(in crate::tests) fn says(&self, text: &str) -> bool {
        self.events.iter().any(|event| match event {
            EngineEvent::Diagnostic(diagnostic) => diagnostic.message.contains(text),
            _ => false,
        })
    }
}

#[derive(Default)]
pub(in crate::tests) struct Watch {
    journal: Arc<Memory>,
    events: Arc<Events>,
}

impl Watch {
    pub(in crate::tests) fn into_run(self, outcome: DeploymentOutcome) -> Run {
        Run {
            outcome,
            events: std::mem::take(&mut *self.events.0.lock()),
            entries: std::mem::take(&mut *self.journal.0.lock()),
        }
    }
}

#[derive(Default)]
struct Memory(Mutex<Vec<JournalEntry>>);

#[async_trait]
impl Journal for Memory {
    async fn append(&self, entry: JournalEntry) -> Result<(), JournalError> {
        self.0.lock().push(entry);
        Ok(())
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<EngineEvent>>);

impl EventSink for Events {
    fn emit(&self, event: EngineEvent) {
        self.0.lock().push(event);
    }
}

/// Hooks that write down their calls, fail by name and ask for retries.
#[derive(Default)]
pub(in crate::tests) struct Hooks {
    pub calls: Mutex<Vec<String>>,
    pub failing: Mutex<Vec<String>>,
    pub retries: AtomicUsize,
    pub missing: Mutex<Vec<String>>,
}

#[async_trait]
impl HookRunner for Hooks {
    fn runs_on_dry_run(&self, name: &str) -> Option<bool> {
        (!self.missing.lock().iter().any(|missing| missing == name))
            .then(|| name.starts_with("always"))
    }

    async fn run(&self, request: HookRequest) -> Result<(), HookError> {
        self.calls
            .lock()
            .push(format!("{:?} {}", request.kind, request.name));
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
            .push(format!("retry {} {}", request.name, errors.len()));
        let left = self.retries.load(Ordering::Relaxed);
        self.retries
            .store(left.saturating_sub(1), Ordering::Relaxed);
        Ok(left > 0)
    }
}

/// Another second every time it is asked.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap()
    }
}

#[derive(Default)]
struct Ids(AtomicU64);

impl IdSource for Ids {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn seed(&self) -> [u8; 32] {
        [3; 32]
    }
}

pub(in crate::tests) fn props(entries: &[(&str, PropertyValue)]) -> PropertyMap {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

/// Sets an input, and what it depends on.
pub(in crate::tests) fn depend(goal: &mut Goal, key: &str, on: &RegisterResult) {
    let value = on
        .outputs
        .get("out")
        .cloned()
        .unwrap_or(PropertyValue::Computed);
    goal.properties.insert(key.to_owned(), value);
    goal.dependencies.push(on.urn.clone());
    goal.property_dependencies
        .insert(key.to_owned(), vec![on.urn.clone()]);
}

pub(in crate::tests) fn set(goal: &mut Goal, key: &str, value: impl Into<PropertyValue>) {
    goal.properties.insert(key.to_owned(), value.into());
}

pub(in crate::tests) fn urn(name: &str) -> Urn {
    Urn::new(STACK, PROJECT, None, TYPE, name)
}
