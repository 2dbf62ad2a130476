//! A unit on the embedded engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{Error, Result};
use nimbus_engine_backend::{BackendError, Environment};
use nimbus_engine_model::Snapshot;
use nimbus_engine_operations::{
    Action, Cancellation, EmbeddedEngine, Engine, GivenConfig, Mode, Processes, RunOptions,
    RunRequest, StackAccess, StackLocation, stack_outputs,
};
use nimbus_engine_ports::{EventSink, ProviderHost};
use nimbus_orchestrator::resolve::{Answer, Resolved};
use nimbus_orchestrator::unit::{Job, JobAction, JobReport, UnitEngine};
use serde_json::Value;
use tokio::sync::Mutex;

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
}

pub struct LocalEngine {
    options: LocalOptions,
    events: EventsOf,
    cancellation: Cancellation,
    environment: Environment,
    /// What each unit's record was before this run first touched it.
    before: Mutex<BTreeMap<String, Snapshot>>,
}

impl LocalEngine {
    pub fn new(options: LocalOptions, events: EventsOf, cancellation: Cancellation) -> Self {
        Self {
            options,
            events,
            cancellation,
            environment: Environment::process(),
            before: Mutex::default(),
        }
    }

    fn location(&self, directory: PathBuf, project: &str, unit: &str) -> StackLocation {
        StackLocation {
            directory,
            stack: format!("organization/{project}/{unit}"),
            backend: Some(self.options.backend.clone()),
        }
    }

    async fn recorded(&self, location: &StackLocation) -> Result<Option<Snapshot>> {
        let access = StackAccess::open(location, &self.environment).await?;
        match access.stack().load(&access.keyring).await {
            Ok(loaded) => Ok(loaded.snapshot),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The action for the engine, and whether it only looks.
    async fn action(&self, job: &Job, location: &StackLocation) -> Result<(Action, Mode)> {
        Ok(match job.action {
            JobAction::Preview => (Action::Update, Mode::Preview),
            JobAction::Deploy => {
                let mut before = self.before.lock().await;
                if !before.contains_key(&job.unit) {
                    let recorded = self.recorded(location).await?.unwrap_or_default();
                    before.insert(job.unit.clone(), recorded);
                }
                (Action::Update, Mode::Apply)
            }
            JobAction::Destroy => (Action::Destroy, Mode::Apply),
            JobAction::Refresh => (Action::Refresh, Mode::Apply),
            JobAction::RollBack => {
                let before = self
                    .before
                    .lock()
                    .await
                    .get(&job.unit)
                    .cloned()
                    .unwrap_or_default();
                (Action::Restore(Box::new(before)), Mode::Apply)
            }
        })
    }
}

#[async_trait]
impl UnitEngine for LocalEngine {
    async fn run(&self, job: &Job) -> Result<JobReport> {
        let location = self.location(job.program.clone(), &job.project, &job.unit);
        let (action, mode) = self.action(job, &location).await?;
        if action == Action::Destroy && self.recorded(&location).await?.is_none() {
            return Ok(JobReport::default());
        }
        let request = RunRequest {
            location,
            action,
            mode,
            options: RunOptions {
                parallel: self.options.parallel,
                transpile_only: self.options.transpile_only,
                ..RunOptions::default()
            },
        };
        let processes = match &self.options.simulated {
            Some(simulated) => Processes::simulating(Arc::clone(simulated)),
            None => Processes::new(),
        };
        let engine = EmbeddedEngine::with(self.environment.clone(), Arc::new(processes))
            .given(given(&job.config));
        let report = engine
            .run(&request, (self.events)(&job.stack), &self.cancellation)
            .await?;
        report.result?;
        Ok(JobReport {
            outputs: answers(&report.outputs),
            resources: report.changes.values().map(|count| *count as u64).sum(),
            changes: report
                .changes
                .into_iter()
                .map(|(op, count)| (op.to_string(), count as u64))
                .collect(),
            seconds: report.duration.as_secs(),
        })
    }

    async fn outputs(&self, project: &str, unit: &str) -> Result<Option<BTreeMap<String, Answer>>> {
        let location = self.location(std::env::temp_dir(), project, unit);
        let recorded: Result<Option<Snapshot>, Error> = self.recorded(&location).await;
        Ok(recorded?.map(|snapshot| answers(&stack_outputs(&snapshot))))
    }

    fn versions(&self) -> BTreeMap<String, String> {
        let engine = if self.options.simulated.is_some() {
            "rehearsal"
        } else {
            "embedded"
        };
        BTreeMap::from([(
            "nimbus".to_owned(),
            format!("{} {engine}", env!("CARGO_PKG_VERSION")),
        )])
    }
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
