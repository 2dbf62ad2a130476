//! The work of one unit: resolve its configuration, decide whether anything changed, and have an
//! engine do the rest.
//!
//! The engine is a port. What units tell each other goes through [`Board`]: outputs of units that
//! ran in this run, or else as recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{DeploymentId, Error, ErrorCode, Result};
use tokio::sync::Mutex;

use crate::environment::Environment;
use crate::fingerprint::{DigestKey, Fingerprint, Input, Reason, must_run};
use crate::graph::Name;
use crate::manifest::Manifest;
use crate::memory::{Memory, MemoryStore, RememberedRun};
use crate::naming;
use crate::network::NetworkAccess;
use crate::program::add_program;
use crate::resolve::{Answer, Lookup, LookupError, Resolution, Resolved, resolve};
use crate::run::Trigger;
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
    /// What its program may reach from a sandbox, if the manifest says so.
    pub network: Option<NetworkAccess>,
    pub action: JobAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    Preview,
    Deploy,
    Destroy,
    Refresh,
    /// Back to what was recorded before this run, proved by a look at what is there.
    RollBack,
    /// Back to a state of its history; `None` for nothing at all.
    Restore(Option<usize>),
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReport {
    pub outputs: BTreeMap<String, Answer>,
    /// Steps by kind.
    pub changes: BTreeMap<String, u64>,
    /// What is done to which resource, by URN; unchanged ones are left out.
    pub steps: BTreeMap<String, String>,
    pub resources: u64,
    pub seconds: u64,
}

/// Why a job did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct JobError {
    #[source]
    pub error: Error,
    /// Whether it is a failure that undoes a run by itself.
    pub trigger: Option<Trigger>,
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self {
            error,
            trigger: None,
        }
    }
}

#[async_trait]
pub trait UnitEngine: Send + Sync {
    /// An error is what the user sees; what was done is recorded all the same.
    async fn run(&self, job: &Job) -> Result<JobReport, JobError>;
    /// Outputs as recorded; `None` for a unit that was never deployed.
    async fn outputs(&self, project: &str, unit: &str) -> Result<Option<BTreeMap<String, Answer>>>;
    /// Where the recorded state is: `None` when there is none. Another text means another state.
    async fn state_version(&self, project: &str, unit: &str) -> Result<Option<String>>;
    /// Number of the newest state in the unit's history.
    async fn history_length(&self, project: &str, unit: &str) -> Result<usize>;
    /// Refuses a run that could not read or write what is recorded of these units, before it begins.
    async fn ready(&self, _project: &str, _units: &[String]) -> Result<()> {
        Ok(())
    }
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
    pub key: DigestKey,
    /// Outputs by stack, of this run or as recorded.
    outputs: Mutex<BTreeMap<Name, BTreeMap<String, Answer>>>,
    /// Stacks whose outputs are not known before they have run.
    expected: Mutex<BTreeSet<Name>>,
}

/// Why a unit ran or did not, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Deployed {
    Skipped,
    Ran { reason: Reason, report: JobReport },
}

/// A unit with everything that its deploy depends on, as it was at one moment.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub stack: Name,
    pub memory: Memory,
    pub fingerprint: Fingerprint,
    config: BTreeMap<String, Resolved>,
}

/// What a deploy would do.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// Why it would run; `None` when it would be skipped.
    pub reason: Option<Reason>,
    pub fingerprint: Fingerprint,
    pub report: JobReport,
}

impl Board {
    pub fn new(
        workspace: Workspace,
        directory: PathBuf,
        manifest: Manifest,
        environment: Environment,
        engine: Arc<dyn UnitEngine>,
        outside: Arc<dyn Outside>,
        key: DigestKey,
    ) -> Self {
        let (outputs, expected) = (Mutex::default(), Mutex::default());
        Self {
            workspace,
            directory,
            manifest,
            environment,
            engine,
            outside,
            key,
            outputs,
            expected,
        }
    }

    pub fn id(&self) -> &DeploymentId {
        &self.manifest.metadata.id
    }

    /// Deploys a unit unless nothing that concerns it has changed.
    pub async fn deploy(&self, stack: &str, force: bool) -> Result<Deployed, JobError> {
        let prepared = self.prepare(stack).await?;
        let last = prepared.memory.last();
        match must_run(&prepared.fingerprint, last.as_ref(), force) {
            None => Ok(Deployed::Skipped),
            Some(reason) => self.deploy_prepared(prepared, reason).await,
        }
    }

    /// What a deploy of this unit would be given now.
    pub async fn prepare(&self, stack: &str) -> Result<Prepared> {
        let mut memory = self.store().load(stack, self.environment)?;
        let resolution = self.resolve(stack, &mut memory).await?;
        let fingerprint = self.fingerprint(stack, &resolution)?;
        Ok(Prepared {
            stack: stack.to_owned(),
            memory,
            fingerprint,
            config: resolution.config,
        })
    }

    /// Deploys a unit with what it was prepared with.
    pub async fn deploy_prepared(
        &self,
        prepared: Prepared,
        reason: Reason,
    ) -> Result<Deployed, JobError> {
        let Prepared {
            stack,
            mut memory,
            fingerprint,
            config,
        } = prepared;
        let store = self.store();
        // Made-up values must survive even if the run does not, and a run that is cut off must not
        // be taken for the good one before it.
        let begun = RememberedRun {
            succeeded: false,
            drifted: false,
            seconds: memory.last_run.as_ref().map_or(0, |last| last.seconds),
            resources: memory.last_run.as_ref().map_or(0, |last| last.resources),
            fingerprint,
        };
        memory.last_run = Some(begun.clone());
        store.save(&stack, self.environment, &memory)?;
        let job = self.job(&stack, JobAction::Deploy, config);
        let report = self.engine.run(&job).await?;
        memory.last_run = Some(RememberedRun {
            succeeded: true,
            seconds: report.seconds,
            resources: report.resources,
            ..begun
        });
        store.save(&stack, self.environment, &memory)?;
        let mut outputs = self.outputs.lock().await;
        outputs.insert(stack, report.outputs.clone());
        drop(outputs);
        Ok(Deployed::Ran { reason, report })
    }

    /// Shows what a deploy would do, with the outputs that units before it would have.
    pub async fn preview(&self, stack: &str) -> Result<Previewed, JobError> {
        let prepared = self.prepare(stack).await?;
        let job = self.job(stack, JobAction::Preview, prepared.config);
        let report = self.engine.run(&job).await?;
        let mut outputs = self.outputs.lock().await;
        outputs.insert(stack.to_owned(), report.outputs.clone());
        drop(outputs);
        let reason = must_run(
            &prepared.fingerprint,
            prepared.memory.last().as_ref(),
            false,
        );
        Ok(Previewed {
            reason,
            fingerprint: prepared.fingerprint,
            report,
        })
    }

    /// What a deploy would do with what was prepared, without handing anything on.
    pub async fn rehearse_prepared(&self, prepared: &Prepared) -> Result<JobReport, JobError> {
        let config = prepared.config.clone();
        let job = self.job(&prepared.stack, JobAction::Preview, config);
        self.engine.run(&job).await
    }

    /// Deletes what a unit has and forgets its last run.
    pub async fn destroy(&self, stack: &str) -> Result<JobReport, JobError> {
        let job = self.job(stack, JobAction::Destroy, BTreeMap::new());
        let report = self.engine.run(&job).await?;
        self.forget(stack, |memory| memory.last_run = None)?;
        Ok(report)
    }

    /// Returns a unit to what was recorded before this run. Its next deploy is not skipped.
    pub async fn roll_back(&self, stack: &str) -> Result<JobReport, JobError> {
        self.forget(stack, void_last_run)?;
        let job = self.job(stack, JobAction::RollBack, BTreeMap::new());
        self.engine.run(&job).await
    }

    /// Returns a unit to a state of its history, or to nothing. Its next deploy is not skipped.
    pub async fn restore(&self, stack: &str, state: Option<usize>) -> Result<JobReport, JobError> {
        self.forget(stack, void_last_run)?;
        let job = self.job(stack, JobAction::Restore(state), BTreeMap::new());
        self.engine.run(&job).await
    }

    /// Why a deploy would run this unit now; `None` if it would be skipped.
    pub async fn why(&self, stack: &str) -> Result<Option<Reason>> {
        if self.memory(stack)?.last_run.is_none() {
            return Ok(Some(Reason::NeverDeployed));
        }
        let prepared = self.prepare(stack).await?;
        let last = prepared.memory.last();
        Ok(must_run(&prepared.fingerprint, last.as_ref(), false))
    }

    /// From now on the outputs of a stack count as unknown, whatever is recorded of it.
    pub async fn expect_outputs(&self, stack: &str) {
        self.expected.lock().await.insert(stack.to_owned());
    }

    /// What is remembered of a unit.
    pub fn memory(&self, stack: &str) -> Result<Memory> {
        self.store().load(stack, self.environment)
    }

    /// Name of the Pulumi stack of a unit, and of the project that it is in.
    pub fn address(&self, stack: &str) -> (String, String) {
        let unit = naming::unit(self.id(), stack, self.environment);
        (naming::sanitize(&self.manifest.metadata.project), unit)
    }

    /// Refuses a run over these stacks that would find out in the middle that it cannot go on.
    pub async fn ready(&self, stacks: impl Iterator<Item = &str>) -> Result<()> {
        let units: Vec<String> = stacks.map(|stack| self.address(stack).1).collect();
        let project = naming::sanitize(&self.manifest.metadata.project);
        self.engine.ready(&project, &units).await
    }

    /// The recorded state of a unit, so that it can be told from any other.
    pub async fn state_version(&self, stack: &str) -> Result<Option<String>> {
        let (project, unit) = self.address(stack);
        self.engine.state_version(&project, &unit).await
    }

    fn store(&self) -> MemoryStore {
        MemoryStore::of_deployment(&self.directory)
    }

    fn forget(&self, stack: &str, change: impl FnOnce(&mut Memory)) -> Result<()> {
        let mut memory = self.memory(stack)?;
        change(&mut memory);
        self.store().save(stack, self.environment, &memory)
    }

    fn job(&self, stack: &str, action: JobAction, config: BTreeMap<String, Resolved>) -> Job {
        let (project, unit) = self.address(stack);
        Job {
            stack: stack.to_owned(),
            unit,
            project,
            program: self.workspace.stack_source(stack),
            config,
            network: self
                .manifest
                .stacks
                .get(stack)
                .and_then(|entry| entry.network),
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
            let message = format!("stack {stack}, {}: {error}", self.environment);
            // Where it stands in the manifest, if that can still be read.
            let spot = error.spot(stack, self.environment);
            let error = match self.workspace.manifest_document(self.id().as_str()) {
                Ok(document) => spot.point(&document, ErrorCode::RESOLUTION_FAILED, message),
                Err(_) => Error::new(ErrorCode::RESOLUTION_FAILED, message),
            };
            error.with_help("correct the placeholder, or deploy what it refers to first")
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
            let input = Input::Config(key.clone());
            match value {
                Resolved::Known { value, secret } => {
                    fingerprint.add_private(&self.key, input, format!("{secret} {value}"));
                }
                Resolved::Unknown => fingerprint.add_unknown(input),
            }
        }
        for (placeholder, answer) in &resolution.lookups {
            let input = match placeholder.strip_prefix("{{RUNTIME:env:") {
                Some(_) => Input::Environment(placeholder.clone()),
                None => Input::Resolved(placeholder.clone()),
            };
            match answer {
                Answer::Unknown => fingerprint.add_unknown(input),
                known => fingerprint.add_private(&self.key, input, format!("{known:?}")),
            }
        }
        for (tool, version) in self.engine.versions() {
            fingerprint.add(Input::Version(tool), version);
        }
        Ok(fingerprint)
    }

    /// Outputs of a unit as this run left them, or as recorded.
    pub async fn outputs_of(&self, stack: &str) -> Result<BTreeMap<String, Answer>> {
        if let Some(known) = self.outputs.lock().await.get(stack) {
            return Ok(known.clone());
        }
        self.recorded_outputs(stack).await
    }

    async fn recorded_outputs(&self, stack: &str) -> Result<BTreeMap<String, Answer>> {
        let (project, unit) = self.address(stack);
        Ok(self
            .engine
            .outputs(&project, &unit)
            .await?
            .unwrap_or_default())
    }
}

fn void_last_run(memory: &mut Memory) {
    if let Some(last) = &mut memory.last_run {
        last.succeeded = false;
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
        if self.board.expected.lock().await.contains(stack) {
            return Ok(Answer::Unknown);
        }
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
