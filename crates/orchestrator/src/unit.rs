//! The work of one unit: resolve its configuration, decide whether anything changed, and have an
//! engine do the rest.
//!
//! The engine is a port. What units tell each other goes through [`Board`]: outputs of units that
//! ran in this run, or else as recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{DeploymentId, Error, ErrorCode, Result};
use tokio::sync::Mutex;

use crate::environment::Environment;
use crate::fingerprint::{Fingerprint, Input, Reason, must_run};
use crate::graph::Name;
use crate::manifest::Manifest;
use crate::memory::{Memory, MemoryStore, RememberedRun};
use crate::naming;
use crate::program::add_program;
use crate::resolve::{Answer, Lookup, LookupError, Resolution, Resolved, resolve};
use crate::workspace::Workspace;

/// What an engine is asked to do with one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub stack: Name,
    /// Name of the Pulumi stack.
    pub unit: String,
    /// The business project, under whose name the program runs.
    pub project: String,
    pub program: PathBuf,
    pub config: BTreeMap<String, Resolved>,
    pub action: JobAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    Preview,
    Deploy,
    Destroy,
    Refresh,
    /// Back to what was recorded before this run.
    RollBack,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReport {
    pub outputs: BTreeMap<String, Answer>,
    /// Steps by kind.
    pub changes: BTreeMap<String, u64>,
    pub resources: u64,
    pub seconds: u64,
}

#[async_trait]
pub trait UnitEngine: Send + Sync {
    /// An error is what the user sees; what was done is recorded all the same.
    async fn run(&self, job: &Job) -> Result<JobReport>;
    /// Outputs as recorded; `None` for a unit that was never deployed.
    async fn outputs(&self, project: &str, unit: &str) -> Result<Option<BTreeMap<String, Answer>>>;
    /// Names and versions of everything that can change what a program does.
    fn versions(&self) -> BTreeMap<String, String>;
}

/// Everything outside of a deployment that its values can come from.
#[async_trait]
pub trait Outside: Send + Sync {
    async fn aws(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<Answer, LookupError>;
    async fn env(&self, variable: &str) -> Result<Answer, LookupError>;
    /// A calculation; one that must stay the same is looked up in `memory` and kept there.
    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        memory: &mut Memory,
    ) -> Result<Answer, LookupError>;
}

/// What a deployment's units share during a run.
pub struct Board {
    pub workspace: Workspace,
    pub directory: PathBuf,
    pub manifest: Manifest,
    pub environment: Environment,
    pub engine: Arc<dyn UnitEngine>,
    pub outside: Arc<dyn Outside>,
    /// Outputs by stack, of this run or as recorded.
    outputs: Mutex<BTreeMap<Name, BTreeMap<String, Answer>>>,
}

/// Why a unit ran or did not, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Deployed {
    Skipped,
    Ran { reason: Reason, report: JobReport },
}

impl Board {
    pub fn new(
        workspace: Workspace,
        directory: PathBuf,
        manifest: Manifest,
        environment: Environment,
        engine: Arc<dyn UnitEngine>,
        outside: Arc<dyn Outside>,
    ) -> Self {
        let outputs = Mutex::default();
        Self {
            workspace,
            directory,
            manifest,
            environment,
            engine,
            outside,
            outputs,
        }
    }

    pub fn id(&self) -> &DeploymentId {
        &self.manifest.metadata.id
    }

    /// Deploys a unit unless nothing that concerns it has changed.
    pub async fn deploy(&self, stack: &str, force: bool) -> Result<Deployed> {
        let store = MemoryStore::of_deployment(&self.directory);
        let mut memory = store.load(stack, self.environment)?;
        let resolution = self.resolve(stack, &mut memory).await?;
        let fingerprint = self.fingerprint(stack, &resolution)?;
        let Some(reason) = must_run(&fingerprint, memory.last().as_ref(), force) else {
            let recorded = self.recorded_outputs(stack).await?;
            self.outputs.lock().await.insert(stack.to_owned(), recorded);
            return Ok(Deployed::Skipped);
        };
        // Made-up values must survive even if the run does not.
        store.save(stack, self.environment, &memory)?;
        let result = self
            .engine
            .run(&self.job(stack, JobAction::Deploy, resolution.config))
            .await;
        let report = result.as_ref().ok();
        memory.last_run = Some(RememberedRun {
            succeeded: report.is_some(),
            drifted: false,
            seconds: report.map_or(0, |report| report.seconds),
            resources: report.map_or(0, |report| report.resources),
            fingerprint,
        });
        store.save(stack, self.environment, &memory)?;
        let report = result?;
        self.outputs
            .lock()
            .await
            .insert(stack.to_owned(), report.outputs.clone());
        Ok(Deployed::Ran { reason, report })
    }

    /// Shows what a deploy would do, with the outputs that units before it would have.
    pub async fn preview(&self, stack: &str) -> Result<JobReport> {
        let store = MemoryStore::of_deployment(&self.directory);
        let mut memory = store.load(stack, self.environment)?;
        let resolution = self.resolve(stack, &mut memory).await?;
        let report = self
            .engine
            .run(&self.job(stack, JobAction::Preview, resolution.config))
            .await?;
        self.outputs
            .lock()
            .await
            .insert(stack.to_owned(), report.outputs.clone());
        Ok(report)
    }

    /// Deletes what a unit has and forgets its last run.
    pub async fn destroy(&self, stack: &str) -> Result<JobReport> {
        let report = self
            .engine
            .run(&self.job(stack, JobAction::Destroy, BTreeMap::new()))
            .await?;
        let store = MemoryStore::of_deployment(&self.directory);
        let mut memory = store.load(stack, self.environment)?;
        memory.last_run = None;
        store.save(stack, self.environment, &memory)?;
        Ok(report)
    }

    /// Returns a unit to what was recorded before this run. Its next deploy is not skipped.
    pub async fn roll_back(&self, stack: &str) -> Result<JobReport> {
        let store = MemoryStore::of_deployment(&self.directory);
        let mut memory = store.load(stack, self.environment)?;
        if let Some(last) = &mut memory.last_run {
            last.succeeded = false;
        }
        store.save(stack, self.environment, &memory)?;
        self.engine
            .run(&self.job(stack, JobAction::RollBack, BTreeMap::new()))
            .await
    }

    /// Why a deploy would run this unit now; `None` if it would be skipped.
    pub async fn why(&self, stack: &str) -> Result<Option<Reason>> {
        let mut memory =
            MemoryStore::of_deployment(&self.directory).load(stack, self.environment)?;
        let Some(last) = memory.last() else {
            return Ok(Some(Reason::NeverDeployed));
        };
        let resolution = self.resolve(stack, &mut memory).await?;
        let fingerprint = self.fingerprint(stack, &resolution)?;
        Ok(must_run(&fingerprint, Some(&last), false))
    }

    fn job(&self, stack: &str, action: JobAction, config: BTreeMap<String, Resolved>) -> Job {
        Job {
            stack: stack.to_owned(),
            unit: naming::unit(self.id(), stack, self.environment),
            project: naming::sanitize(&self.manifest.metadata.project),
            program: self.workspace.stack_source(stack),
            config,
            action,
        }
    }

    async fn resolve(&self, stack: &str, memory: &mut Memory) -> Result<Resolution> {
        let entry = self.manifest.stacks.get(stack);
        let config = entry.and_then(|entry| entry.config.get(&self.environment));
        let config = config.cloned().unwrap_or_default();
        let desk = Desk {
            board: self,
            memory: Mutex::new(std::mem::take(memory)),
        };
        let resolved = resolve(&config, &desk).await;
        *memory = desk.memory.into_inner();
        let mut resolution = resolved.map_err(|error| {
            Error::new(
                ErrorCode::RESOLUTION_FAILED,
                format!("stack {stack}, {}: {error}", self.environment),
            )
            .with_help("correct the placeholder, or deploy what it refers to first")
        })?;
        let named = |(key, value): (String, Resolved)| {
            (
                if key.contains(':') {
                    key
                } else {
                    format!("{stack}:{key}")
                },
                value,
            )
        };
        resolution.config = resolution.config.into_iter().map(named).collect();
        if let Some(target) = self.manifest.environments.get(&self.environment) {
            let region = Resolved::Known {
                value: target.region.clone().into(),
                secret: false,
            };
            resolution
                .config
                .entry("aws:region".to_owned())
                .or_insert(region);
        }
        Ok(resolution)
    }

    fn fingerprint(&self, stack: &str, resolution: &Resolution) -> Result<Fingerprint> {
        let mut fingerprint = Fingerprint::default();
        let source = self.workspace.stack_source(stack);
        let root = self.workspace.root().join("stacks");
        add_program(&mut fingerprint, &source, &root).map_err(|error| {
            let message = format!("cannot read the program of {stack}: {error}");
            Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
        })?;
        for (key, value) in &resolution.config {
            fingerprint.add(Input::Config(key.clone()), content(value));
        }
        for (placeholder, answer) in &resolution.lookups {
            let input = match placeholder.strip_prefix("{{RUNTIME:env:") {
                Some(_) => Input::Environment(placeholder.clone()),
                None => Input::Resolved(placeholder.clone()),
            };
            fingerprint.add(input, format!("{answer:?}"));
        }
        for (tool, version) in self.engine.versions() {
            fingerprint.add(Input::Version(tool), version);
        }
        Ok(fingerprint)
    }

    async fn recorded_outputs(&self, stack: &str) -> Result<BTreeMap<String, Answer>> {
        let unit = naming::unit(self.id(), stack, self.environment);
        let project = naming::sanitize(&self.manifest.metadata.project);
        Ok(self
            .engine
            .outputs(&project, &unit)
            .await?
            .unwrap_or_default())
    }
}

fn content(value: &Resolved) -> String {
    match value {
        Resolved::Known { value, secret } => format!("{secret} {value}"),
        Resolved::Unknown => "unknown".to_owned(),
    }
}

/// Answers the lookups of one unit.
struct Desk<'a> {
    board: &'a Board,
    memory: Mutex<Memory>,
}

#[async_trait]
impl Lookup for Desk<'_> {
    async fn output(&self, stack: &str, output: &str) -> Result<Answer, LookupError> {
        let known = self.board.outputs.lock().await.get(stack).cloned();
        let outputs = match known {
            Some(outputs) => outputs,
            None => {
                let recorded = self.board.recorded_outputs(stack).await;
                let recorded = recorded.map_err(|error| LookupError {
                    message: error.to_string(),
                })?;
                self.board
                    .outputs
                    .lock()
                    .await
                    .insert(stack.to_owned(), recorded.clone());
                recorded
            }
        };
        Ok(outputs.get(output).cloned().unwrap_or(Answer::Absent))
    }

    async fn aws(&self, query: &str, parameters: &[String]) -> Result<Answer, LookupError> {
        let target = self
            .board
            .manifest
            .environments
            .get(&self.board.environment);
        let region = target.map_or("", |target| target.region.as_str());
        self.board.outside.aws(region, query, parameters).await
    }

    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
    ) -> Result<Answer, LookupError> {
        let mut memory = self.memory.lock().await;
        self.board
            .outside
            .calculate(function, parameters, &mut memory)
            .await
    }

    async fn env(&self, variable: &str) -> Result<Answer, LookupError> {
        self.board.outside.env(variable).await
    }
}
