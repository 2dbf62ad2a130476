//! The records of a run in tables: what `crates/local` keeps in files.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_store::{EnvironmentKey, HeldRun, StoreError, StoredEvent, StoredRun};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::Document;
use nimbus_orchestrator::{
    ConfigOverrides, FILE_NAME, Manifest, RunEvent, RunId, UnitMemory, VersionRecord,
};
use nimbus_runs::ports::{
    DeploymentSource, EnvironmentGuard, EnvironmentLocks, GateSignature, GateStore, LoadedManifest,
    LockAttempt, RunLog, RunLogs, RunStore, UnitMemories, VersionStore,
};
use nimbus_runs::{RunRecord, RunRequest, SealedPlan};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::counted;
use crate::layers::{LayerWatch, is_layer};
use crate::tenant_texts::TenantTexts;
use crate::vault::TenantVault;

/// So many events are read at once.
const EVENTS_AT_ONCE: u32 = 1000;

/// The tables of one deployment, for the worker that has a run of it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DeploymentTables {
    pub(crate) vault: TenantVault,
    pub(crate) held: HeldRun,
    pub(crate) rehearsal: bool,
    writer: EventWriter,
}

/// Makes of events what a record has: layers in between, and texts that a tenant may read. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct EventWriter {
    layers: Arc<Mutex<LayerWatch>>,
    texts: TenantTexts,
}

impl EventWriter {
    pub(crate) fn new(texts: TenantTexts) -> Self {
        Self {
            layers: Arc::default(),
            texts,
        }
    }

    /// An event as a record keeps it.
    fn recorded(&self, event: &RunEvent) -> Result<Value> {
        let mut value = serde_json::to_value(event).map_err(|error| damaged("an event", &error))?;
        self.texts.record(&mut value);
        Ok(value)
    }

    pub(crate) fn values(&self, events: &[RunEvent]) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(events.len());
        let mut layers = self.layers.lock();
        for event in events {
            let (before, after) = layers.around(event);
            values.extend(before);
            values.push(self.recorded(event)?);
            values.extend(after);
        }
        Ok(values)
    }

    /// Learns what was told of layers before.
    pub(crate) fn go_on(&self, events: &[RunEvent]) {
        let mut layers = self.layers.lock();
        for event in events {
            layers.around(event);
        }
    }
}

impl DeploymentTables {
    pub(crate) fn new(
        vault: TenantVault,
        held: HeldRun,
        rehearsal: bool,
        texts: TenantTexts,
    ) -> Self {
        Self {
            vault,
            held,
            rehearsal,
            writer: EventWriter::new(texts),
        }
    }

    fn environment(&self, environment: EnvironmentName) -> EnvironmentKey {
        EnvironmentKey {
            deployment: self.held.deployment.clone(),
            environment: environment.to_string(),
            rehearsal: self.rehearsal,
        }
    }

    /// Keeps what the preview that this worker has showed, for a deploy that is held to it.
    pub(crate) async fn keep_plan(&self, plan: &SealedPlan) -> Result<()> {
        let plan = serde_json::to_value(plan).map_err(|error| damaged("a plan", &error))?;
        let kept = self
            .vault
            .tx(async |tx| tx.plan_keep(&self.held, &plan).await);
        kept.await.map_err(taken_over)
    }

    /// Learns from the record what an earlier worker told about layers.
    pub(crate) async fn go_on(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let events = self.events(run).await?;
        self.writer.go_on(&events);
        Ok(events)
    }

    /// Appends events of the run that this worker has.
    pub(crate) async fn append_events(&self, events: &[RunEvent]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let values = self.writer.values(events)?;
        let appended = self
            .vault
            .tx(async |tx| tx.events_append(&self.held, &values).await);
        appended.await.map(drop).map_err(taken_over)?;
        counted::count(self.vault.metrics(), events);
        Ok(())
    }

    /// Events as they are recorded, after a place.
    pub(crate) async fn events_page(&self, run: RunId, after: i64) -> Result<Vec<StoredEvent>> {
        let number = run.0.cast_signed();
        self.vault
            .tx(async |tx| {
                tx.events_after(&self.held.deployment, number, after, EVENTS_AT_ONCE)
                    .await
            })
            .await
    }

    /// A sign of life; what somebody wants of the run.
    pub(crate) async fn renew(&self) -> Result<Option<String>> {
        let renewed = self.vault.tx(async |tx| tx.run_renew(&self.held).await);
        renewed.await.map_err(taken_over)
    }

    /// The manifest as it is written.
    pub(crate) async fn manifest(&self) -> Result<String> {
        let deployment = &self.held.deployment;
        let found = self
            .vault
            .tx(async |tx| tx.deployment_get(deployment).await);
        Ok(found.await?.manifest)
    }
}

/// A manifest as the run core knows it.
pub(crate) fn loaded(manifest: &str) -> Result<LoadedManifest> {
    let document = Document::parse_bytes(FILE_NAME, manifest.as_bytes())?;
    let manifest = Manifest::read(&document)?;
    Ok(LoadedManifest {
        manifest,
        document,
        overrides: ConfigOverrides::default(),
    })
}

/// Whoever writes with an old epoch is told that the run is somebody else's now.
pub(crate) fn taken_over(error: Error) -> Error {
    match error.code() {
        ErrorCode::RESOURCE_CHANGED => {
            Error::new(ErrorCode::RUN_TAKEN_OVER, "another worker has the run").with_source(error)
        }
        _ => error,
    }
}

pub(crate) fn read<T: DeserializeOwned>(what: &str, value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| damaged(what, &error))
}

pub(crate) fn damaged(what: &str, error: &serde_json::Error) -> Error {
    Error::new(
        ErrorCode::INTERNAL,
        format!("{what} cannot be read: {error}"),
    )
}

/// A stored run as the run core knows it.
pub(crate) fn record_of(run: StoredRun) -> Result<RunRecord> {
    let started: jiff::Timestamp = run.began_at.unwrap_or(run.queued_at).into();
    Ok(RunRecord {
        run: RunId(run.number.unsigned_abs()),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        stamp: started.strftime("%Y%m%d-%H%M%S").to_string(),
        request: read("the request of a run", run.request)?,
    })
}

#[async_trait]
impl DeploymentSource for DeploymentTables {
    async fn load(&self) -> Result<LoadedManifest> {
        loaded(&self.manifest().await?)
    }
}

#[async_trait]
impl RunStore for DeploymentTables {
    /// The run was recorded when it was asked for; now it begins.
    async fn begin(&self, request: RunRequest) -> Result<RunRecord> {
        let request =
            serde_json::to_value(&request).map_err(|error| damaged("a request", &error))?;
        let begun = self
            .vault
            .tx(async |tx| tx.run_begin(&self.held, &request).await);
        record_of(begun.await.map_err(taken_over)?)
    }

    async fn find(&self, run: RunId) -> Result<RunRecord> {
        let number = run.0.cast_signed();
        let found =
            self.vault.tx(
                async |tx| match tx.run_get(&self.held.deployment, number).await {
                    Err(StoreError::NotFound(_)) => Ok(None),
                    found => found.map(Some),
                },
            );
        match found.await? {
            Some(found) => record_of(found),
            None => {
                let message = format!("there is no run {run}");
                Err(Error::new(ErrorCode::RUN_UNKNOWN, message))
            }
        }
    }

    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>> {
        let EnvironmentKey {
            deployment,
            environment,
            rehearsal,
        } = self.environment(environment);
        let found = self
            .vault
            .tx(async |tx| tx.runs_begun(&deployment, &environment, rehearsal).await);
        found.await?.into_iter().map(record_of).collect()
    }

    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.events_page(run, after).await?;
            let Some(last) = page.last() else {
                return Ok(events);
            };
            after = last.seq;
            let recorded = page.into_iter().filter(|stored| !is_layer(&stored.event));
            for stored in recorded {
                events.push(read("an event", stored.event)?);
            }
        }
    }

    /// Every commit is on a disk.
    async fn append(&self, _run: RunId, events: &[RunEvent], _durable: bool) -> Result<()> {
        self.append_events(events).await
    }

    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize> {
        let EnvironmentKey {
            deployment,
            environment,
            rehearsal,
        } = self.environment(environment);
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        let removed = self.vault.tx(async |tx| {
            tx.runs_prune(&deployment, &environment, rehearsal, keep)
                .await
        });
        Ok(usize::try_from(removed.await?).unwrap_or(usize::MAX))
    }
}

#[async_trait]
impl UnitMemories for DeploymentTables {
    async fn load(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<UnitMemory> {
        let of = self.environment(environment);
        let found = self
            .vault
            .tx(async |tx| tx.memory_get(&of, component.as_str()).await);
        let Some(sealed) = found.await? else {
            return Ok(UnitMemory::default());
        };
        let field = of.memory_field(component.as_str());
        let bytes = self.vault.open_sealed(&field, &sealed)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| damaged(&format!("what is remembered of {component}"), &error))
    }

    async fn save(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        memory: &UnitMemory,
    ) -> Result<()> {
        let of = self.environment(environment);
        let bytes = serde_json::to_vec(memory).map_err(|error| damaged("a memory", &error))?;
        let sealed = self
            .vault
            .seal(&of.memory_field(component.as_str()), &bytes)?;
        // A unit that was known to have drifted is no news.
        let is_news = has_drifted(memory)
            && !has_drifted(&UnitMemories::load(self, component, environment).await?);
        let saved = self.vault.tx(async |tx| {
            tx.run_require(&self.held).await?;
            tx.memory_put(&of, component.as_str(), &sealed).await?;
            if is_news {
                let number = self.held.number;
                tx.live_publish_drift(&of, component.as_str(), number)
                    .await?;
            }
            Ok::<_, StoreError>(())
        });
        saved.await.map_err(taken_over)?;
        if is_news {
            self.count_drift(&of).await;
        }
        Ok(())
    }
}

/// Setting of a tenant, inherited: `false` counts its drift as `silenced`, of which no alert speaks.
const DRIFT_ALERTS_SETTING: &str = "drift_alerts";

impl DeploymentTables {
    /// Counts drift that was told. What the tenant set is asked for now; nobody's run fails for a number.
    async fn count_drift(&self, of: &EnvironmentKey) {
        let tenant = self.vault.tenant();
        let settings = self
            .vault
            .tx(async |tx| tx.settings_effective(tenant).await)
            .await;
        let silenced = settings.is_ok_and(|settings| {
            let mut settings = settings.iter();
            settings.any(|one| one.key == DRIFT_ALERTS_SETTING && one.value == false)
        });
        let severity = if silenced {
            "silenced"
        } else {
            drift_severity(of)
        };
        let metrics = self.vault.metrics();
        metrics.drift_detected(&tenant.to_string(), severity);
    }
}

/// What was found in production matters most, what was found in a simulated cloud least.
fn drift_severity(of: &EnvironmentKey) -> &'static str {
    match of.environment.as_str() {
        _ if of.rehearsal => "info",
        "prod" | "production" => "critical",
        _ => "warning",
    }
}

fn has_drifted(memory: &UnitMemory) -> bool {
    memory.last_run.as_ref().is_some_and(|last| last.drifted)
}

#[async_trait]
impl VersionStore for DeploymentTables {
    async fn all(&self, environment: EnvironmentName) -> Result<Vec<VersionRecord>> {
        let of = self.environment(environment);
        let found = self.vault.tx(async |tx| tx.version_list(&of).await);
        let records = found.await?.into_iter();
        records.map(|record| read("a version", record)).collect()
    }

    async fn add(&self, environment: EnvironmentName, version: &VersionRecord) -> Result<()> {
        let of = self.environment(environment);
        let record = serde_json::to_value(version).map_err(|error| damaged("a version", &error))?;
        let number = version.version.cast_signed();
        let added = self.vault.tx(async |tx| {
            tx.run_require(&self.held).await?;
            // Asked twice by a worker whose answer was lost.
            if tx.version_list(&of).await?.contains(&record) {
                return Ok(());
            }
            tx.version_add(&of, number, &record).await
        });
        added.await.map_err(taken_over)
    }
}

#[async_trait]
impl GateStore for DeploymentTables {
    async fn signatures(
        &self,
        environment: EnvironmentName,
    ) -> Result<BTreeMap<String, GateSignature>> {
        let of = self.environment(environment);
        let found = self.vault.tx(async |tx| tx.signature_list(&of).await);
        let mut signatures = BTreeMap::new();
        for stored in found.await? {
            signatures.insert(stored.item, read("a signature", stored.signature)?);
        }
        Ok(signatures)
    }

    async fn sign(
        &self,
        environment: EnvironmentName,
        item: &str,
        signature: GateSignature,
    ) -> Result<()> {
        let of = self.environment(environment);
        let value =
            serde_json::to_value(&signature).map_err(|error| damaged("a signature", &error))?;
        let signed = self
            .vault
            .tx(async |tx| tx.signature_put(&of, item, &value).await);
        signed.await
    }
}

#[async_trait]
impl EnvironmentLocks for DeploymentTables {
    /// Whoever has the run has its environment: both were taken at once.
    async fn try_lock(&self, _environment: EnvironmentName, _command: &str) -> Result<LockAttempt> {
        self.renew().await?;
        Ok(LockAttempt::Taken(Box::new(HeldEnvironment)))
    }
}

/// Given back together with the run.
pub(crate) struct HeldEnvironment;

#[async_trait]
impl EnvironmentGuard for HeldEnvironment {
    async fn name_run(&mut self, _run: RunId) -> Result<()> {
        Ok(())
    }
}

/// On a server the record is the log: what people read is made from it when they ask.
pub(crate) struct NoLogs;

impl RunLogs for NoLogs {
    fn open(&self, _record: &RunRecord) -> Result<Box<dyn RunLog>> {
        Ok(Box::new(NoLog))
    }
}

struct NoLog;

impl RunLog for NoLog {
    fn event(&mut self, _event: &RunEvent) -> io::Result<()> {
        Ok(())
    }

    fn text(&mut self, _source: &str, _text: &str) -> io::Result<()> {
        Ok(())
    }
}
