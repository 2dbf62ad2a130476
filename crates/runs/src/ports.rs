//! What a run asks of the outside, one trait for each concern.
//!
//! `crates/local` implements them on files, `crates/runs/testing` in memory; the control plane keeps
//! the same things in tables. A store that says that something is written has it on a disk: a crash
//! right after the call loses nothing of it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, Result};
use nimbus_document::Document;
use nimbus_orchestrator::{
    CheckCommand, ConfigOverrides, Fingerprint, LookupValue, Manifest, RememberedRun, RunEvent,
    RunId, TemplateLibrary, UnitMemory, ValueLookupError, VersionRecord,
};
use nimbus_resolvers::pipeline::{ParameterCheck, ParameterContract};
use nimbus_resolvers::{
    LeaseHolder, ResolverAnswer, ResolverLease, ResolverQuestion, Settlement, UnitFacts,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::record::{RunRecord, RunRequest};
use crate::unit::{UnitAddress, UnitFailure, UnitJob, UnitReport};

/// A manifest as it was at one moment.
#[derive(Clone, Debug)]
pub struct LoadedManifest {
    pub manifest: Manifest,
    /// As it is written, for complaints that point into it.
    pub document: Document,
    /// What configuration files say instead, where there are any.
    pub overrides: ConfigOverrides,
}

/// The deployment that a run is about.
#[async_trait]
pub trait DeploymentSource: Send + Sync {
    /// The manifest, with what configuration files say of it.
    async fn load(&self) -> Result<LoadedManifest>;
    /// Lets files that are written from the manifest follow it. Called by whoever holds an environment;
    /// where there are no such files there is nothing to do.
    async fn follow(&self) -> Result<()> {
        Ok(())
    }
}

/// Templates and programs of components.
#[async_trait]
pub trait ComponentSource: Send + Sync {
    async fn templates(&self) -> Result<TemplateLibrary>;
    /// Fails when there is nothing to run.
    async fn require_program(&self, component: &ComponentName) -> Result<()>;
    /// Adds everything that a program consists of.
    async fn add_program(&self, component: &ComponentName, to: &mut Fingerprint) -> Result<()>;
    /// Whether a program's sources or lists of packages have one of these texts in them.
    async fn mentions(&self, component: &ComponentName, texts: &[&str]) -> bool;
}

/// Records of runs.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Records a request under the next free number, before anything starts.
    async fn begin(&self, request: RunRequest) -> Result<RunRecord>;
    async fn find(&self, run: RunId) -> Result<RunRecord>;
    /// Runs of an environment, newest first.
    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>>;
    /// Everything that happened, as far as it was written.
    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>>;
    /// Appends in order. With `durable` they are on a disk when this returns.
    async fn append(&self, run: RunId, events: &[RunEvent], durable: bool) -> Result<()>;
    /// Clears old records of an environment away, never one that can be gone on with.
    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize>;
}

/// What is remembered of units between runs.
#[async_trait]
pub trait UnitMemories: Send + Sync {
    /// A unit that nothing is known of has an empty memory; a damaged one is an error, for taking it
    /// as empty would make new passwords.
    async fn load(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<UnitMemory>;
    async fn save(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        memory: &UnitMemory,
    ) -> Result<()>;

    /// Of a store of rehearsals: what the same unit's last real run left, for plans that say what the cloud takes. Others
    /// know nothing besides what they load.
    async fn real(
        &self,
        _component: &ComponentName,
        _environment: EnvironmentName,
    ) -> Result<Option<RememberedRun>> {
        Ok(None)
    }
}

/// Who holds an environment, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    pub user: String,
    pub host: String,
    pub process: u32,
    pub command: String,
    pub run: Option<RunId>,
    pub since: Timestamp,
    /// Time since the last sign of life.
    pub silence: Duration,
}

/// The lock of one environment, held until it is dropped.
#[async_trait]
pub trait EnvironmentGuard: Send + Sync {
    /// Says which run it is held for.
    async fn name_run(&mut self, run: RunId) -> Result<()>;
}

/// What came of an attempt to take a lock.
pub enum LockAttempt {
    Taken(Box<dyn EnvironmentGuard>),
    HeldBy(Box<LockHolder>),
}

/// One run at a time changes an environment.
#[async_trait]
pub trait EnvironmentLocks: Send + Sync {
    async fn try_lock(&self, environment: EnvironmentName, command: &str) -> Result<LockAttempt>;
}

/// Versions of an environment.
#[async_trait]
pub trait VersionStore: Send + Sync {
    /// Oldest first.
    async fn all(&self, environment: EnvironmentName) -> Result<Vec<VersionRecord>>;
    async fn add(&self, environment: EnvironmentName, version: &VersionRecord) -> Result<()>;
}

/// Somebody says that an item of a gate is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSignature {
    pub user: String,
    /// RFC 3339.
    pub at: String,
    pub note: String,
}

/// What people vouch for.
#[async_trait]
pub trait GateStore: Send + Sync {
    async fn signatures(
        &self,
        environment: EnvironmentName,
    ) -> Result<BTreeMap<String, GateSignature>>;
    async fn sign(
        &self,
        environment: EnvironmentName,
        item: &str,
        signature: GateSignature,
    ) -> Result<()>;
}

/// A log for people, a view of the record. It may be slow or fail; the run goes on.
pub trait RunLog: Send {
    fn event(&mut self, event: &RunEvent) -> std::io::Result<()>;
    /// A text that is no event, such as the plan. `source` says what it is.
    fn text(&mut self, source: &str, text: &str) -> std::io::Result<()>;
}

/// Where logs of runs go.
pub trait RunLogs: Send + Sync {
    fn open(&self, record: &RunRecord) -> Result<Box<dyn RunLog>>;
}

/// Carries out what is decided about one unit.
#[async_trait]
pub trait UnitEngine: Send + Sync {
    /// A failure is what the user sees; what was done is recorded all the same.
    async fn run(&self, job: &UnitJob) -> Result<UnitReport, UnitFailure>;
    /// Outputs as recorded; `None` for a unit that was never deployed.
    async fn outputs(&self, unit: &UnitAddress) -> Result<Option<BTreeMap<String, LookupValue>>>;
    /// Where the recorded state is: `None` when there is none. Another text means another state.
    async fn state_version(&self, unit: &UnitAddress) -> Result<Option<String>>;
    /// Number of the newest state in the unit's history.
    async fn history_length(&self, unit: &UnitAddress) -> Result<usize>;
    /// Refuses a run that could not read or write what is recorded of these units, before it begins.
    async fn ready(&self, _units: &[UnitAddress]) -> Result<()> {
        Ok(())
    }
    /// Names and versions of everything that can change what a program does.
    fn versions(&self) -> BTreeMap<String, String>;
}

/// Everything outside of a deployment that its values can come from.
#[async_trait]
pub trait ExternalValues: Send + Sync {
    async fn aws(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError>;
    async fn env(&self, variable: &str) -> Result<LookupValue, ValueLookupError>;
    /// A secret of the deployment. Where nobody keeps any, saying so is all that can be done.
    async fn secret(
        &self,
        _environment: EnvironmentName,
        name: &str,
    ) -> Result<LookupValue, ValueLookupError> {
        Err(ValueLookupError {
            message: format!("no secrets of deployments are kept here, so `{name}` is not known"),
        })
    }
    /// A calculation; one that must stay the same is looked up in `memory` and kept there, encrypted if
    /// it is secret or `hidden`, which is what a placeholder says of a value that is none by itself.
    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        hidden: bool,
        memory: &mut UnitMemory,
    ) -> Result<LookupValue, ValueLookupError>;
}

/// What the parameters of a component have to be: its contract, and the rules that hold for it besides.
pub struct UnitContract {
    pub parameters: ParameterContract,
    pub rules: Vec<Box<dyn ParameterCheck>>,
}

/// Resolvers, and what they have leased to units.
#[async_trait]
pub trait ResolverPort: Send + Sync {
    /// Answers a question of a unit, with a value that is secret where the output is one. Asked again, in this
    /// run or a later one, the answer is the same for as long as its lease is held.
    async fn answer(
        &self,
        facts: &UnitFacts,
        holder: LeaseHolder,
        question: &ResolverQuestion,
    ) -> Result<ResolverAnswer>;
    /// What became of units of a run; before the run's end is recorded.
    async fn settle(
        &self,
        environment: EnvironmentName,
        run: RunId,
        units: &BTreeMap<ComponentName, Settlement>,
    ) -> Result<()>;
    /// Takes leases back that were taken for nothing, unless somebody else holds them by now.
    async fn give_back(
        &self,
        environment: EnvironmentName,
        holder: LeaseHolder,
        leases: &[Uuid],
    ) -> Result<()>;
    /// What units of an environment hold.
    async fn held(&self, environment: EnvironmentName) -> Result<Vec<ResolverLease>>;
    /// The contract of a component with inputs that resolvers answer. Where there is none, a unit has what its
    /// manifest says.
    async fn contract(
        &self,
        _environment: EnvironmentName,
        _component: &ComponentName,
    ) -> Result<Option<UnitContract>> {
        Ok(None)
    }
    /// Keeps what a unit is about to be deployed with, where such a thing is kept. Nothing in it is secret.
    async fn keep_parameters(
        &self,
        _environment: EnvironmentName,
        _component: &ComponentName,
        _parameters: &Map<String, Value>,
    ) -> Result<()> {
        Ok(())
    }
}

/// The account that a cloud says we are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudIdentity {
    pub account: String,
    /// In the cloud's own words, for people.
    pub caller: String,
}

/// Whose credentials a run would use.
#[async_trait]
pub trait CloudAccounts: Send + Sync {
    async fn aws(&self, region: &str) -> Result<CloudIdentity>;
}

/// What checks of a run are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSubject {
    pub deployment: DeploymentId,
    pub environment: EnvironmentName,
    pub rehearsal: bool,
    pub run: RunId,
}

/// Hears every line that a check writes. It must not block.
pub type CheckOutput = dyn Fn(String) + Send + Sync;

/// Runs the commands that a manifest declares as checks.
#[async_trait]
pub trait CheckRunner: Send + Sync {
    /// Hands the outputs of all components over to the checks that follow; secret ones are left out.
    async fn hand_over(
        &self,
        subject: &CheckSubject,
        outputs: &BTreeMap<ComponentName, BTreeMap<String, LookupValue>>,
    ) -> Result<()>;
    /// Runs one check to its end.
    async fn run(
        &self,
        name: &str,
        check: &CheckCommand,
        subject: &CheckSubject,
        stop: &CancellationToken,
        output: std::sync::Arc<CheckOutput>,
    ) -> Result<()>;
}

/// What time it is.
pub trait RunClock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRunClock;

impl RunClock for SystemRunClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Everything that a run needs of the outside, put together once.
pub struct RunPorts {
    pub deployment: Box<dyn DeploymentSource>,
    pub components: Box<dyn ComponentSource>,
    pub runs: std::sync::Arc<dyn RunStore>,
    pub memories: Box<dyn UnitMemories>,
    pub locks: Box<dyn EnvironmentLocks>,
    pub versions: Box<dyn VersionStore>,
    pub gates: Box<dyn GateStore>,
    pub logs: Box<dyn RunLogs>,
    pub engine: Box<dyn UnitEngine>,
    pub values: Box<dyn ExternalValues>,
    pub resolvers: Box<dyn ResolverPort>,
    pub accounts: Box<dyn CloudAccounts>,
    pub checks: Box<dyn CheckRunner>,
    pub clock: Box<dyn RunClock>,
    /// Digests private inputs of fingerprints.
    pub key: nimbus_orchestrator::DigestKey,
}
