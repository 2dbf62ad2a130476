//! A run whose tenant's rows are in somebody else's database: every port of the run core as a call to its server.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use nimbus_control_store::{StoredRule, StoredRun};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::{
    ListedObject, Put, Storage, StorageAct, StorageError, StoredObject, Tag, WriteCondition,
};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::{RunEvent, RunId, UnitMemory, VersionRecord};
use nimbus_resolvers::{
    LeaseHolder, ParameterContract, ResolverAnswer, ResolverLease, ResolverQuestion, Settlement,
    UnitFacts,
};
use nimbus_runs::ports::{
    DeploymentSource, EnvironmentLocks, GateSignature, GateStore, LoadedManifest, LockAttempt,
    ResolverPort, RunStore, UnitContract, UnitMemories, VersionStore,
};
use nimbus_runs::{RunRecord, RunRequest, SealedPlan};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::access::{RecordPorts, RunAccess, RunFile, RunSecrets};
use crate::carrier::{RunCarrier, RunVerdict, told_problem};
use crate::holder_call::{
    HolderCall, SentContracts, SentListing, SentObject, StateCondition, StateContent,
};
use crate::layers::is_layer;
use crate::pinned::bound_contracts;
use crate::programs::TenantPrograms;
use crate::run_rules::RunRules;
use crate::tables::{EventWriter, HeldEnvironment, loaded, read};
use crate::tenant_run::TenantRun;

/// Which run, and under which epoch it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenRunAddress {
    pub tenant: TenantId,
    pub run: Uuid,
    pub epoch: i64,
}

impl TakenRunAddress {
    pub fn of(tenant: TenantId, run: &StoredRun) -> Self {
        Self {
            tenant,
            run: run.id,
            epoch: run.epoch,
        }
    }
}

/// A server that has the rows of runs. A call that is not answered is made again by whoever implements this: each
/// may come twice.
#[async_trait]
pub trait RunServer: Send + Sync {
    async fn call(&self, of: &TakenRunAddress, call: HolderCall) -> Result<Value>;
}

/// Carries runs out that were taken from a server.
pub struct RemoteCarrier {
    server: Arc<dyn RunServer>,
    programs: TenantPrograms,
}

impl RemoteCarrier {
    pub fn new(server: Arc<dyn RunServer>, programs: TenantPrograms) -> Self {
        Self { server, programs }
    }
}

#[async_trait]
impl RunCarrier for RemoteCarrier {
    async fn carry(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        cancellation: &Cancellation,
    ) -> RunVerdict {
        let remote = RemoteRun {
            address: TakenRunAddress::of(tenant, run),
            server: Arc::clone(&self.server),
            writer: EventWriter::new(self.programs.texts().clone()),
            recorded: Arc::new(Mutex::new(run.last_seq)),
            rehearsal: run.rehearsal,
            sent: Arc::default(),
        };
        match TenantRun::new(Arc::new(remote), run, self.programs.clone()) {
            Ok(tenant_run) => tenant_run.verdict(run, cancellation).await,
            Err(error) => RunVerdict::Refused(error),
        }
    }

    fn problem(&self, error: &Error) -> Value {
        told_problem(self.programs.texts(), error)
    }
}

/// A run that is a server's. Cheap to clone.
#[derive(Clone)]
struct RemoteRun {
    address: TakenRunAddress,
    server: Arc<dyn RunServer>,
    writer: EventWriter,
    /// How many events the record has. Held while some are appended, for they are counted.
    recorded: Arc<Mutex<i64>>,
    rehearsal: bool,
    sent: Arc<RemoteContracts>,
}

/// What components say of their parameters, asked for once.
#[derive(Default)]
struct RemoteContracts {
    contracts: BTreeMap<ComponentName, ParameterContract>,
    rules: Vec<StoredRule>,
}

impl RemoteRun {
    async fn ask<T: DeserializeOwned>(&self, call: HolderCall) -> Result<T> {
        let answer = self.server.call(&self.address, call).await?;
        read("an answer of the server", answer)
    }

    async fn stored<T: DeserializeOwned>(
        &self,
        act: StorageAct,
        key: &str,
        call: HolderCall,
    ) -> Result<T, StorageError> {
        self.ask(call).await.map_err(|source| StorageError::Given {
            act,
            key: key.to_owned(),
            source,
        })
    }
}

impl std::fmt::Debug for RemoteRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteRun({})", self.address.run)
    }
}

#[async_trait]
impl RunAccess for RemoteRun {
    fn tenant(&self) -> TenantId {
        self.address.tenant
    }

    async fn record_ports(&self) -> Result<RecordPorts> {
        let sent: SentContracts = self.ask(HolderCall::Contracts).await?;
        let run = Self {
            sent: Arc::new(RemoteContracts {
                contracts: bound_contracts(sent.contracts)?,
                rules: sent.rules,
            }),
            ..self.clone()
        };
        Ok(RecordPorts {
            deployment: Box::new(run.clone()),
            runs: Arc::new(run.clone()),
            memories: Box::new(run.clone()),
            locks: Box::new(run.clone()),
            versions: Box::new(run.clone()),
            gates: Box::new(run.clone()),
            resolvers: Box::new(run),
        })
    }

    fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    async fn workspace(&self) -> Result<Vec<RunFile>> {
        self.ask(HolderCall::Workspace).await
    }

    async fn content(&self, digest: &str) -> Result<Vec<u8>> {
        let digest = digest.to_owned();
        let content: StateContent = self.ask(HolderCall::Content { digest }).await?;
        content.bytes()
    }

    async fn pinned_files(&self) -> Result<BTreeMap<String, String>> {
        self.ask(HolderCall::PinnedFiles).await
    }

    async fn secrets(&self) -> Result<RunSecrets> {
        self.ask(HolderCall::Secrets).await
    }

    async fn credentials(&self, _environment: EnvironmentName) -> Result<BTreeMap<String, String>> {
        self.ask(HolderCall::Credentials).await
    }

    async fn go_on(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let events = self.events(run).await?;
        self.writer.go_on(&events);
        Ok(events)
    }

    async fn append_events(&self, events: &[RunEvent]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let mut recorded = self.recorded.lock().await;
        let call = HolderCall::Append {
            after: *recorded,
            events: self.writer.values(events)?,
        };
        *recorded = self.ask(call).await?;
        Ok(())
    }

    async fn keep_plan(&self, plan: &SealedPlan) -> Result<()> {
        let plan = Box::new(plan.clone());
        self.ask(HolderCall::KeepPlan { plan }).await
    }

    async fn settle_ended(&self, environment: EnvironmentName) -> Result<()> {
        self.ask(HolderCall::SettleEnded { environment }).await
    }
}

#[async_trait]
impl DeploymentSource for RemoteRun {
    async fn load(&self) -> Result<LoadedManifest> {
        let manifest: String = self.ask(HolderCall::Manifest).await?;
        loaded(&manifest)
    }
}

#[async_trait]
impl RunStore for RemoteRun {
    async fn begin(&self, request: RunRequest) -> Result<RunRecord> {
        let request = Box::new(request);
        self.ask(HolderCall::Begin { request }).await
    }

    async fn find(&self, run: RunId) -> Result<RunRecord> {
        self.ask(HolderCall::Find { run: run.0 }).await
    }

    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>> {
        self.ask(HolderCall::RunsOf { environment }).await
    }

    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let call = HolderCall::Events { run: run.0, after };
            let page: Vec<(i64, Value)> = self.ask(call).await?;
            let Some((last, _)) = page.last() else {
                return Ok(events);
            };
            after = *last;
            for (_, event) in page.into_iter().filter(|(_, event)| !is_layer(event)) {
                events.push(read("an event", event)?);
            }
        }
    }

    async fn append(&self, _run: RunId, events: &[RunEvent], _durable: bool) -> Result<()> {
        self.append_events(events).await
    }

    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize> {
        self.ask(HolderCall::Prune { environment, keep }).await
    }
}

#[async_trait]
impl UnitMemories for RemoteRun {
    async fn load(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<UnitMemory> {
        let component = component.clone();
        let call = HolderCall::Memory {
            component,
            environment,
        };
        self.ask(call).await
    }

    async fn save(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        memory: &UnitMemory,
    ) -> Result<()> {
        let call = HolderCall::Remember {
            component: component.clone(),
            environment,
            memory: Box::new(memory.clone()),
        };
        self.ask(call).await
    }
}

#[async_trait]
impl VersionStore for RemoteRun {
    async fn all(&self, environment: EnvironmentName) -> Result<Vec<VersionRecord>> {
        self.ask(HolderCall::Versions { environment }).await
    }

    async fn add(&self, environment: EnvironmentName, version: &VersionRecord) -> Result<()> {
        let version = Box::new(version.clone());
        let call = HolderCall::AddVersion {
            environment,
            version,
        };
        self.ask(call).await
    }
}

#[async_trait]
impl GateStore for RemoteRun {
    async fn signatures(
        &self,
        environment: EnvironmentName,
    ) -> Result<BTreeMap<String, GateSignature>> {
        self.ask(HolderCall::Signatures { environment }).await
    }

    /// People sign, at a server.
    async fn sign(
        &self,
        _environment: EnvironmentName,
        _item: &str,
        _signature: GateSignature,
    ) -> Result<()> {
        let message = "a worker signs no gates";
        Err(Error::new(ErrorCode::NOT_ON_SERVER, message))
    }
}

#[async_trait]
impl EnvironmentLocks for RemoteRun {
    /// Whoever has the run has its environment, and every call says whether that still holds.
    async fn try_lock(&self, _environment: EnvironmentName, _command: &str) -> Result<LockAttempt> {
        let _: Timestamp = self.ask(HolderCall::StateTime).await?;
        Ok(LockAttempt::Taken(Box::new(HeldEnvironment)))
    }
}

#[async_trait]
impl ResolverPort for RemoteRun {
    async fn answer(
        &self,
        facts: &UnitFacts,
        holder: LeaseHolder,
        question: &ResolverQuestion,
    ) -> Result<ResolverAnswer> {
        let call = HolderCall::Resolve {
            facts: facts.clone(),
            holder,
            question: question.clone(),
        };
        let answer: ResolverAnswer = self.ask(call).await?;
        if question.resolver == nimbus_resolvers::ResolverKind::Secret
            && let Some(secret) = answer.outputs.get("value").and_then(Value::as_str)
        {
            nimbus_telemetry::register_secret(secret);
        }
        Ok(answer)
    }

    async fn settle(
        &self,
        environment: EnvironmentName,
        run: RunId,
        units: &BTreeMap<ComponentName, Settlement>,
    ) -> Result<()> {
        let call = HolderCall::Settle {
            environment,
            run: run.0,
            units: units.clone(),
        };
        self.ask(call).await
    }

    async fn give_back(
        &self,
        environment: EnvironmentName,
        holder: LeaseHolder,
        leases: &[Uuid],
    ) -> Result<()> {
        let call = HolderCall::GiveLeasesBack {
            environment,
            holder,
            leases: leases.to_vec(),
        };
        self.ask(call).await
    }

    async fn held(&self, environment: EnvironmentName) -> Result<Vec<ResolverLease>> {
        self.ask(HolderCall::Leases { environment }).await
    }

    async fn contract(
        &self,
        environment: EnvironmentName,
        component: &ComponentName,
    ) -> Result<Option<UnitContract>> {
        let Some(contract) = self.sent.contracts.get(component) else {
            return Ok(None);
        };
        let rules = self.sent.rules.clone();
        let rules = RunRules::new(rules, component, environment, self.rehearsal);
        Ok(Some(UnitContract {
            parameters: contract.clone(),
            rules: vec![Box::new(rules)],
        }))
    }

    async fn keep_parameters(
        &self,
        environment: EnvironmentName,
        component: &ComponentName,
        parameters: &Map<String, Value>,
    ) -> Result<()> {
        let call = HolderCall::KeepParameters {
            environment,
            component: component.clone(),
            parameters: parameters.clone(),
        };
        self.ask(call).await
    }
}

#[async_trait]
impl Storage for RemoteRun {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        let call = HolderCall::StateGet {
            key: key.to_owned(),
        };
        let sent: Option<SentObject> = self.stored(StorageAct::Read, key, call).await?;
        let Some(sent) = sent else {
            return Ok(None);
        };
        let bytes = sent.content.bytes().map_err(|source| StorageError::Given {
            act: StorageAct::Read,
            key: key.to_owned(),
            source,
        })?;
        Ok(Some(StoredObject {
            bytes: bytes.into(),
            tag: Tag::Entity(sent.tag),
            modified: sent.modified,
        }))
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError> {
        let Some(expect) = StateCondition::of(expect) else {
            return Ok(Put::Refused);
        };
        let tag = Uuid::new_v4();
        let call = HolderCall::StatePut {
            key: key.to_owned(),
            content: StateContent::new(&bytes),
            expect,
            tag,
        };
        let stored: bool = self.stored(StorageAct::Write, key, call).await?;
        Ok(match stored {
            true => Put::Stored(Tag::Entity(tag.to_string())),
            false => Put::Refused,
        })
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let call = HolderCall::StateCopy {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        self.stored(StorageAct::Write, to, call).await
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let call = HolderCall::StateDelete {
            key: key.to_owned(),
        };
        self.stored(StorageAct::Delete, key, call).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let call = HolderCall::StateList {
            folder: folder.to_owned(),
        };
        let sent: Vec<SentListing> = self.stored(StorageAct::List, folder, call).await?;
        let listed = |sent: SentListing| ListedObject {
            key: sent.key,
            size: sent.size,
            modified: sent.modified,
        };
        Ok(sent.into_iter().map(listed).collect())
    }

    async fn time(&self) -> Result<Timestamp, StorageError> {
        let call = HolderCall::StateTime;
        self.stored(StorageAct::Read, "the time", call).await
    }
}
