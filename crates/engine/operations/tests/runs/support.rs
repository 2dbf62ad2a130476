//! A project in a temporary folder, and a launcher without processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{Error, Result, StackOperation};
use nimbus_engine_backend::{
    EnvironmentVariables, KeyServices, Keyring, Owner, PASSPHRASE, SessionRequest, Stack,
    StackSession, UpdateKind,
};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_monitor::StackReader;
use nimbus_engine_operations::{
    Cancellation, EmbeddedEngine, Engine, OperationOptions, OperationReport, OperationRequest,
    OperationRuntime, RuntimeLauncher, RuntimeSetup, StackAccess, StackGrant, StackLocation,
};
use nimbus_engine_ports::{Analyzer, Diagnostic, EngineEvent, EventSink, HookRunner, ProviderHost};
use nimbus_engine_testing::{
    Cloud, Execution, FakeProvider, Faults, RecordedHooks, ScriptedProgram, ScriptedResource,
};
use parking_lot::Mutex;

type TearDown = Box<dyn FnOnce() + Send + Sync>;
pub(crate) type OnEvent = Box<dyn Fn(&EngineEvent) + Send + Sync>;

/// Everything that a test can turn.
#[derive(Default)]
pub(crate) struct ScriptedLauncher {
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) faults: Arc<Mutex<Faults>>,
    program: Mutex<ScriptedProgram>,
    stacks: Mutex<Option<Arc<dyn StackReader>>>,
    says: Mutex<Option<Diagnostic>>,
    at_tear_down: Arc<Mutex<Option<TearDown>>>,
}

#[async_trait]
impl RuntimeLauncher for ScriptedLauncher {
    async fn set_up(&self, setup: RuntimeSetup<'_>) -> Result<Box<dyn OperationRuntime>> {
        *self.stacks.lock() = Some(Arc::clone(&setup.stacks));
        if let Some(diagnostic) = self.says.lock().clone() {
            setup.events.emit(EngineEvent::Diagnostic(diagnostic));
        }
        let provider = FakeProvider::new(Arc::clone(&self.cloud), Arc::clone(&self.faults));
        Ok(Box::new(BenchTools {
            host: Arc::new(provider),
            program: Arc::new(Execution::new(self.program.lock().clone())),
            packages: BTreeMap::new(),
            at_tear_down: Arc::clone(&self.at_tear_down),
        }))
    }
}

struct BenchTools {
    host: Arc<dyn ProviderHost>,
    program: Arc<dyn nimbus_engine_ports::Program>,
    packages: BTreeMap<String, PackageDescriptor>,
    at_tear_down: Arc<Mutex<Option<TearDown>>>,
}

#[async_trait]
impl OperationRuntime for BenchTools {
    fn host(&self) -> Arc<dyn ProviderHost> {
        Arc::clone(&self.host)
    }

    fn hooks(&self) -> Arc<dyn HookRunner> {
        Arc::new(RecordedHooks::default())
    }

    fn analyzers(&self) -> Vec<Arc<dyn Analyzer>> {
        Vec::new()
    }

    fn program(&self) -> Option<Arc<dyn nimbus_engine_ports::Program>> {
        Some(Arc::clone(&self.program))
    }

    fn packages(&self) -> &BTreeMap<String, PackageDescriptor> {
        &self.packages
    }

    async fn tear_down(self: Box<Self>) {
        let act = self.at_tear_down.lock().take();
        if let Some(act) = act {
            act();
        }
    }
}

/// Keeps events, and may do something when one comes.
#[derive(Default)]
pub(crate) struct Recorded {
    events: Mutex<Vec<EngineEvent>>,
    on_event: Option<OnEvent>,
}

impl EventSink for Recorded {
    fn emit(&self, event: EngineEvent) {
        if let Some(act) = &self.on_event {
            act(&event);
        }
        self.events.lock().push(event);
    }
}

/// A project with one stack, over many runs.
pub(crate) struct Site {
    folder: PathBuf,
    /// Removed with the site, unless somebody else looks at it afterwards.
    _temporary: Option<tempfile::TempDir>,
    pub(crate) launcher: Arc<ScriptedLauncher>,
    passphrase: Mutex<Option<&'static str>>,
}

/// What one run gave.
pub(crate) struct RanOperation {
    pub(crate) report: Result<OperationReport>,
    pub(crate) events: Vec<EngineEvent>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let mut site = Self::at(temporary.path(), Cloud::default());
        site._temporary = Some(temporary);
        site
    }

    /// In a folder of somebody else, over a cloud that they look at.
    pub(crate) fn at(folder: &Path, cloud: Cloud) -> Self {
        let launcher = ScriptedLauncher {
            cloud: Arc::new(cloud),
            ..ScriptedLauncher::default()
        };
        let site = Self {
            folder: folder.to_owned(),
            _temporary: None,
            launcher: Arc::new(launcher),
            passphrase: Mutex::new(Some("correct horse")),
        };
        site.write("Pulumi.yaml", "name: proj\nruntime: nodejs\n");
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("program").join(name)
    }

    pub(crate) fn state_folder(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    pub(crate) fn program(&self, resources: impl IntoIterator<Item = ScriptedResource>) {
        *self.launcher.program.lock() = ScriptedProgram::new(resources);
    }

    /// Something that is said during the next runs.
    pub(crate) fn says(&self, diagnostic: Diagnostic) {
        *self.launcher.says.lock() = Some(diagnostic);
    }

    /// Happens once, between the last step and the saving of the state.
    pub(crate) fn before_saving(&self, act: impl FnOnce() + Send + Sync + 'static) {
        *self.launcher.at_tear_down.lock() = Some(Box::new(act));
    }

    /// Reads other stacks, as the last run could.
    pub(crate) fn stacks(&self) -> Arc<dyn StackReader> {
        let stacks = self.launcher.stacks.lock();
        Arc::clone(stacks.as_ref().expect("something was run"))
    }

    /// The passphrase of later runs.
    pub(crate) fn passphrase(&self, passphrase: Option<&'static str>) {
        *self.passphrase.lock() = passphrase;
    }

    pub(crate) fn environment(&self) -> EnvironmentVariables {
        match *self.passphrase.lock() {
            Some(passphrase) => EnvironmentVariables::fixed([(PASSPHRASE, passphrase)]),
            None => EnvironmentVariables::fixed([]),
        }
    }

    pub(crate) fn location(&self) -> StackLocation {
        StackLocation {
            directory: self.path(""),
            stack: "test".to_owned(),
            backend: Some(format!("file://{}", self.state_folder().display())),
            granted: StackGrant::Own,
        }
    }

    pub(crate) async fn stack(&self) -> Stack {
        let access =
            StackAccess::open(&self.location(), &self.environment(), &KeyServices::Any).await;
        access.expect("the stack can be opened").stack()
    }

    /// Holds the stack, as another process would.
    pub(crate) async fn hold(&self) -> StackSession {
        let access =
            StackAccess::open(&self.location(), &self.environment(), &KeyServices::Any).await;
        let access = access.expect("the stack can be opened");
        let request = SessionRequest {
            kind: UpdateKind::Update,
            owner: Owner::current("somebody else"),
            keyring: Arc::clone(&access.keyring),
            secrets: Default::default(),
            expected: None,
        };
        access
            .stack()
            .begin(request)
            .await
            .expect("the stack is free")
    }

    pub(crate) async fn up(&self) -> RanOperation {
        self.run(StackOperation::Update, OperationOptions::default())
            .await
    }

    pub(crate) async fn preview(&self) -> RanOperation {
        let options = OperationOptions {
            dry_run: true,
            ..OperationOptions::default()
        };
        self.run(StackOperation::Update, options).await
    }

    pub(crate) async fn run(
        &self,
        operation: StackOperation,
        options: OperationOptions,
    ) -> RanOperation {
        self.watched(operation, options, &Cancellation::new(), None)
            .await
    }

    pub(crate) async fn watched(
        &self,
        operation: StackOperation,
        options: OperationOptions,
        cancellation: &Cancellation,
        on_event: Option<OnEvent>,
    ) -> RanOperation {
        let request = OperationRequest {
            location: self.location(),
            operation,
            options: OperationOptions {
                parallel: options.parallel.or(Some(1)),
                ..options
            },
        };
        let sink = Arc::new(Recorded {
            events: Mutex::default(),
            on_event,
        });
        let launcher = Arc::clone(&self.launcher) as Arc<dyn RuntimeLauncher>;
        let engine =
            EmbeddedEngine::with_keys(Keyring::new(self.environment(), KeyServices::Any), launcher);
        let report = engine
            .run(&request, Arc::clone(&sink) as _, cancellation)
            .await;
        let events = std::mem::take(&mut *sink.events.lock());
        RanOperation { report, events }
    }
}

impl RanOperation {
    pub(crate) fn report(&self) -> &OperationReport {
        self.report.as_ref().expect("the operation started")
    }

    /// The report of an operation that went well.
    pub(crate) fn succeeded(&self) -> &OperationReport {
        let report = self.report();
        assert!(report.result.is_ok(), "{:?}", report.result);
        report
    }

    /// The error with which the operation ended, or could not start.
    pub(crate) fn error(&self) -> &Error {
        match &self.report {
            Ok(report) => report.result.as_ref().expect_err("the operation failed"),
            Err(error) => error,
        }
    }

    pub(crate) fn messages(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                EngineEvent::Diagnostic(diagnostic) => Some(diagnostic.message.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// Every file below a folder, relative to it.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(next) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                found.push(relative.display().to_string());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn bucket(name: &str) -> ScriptedResource {
    ScriptedResource::custom("pkg:index:Bucket", name).prop("size", 1.0)
}
