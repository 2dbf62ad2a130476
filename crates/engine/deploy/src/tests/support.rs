//! A laboratory for whole operations: a provider whose answers tests replace, programs as closures,
//! and a state that lives from run to run.
//!
//! Unless told otherwise the provider accepts everything, sees a difference in every changed input,
//! replaces when an input whose name starts with `replace` changes, and returns its inputs and `out`
//! as outputs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;
use nimbus_engine_model::{
    Goal, JournalEntry, PackageDescriptor, PropertyMap, PropertyValue, ROOT_STACK_TYPE,
    ResourceState, Snapshot, StepOp, UNKNOWN_ID, Urn, provider_type,
};
use nimbus_engine_ports::*;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Clock, DeploymentSpec, IdSource, ImportSpec, Options, Outcome};

pub(super) const STACK: &str = "dev";
pub(super) const PROJECT: &str = "shop";
pub(super) const TYPE: &str = "pkg:m:T";

type Reply<Q, A> = Box<dyn Fn(&Q) -> Option<Result<A, ProviderError>> + Send + Sync>;

/// Answers that replace the default ones; `None` falls back to them.
#[derive(Default)]
pub(super) struct Replies {
    pub check_config: Option<Reply<CheckRequest, CheckResponse>>,
    pub diff_config: Option<Reply<DiffRequest, DiffResponse>>,
    pub configure: Option<Reply<ConfigureRequest, ()>>,
    pub check: Option<Reply<CheckRequest, CheckResponse>>,
    pub diff: Option<Reply<DiffRequest, DiffResponse>>,
    pub create: Option<Reply<CreateRequest, CreateResponse>>,
    pub read: Option<Reply<ReadRequest, ReadResponse>>,
    pub update: Option<Reply<UpdateRequest, UpdateResponse>>,
    pub delete: Option<Reply<DeleteRequest, ()>>,
}

#[derive(Default)]
pub(super) struct Fake {
    pub replies: Mutex<Replies>,
    /// `create a`, `delete a id-1` and so on, in order.
    pub calls: Mutex<Vec<String>>,
    /// Objects that exist, with their inputs.
    pub objects: Mutex<BTreeMap<String, PropertyMap>>,
    /// Creates wait here for each other.
    pub meeting: Mutex<Option<Arc<tokio::sync::Barrier>>>,
    next_id: AtomicUsize,
}

impl Fake {
    fn call(&self, text: String) {
        self.calls.lock().push(text);
    }

    fn reply<Q, A>(
        &self,
        pick: impl Fn(&Replies) -> &Option<Reply<Q, A>>,
        request: &Q,
    ) -> Option<Result<A, ProviderError>> {
        pick(&self.replies.lock())
            .as_ref()
            .and_then(|reply| reply(request))
    }

    fn outputs(id: &str, inputs: &PropertyMap) -> PropertyMap {
        let mut outputs = inputs.clone();
        let out = if id.is_empty() {
            PropertyValue::Computed
        } else {
            format!("out of {id}").into()
        };
        outputs.insert("out".to_owned(), out);
        outputs
    }
}

pub(super) fn failed(message: &str) -> ProviderError {
    ProviderError::Failed {
        message: message.to_owned(),
    }
}

pub(super) fn unknown(message: &str) -> ProviderError {
    ProviderError::Unknown {
        message: message.to_owned(),
    }
}

/// Key by key; keys that start with `replace` replace.
pub(super) fn compare(old: &PropertyMap, new: &PropertyMap) -> DiffResponse {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key));
    let detailed: BTreeMap<String, PropertyDiff> = changed
        .map(|key| {
            let kind = if key.starts_with("replace") {
                DiffKind::UpdateReplace
            } else {
                DiffKind::Update
            };
            (
                key.clone(),
                PropertyDiff {
                    kind,
                    input_diff: true,
                },
            )
        })
        .collect();
    DiffResponse {
        changes: if detailed.is_empty() {
            Diffs::None
        } else {
            Diffs::Some
        },
        replace_keys: detailed
            .keys()
            .filter(|key| key.starts_with("replace"))
            .cloned()
            .collect(),
        changed_keys: detailed.keys().cloned().collect(),
        detailed: Some(detailed),
        ..DiffResponse::default()
    }
}

#[async_trait]
impl Provider for Fake {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.reply(|r| &r.check_config, &request)
            .unwrap_or_else(|| {
                Ok(CheckResponse {
                    properties: request.news,
                    failures: Vec::new(),
                })
            })
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.reply(|r| &r.diff_config, &request)
            .unwrap_or_else(|| Ok(compare(&request.old_inputs, &request.new_inputs)))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        let shown: Vec<String> = request
            .inputs
            .iter()
            .map(|(key, value)| format!("{key}={value:?}"))
            .collect();
        self.call(format!("configure {} {}", request.name, shown.join(" ")));
        self.reply(|r| &r.configure, &request).unwrap_or(Ok(()))
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.reply(|r| &r.check, &request).unwrap_or_else(|| {
            Ok(CheckResponse {
                properties: request.news,
                failures: Vec::new(),
            })
        })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.reply(|r| &r.diff, &request)
            .unwrap_or_else(|| Ok(compare(&request.old_inputs, &request.new_inputs)))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        if !request.preview {
            self.call(format!("create {}", request.name));
            let meeting = self.meeting.lock().clone();
            if let Some(meeting) = meeting {
                meeting.wait().await;
            }
        }
        if let Some(reply) = self.reply(|r| &r.create, &request) {
            return reply;
        }
        let id = if request.preview {
            String::new()
        } else {
            let id = format!("id-{}", self.next_id.fetch_add(1, Ordering::Relaxed) + 1);
            self.objects
                .lock()
                .insert(id.clone(), request.properties.clone());
            id
        };
        let properties = Self::outputs(&id, &request.properties);
        Ok(CreateResponse {
            id,
            properties,
            refresh_before_update: false,
        })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.call(format!("read {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.read, &request) {
            return reply;
        }
        Ok(match self.objects.lock().get(&request.id) {
            None => ReadResponse::default(),
            Some(inputs) => ReadResponse {
                outputs: Self::outputs(&request.id, inputs),
                inputs: Some(inputs.clone()),
                id: Some(request.id),
                refresh_before_update: false,
            },
        })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if !request.preview {
            self.call(format!("update {} {}", request.name, request.id));
        }
        if let Some(reply) = self.reply(|r| &r.update, &request) {
            return reply;
        }
        if !request.preview {
            self.objects
                .lock()
                .insert(request.id.clone(), request.new_inputs.clone());
        }
        let properties = Self::outputs(&request.id, &request.new_inputs);
        Ok(UpdateResponse {
            properties,
            refresh_before_update: false,
        })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.call(format!("delete {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.delete, &request) {
            return reply;
        }
        self.objects.lock().remove(&request.id);
        Ok(())
    }

    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        Ok(InvokeResponse::default())
    }

    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        Ok(CallResponse::default())
    }

    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "Construct",
        })
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.call("cancel".to_owned());
        Ok(())
    }

    async fn close(&self) {}
}

struct Host(Arc<Fake>);

#[async_trait]
impl ProviderHost for Host {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        if package.name == "missing" {
            return Err(LoadError::NotFound {
                package: package.name.clone(),
                version: None,
                reason: "not installed".to_owned(),
            });
        }
        Ok(Arc::clone(&self.0) as _)
    }
}

/// A stack under test.
pub(super) struct Lab {
    pub fake: Arc<Fake>,
    pub hooks: Arc<Hooks>,
    pub analyzers: Vec<Arc<dyn Analyzer>>,
    pub options: Options,
    pub cancel: CancellationToken,
    pub snapshot: Snapshot,
    ids: Arc<Ids>,
    clock: Arc<Ticking>,
}

pub(super) struct Run {
    pub outcome: Outcome,
    pub events: Vec<EngineEvent>,
    pub entries: Vec<JournalEntry>,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self {
            fake: Arc::default(),
            hooks: Arc::default(),
            analyzers: Vec::new(),
            options: Options {
                parallel: 1,
                ..Options::default()
            },
            cancel: CancellationToken::new(),
            snapshot: Snapshot::default(),
            ids: Arc::default(),
            clock: Arc::default(),
        }
    }

    /// Replaces some of the provider's answers.
    pub(super) fn answers(&self, change: impl FnOnce(&mut Replies)) {
        change(&mut self.fake.replies.lock());
    }

    pub(super) fn default_answers(&self) {
        *self.fake.replies.lock() = Replies::default();
    }

    pub(super) fn take_calls(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.fake.calls.lock());
        calls
            .into_iter()
            .filter(|call| !call.starts_with("configure"))
            .collect()
    }

    pub(super) async fn up<F>(&mut self, program: F) -> Run
    where
        F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
    {
        let run = self.operate(program, false).await;
        self.snapshot = run.outcome.snapshot.clone();
        run
    }

    pub(super) async fn preview<F>(&self, program: F) -> Run
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

    pub(super) async fn destroy(&mut self) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::destroy(spec).await, watch)
    }

    pub(super) async fn refresh(&mut self) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::refresh(spec).await, watch)
    }

    pub(super) async fn import(&mut self, imports: Vec<ImportSpec>) -> Run {
        let (spec, watch) = self.spec(false);
        self.keep(crate::import(spec, imports).await, watch)
    }

    fn keep(&mut self, outcome: Outcome, watch: Watch) -> Run {
        self.snapshot = outcome.snapshot.clone();
        watch.into_run(outcome)
    }

    pub(super) fn spec(&self, dry_run: bool) -> (DeploymentSpec, Watch) {
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
            options: Options {
                dry_run,
                ..self.options.clone()
            },
        };
        (spec, watch)
    }

    /// The recorded resource of this name that is not waiting for its delete.
    #[track_caller]
    pub(super) fn resource(&self, name: &str) -> Arc<ResourceState> {
        self.find(name)
            .unwrap_or_else(|| panic!("{name} is not recorded"))
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<ResourceState>> {
        let live = self.snapshot.resources.iter().filter(|state| !state.delete);
        let mut named = live.filter(|state| state.urn.name() == name);
        named.next().cloned()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let states = self.snapshot.resources.iter();
        states.map(|state| state.urn.name().to_owned()).collect()
    }

    /// Changes a record behind the engine's back.
    pub(super) fn edit(&mut self, name: &str, change: impl FnOnce(&mut ResourceState)) {
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
    pub(super) fn ok(self) -> Self {
        if let Err(error) = &self.outcome.result {
            panic!("{error}\n{}", self.steps_with_sames().join("\n"));
        }
        self
    }

    #[track_caller]
    pub(super) fn error(&self) -> &crate::DeployError {
        self.outcome
            .result
            .as_ref()
            .expect_err("the run should have failed")
    }

    /// `op name` of every announced step of the program's own resources, sames left out.
    pub(super) fn steps(&self) -> Vec<String> {
        let steps = self.steps_with_sames().into_iter();
        steps.filter(|step| !step.starts_with("same ")).collect()
    }

    pub(super) fn steps_with_sames(&self) -> Vec<String> {
        self.step_events()
            .filter(|step| step.type_ != ROOT_STACK_TYPE && step.urn.name() != "default")
            .map(|step| format!("{} {}", step.op, step.urn.name()))
            .collect()
    }

    pub(super) fn step_events(&self) -> impl Iterator<Item = &StepEvent> {
        self.events.iter().filter_map(|event| match event {
            EngineEvent::ResourcePre { step, .. } => Some(step),
            _ => None,
        })
    }

    pub(super) fn count(&self, op: StepOp) -> usize {
        self.outcome.changes.get(&op).copied().unwrap_or(0)
    }

    pub(super) fn says(&self, text: &str) -> bool {
        self.events.iter().any(|event| match event {
            EngineEvent::Diagnostic(diagnostic) => diagnostic.message.contains(text),
            _ => false,
        })
    }
}

#[derive(Default)]
pub(super) struct Watch {
    journal: Arc<Memory>,
    events: Arc<Events>,
}

impl Watch {
    pub(super) fn into_run(self, outcome: Outcome) -> Run {
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
pub(super) struct Hooks {
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

type ScriptFn = Box<dyn Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync>;

struct Script(ScriptFn);

pub(super) fn program<F>(script: F) -> Arc<dyn Program>
where
    F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
{
    Arc::new(Script(Box::new(script)))
}

#[async_trait]
impl Program for Script {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        let ended = async {
            let goal = Goal::new(ROOT_STACK_TYPE, format!("{PROJECT}-{STACK}"), false);
            let root = registrar.register(goal).await?.urn;
            let monitor = Monitor {
                registrar: Arc::clone(&registrar),
                root: root.clone(),
                providers: Arc::default(),
                outputs: Arc::default(),
            };
            let outputs = Arc::clone(&monitor.outputs);
            (self.0)(monitor).await?;
            let outputs = outputs.lock().clone();
            match outputs {
                Some(outputs) => registrar.register_outputs(root, outputs).await,
                None => Ok(()),
            }
        };
        match ended.await {
            Ok(()) => Ok(()),
            Err(RegisterError::ShuttingDown) => Err(ProgramError::AlreadyReported),
            Err(RegisterError::Invalid { message }) => Err(ProgramError::Failed { message }),
        }
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        Ok(())
    }
}

/// What programs call.
#[derive(Clone)]
pub(super) struct Monitor {
    pub registrar: Arc<dyn Registrar>,
    pub root: Urn,
    providers: Arc<tokio::sync::Mutex<HashMap<String, String>>>,
    /// Outputs of the stack; `None` makes the program end before it says them.
    pub outputs: Arc<Mutex<Option<PropertyMap>>>,
}

impl Monitor {
    /// Says that the program ran to its end.
    pub(super) fn done(&self) {
        self.outputs.lock().get_or_insert_default();
    }

    pub(super) async fn resource(
        &self,
        name: &str,
        change: impl FnOnce(&mut Goal),
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = Goal::new(TYPE, name, true);
        goal.parent = Some(self.root.clone());
        change(&mut goal);
        if goal.custom && goal.provider.is_empty() {
            goal.provider = self.default_provider("pkg").await?;
        }
        self.registrar.register(goal).await
    }

    pub(super) async fn component(
        &self,
        name: &str,
        change: impl FnOnce(&mut Goal),
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = Goal::new("my:m:Component", name, false);
        goal.parent = Some(self.root.clone());
        change(&mut goal);
        self.registrar.register(goal).await
    }

    pub(super) async fn provider(
        &self,
        name: &str,
        inputs: &[(&str, PropertyValue)],
    ) -> Result<String, RegisterError> {
        let mut goal = Goal::new(provider_type("pkg"), name, true);
        goal.properties = props(inputs);
        let result = self.registrar.register(goal).await?;
        Ok(format!(
            "{}::{}",
            result.urn,
            result.id.unwrap_or_else(|| UNKNOWN_ID.to_owned())
        ))
    }

    pub(super) async fn read(&self, name: &str, id: &str) -> Result<RegisterResult, RegisterError> {
        let provider = self.default_provider("pkg").await?;
        let goal = ReadGoal {
            type_: TYPE.to_owned(),
            name: name.to_owned(),
            id: id.to_owned(),
            parent: Some(self.root.clone()),
            properties: PropertyMap::new(),
            dependencies: Vec::new(),
            provider,
            additional_secret_outputs: Vec::new(),
            source_position: String::new(),
            stack_trace: Vec::new(),
        };
        self.registrar.read(goal).await
    }

    async fn default_provider(&self, package: &str) -> Result<String, RegisterError> {
        let mut providers = self.providers.lock().await;
        if let Some(known) = providers.get(package) {
            return Ok(known.clone());
        }
        let reference = self.provider("default", &[]).await?;
        providers.insert(package.to_owned(), reference.clone());
        Ok(reference)
    }
}

pub(super) fn props(entries: &[(&str, PropertyValue)]) -> PropertyMap {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

/// Sets an input, and what it depends on.
pub(super) fn depend(goal: &mut Goal, key: &str, on: &RegisterResult) {
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

pub(super) fn set(goal: &mut Goal, key: &str, value: impl Into<PropertyValue>) {
    goal.properties.insert(key.to_owned(), value.into());
}

pub(super) fn urn(name: &str) -> Urn {
    Urn::new(STACK, PROJECT, None, TYPE, name)
}
