//! A program, a state and somebody who listens.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{Result, StackOperation};
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Owner};
use nimbus_engine_operations::{
    Cancellation, Engine, OperationOptions, OperationReport, OperationRequest, StackAccess,
    StackGrant, StackLocation,
};
use nimbus_engine_ports::{EngineEvent, EventSink};
use parking_lot::Mutex;
use tempfile::TempDir;

pub(crate) struct OfficialSite {
    root: TempDir,
}

impl OfficialSite {
    /// A program with this source, and an empty place for its state.
    pub(crate) fn new(source: &str) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        for folder in ["program", "state", "home"] {
            fs::create_dir(root.path().join(folder)).expect("a folder");
        }
        let place = Self { root };
        place.write("program/Pulumi.yaml", "name: own\nruntime: nodejs\n");
        place.write("program/index.js", source);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What an engine sees: programs of this folder first.
    pub(crate) fn environment(&self, programs: &Path) -> EnvironmentVariables {
        let rest = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{rest}", programs.display());
        let home = self.path("home").display().to_string();
        EnvironmentVariables::fixed([
            ("PATH", &path),
            ("HOME", &home),
            ("PULUMI_HOME", &format!("{home}/pulumi")),
            ("PULUMI_CONFIG_PASSPHRASE", "correct horse"),
        ])
    }

    pub(crate) fn location(&self, stack: &str) -> StackLocation {
        StackLocation {
            directory: self.path("program"),
            stack: stack.to_owned(),
            backend: Some(format!("file://{}", self.path("state").display())),
            granted: StackGrant::Own,
        }
    }

    pub(crate) fn request(&self, stack: &str, operation: StackOperation) -> OperationRequest {
        OperationRequest {
            location: self.location(stack),
            operation,
            options: OperationOptions {
                transpile_only: true,
                ..OperationOptions::default()
            },
        }
    }

    /// Shows what an update would do.
    pub(crate) fn preview(&self, stack: &str) -> OperationRequest {
        let mut request = self.request(stack, StackOperation::Update);
        request.options.dry_run = true;
        request
    }

    pub(crate) async fn make_stack(&self, stack: &str, environment: &EnvironmentVariables) {
        let access = StackAccess::open(&self.location(stack), environment, &KeyServices::Any).await;
        let stack = access.expect("a backend").stack();
        stack
            .create(Owner::current("a test"))
            .await
            .expect("a new stack");
    }

    pub(crate) async fn exists(&self, stack: &str, environment: &EnvironmentVariables) -> bool {
        let access = StackAccess::open(&self.location(stack), environment, &KeyServices::Any).await;
        access
            .expect("a backend")
            .stack()
            .exists()
            .await
            .expect("an answer")
    }
}

#[derive(Default)]
pub(crate) struct Listener {
    events: Mutex<Vec<EngineEvent>>,
}

impl Listener {
    pub(crate) fn events(&self) -> Vec<EngineEvent> {
        self.events.lock().clone()
    }
}

impl EventSink for Listener {
    fn emit(&self, event: EngineEvent) {
        self.events.lock().push(event);
    }
}

/// Runs an operation that nobody stops.
pub(crate) async fn run(
    engine: &dyn Engine,
    request: &OperationRequest,
) -> (Result<OperationReport>, Vec<EngineEvent>) {
    let listener = Arc::new(Listener::default());
    let sink = Arc::clone(&listener) as Arc<dyn EventSink>;
    let report = engine.run(request, sink, &Cancellation::new()).await;
    (report, listener.events())
}
