//! What whoever has a run may reach of its tenant: the records, the states, the files and the secrets of that run.
//!
//! A server's own workers reach them in the database, [`DatabaseRun`]. That it is a port is for workers on other machines,
//! who will ask a server for each: a run is carried out by the same code on either.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_store::{CloudAccount, StoreError, StoredRun};
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::Storage;
use nimbus_orchestrator::{RunEvent, RunId};
use nimbus_runs::SealedPlan;
use nimbus_runs::ports::{
    DeploymentSource, EnvironmentLocks, GateStore, ResolverPort, RunStore, UnitMemories,
    VersionStore,
};
use serde::{Deserialize, Serialize};

use crate::leases::LeaseTables;
use crate::pinned::PinnedVersions;
use crate::queue::held;
use crate::storage::DatabaseStorage;
use crate::tables::DeploymentTables;
use crate::tenant_run::{TenantRuns, state_root};
use crate::vault::TenantVault;

/// A file of a tenant's workspace, by the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFile {
    pub(crate) path: String,
    /// SHA-256, hexadecimal.
    pub(crate) digest: String,
}

/// What a tenant's states and fingerprints are protected with.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RunSecrets {
    /// Hexadecimal, as the engine takes it.
    pub(crate) passphrase: String,
    /// Hexadecimal.
    pub(crate) digests: String,
}

impl RunSecrets {
    pub(crate) fn digest_key(&self) -> Result<[u8; 32]> {
        let bytes = hex::decode(&self.digests).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| Error::new(ErrorCode::INTERNAL, "a key of digests cannot be read"))
    }
}

/// The ports of the run core that records are behind.
pub(crate) struct RecordPorts {
    pub(crate) deployment: Box<dyn DeploymentSource>,
    pub(crate) runs: Arc<dyn RunStore>,
    pub(crate) memories: Box<dyn UnitMemories>,
    pub(crate) locks: Box<dyn EnvironmentLocks>,
    pub(crate) versions: Box<dyn VersionStore>,
    pub(crate) gates: Box<dyn GateStore>,
    pub(crate) resolvers: Box<dyn ResolverPort>,
}

/// One run's way to everything that is its tenant's.
#[async_trait]
pub(crate) trait RunAccess: Send + Sync {
    fn tenant(&self) -> TenantId;

    async fn record_ports(&self) -> Result<RecordPorts>;

    /// The states of the deployment.
    fn storage(&self) -> Arc<dyn Storage>;

    /// The tenant's own files.
    async fn workspace(&self) -> Result<Vec<RunFile>>;

    async fn content(&self, digest: &str) -> Result<Vec<u8>>;

    /// Files of the catalog's versions that the run is made of, by path.
    async fn pinned_files(&self) -> Result<BTreeMap<String, String>>;

    async fn secrets(&self) -> Result<RunSecrets>;

    /// What opens the tenant's cloud accounts in an environment.
    async fn credentials(&self, environment: EnvironmentName) -> Result<BTreeMap<String, String>>;

    /// Everything that is recorded of the run, before its record goes on.
    async fn go_on(&self, run: RunId) -> Result<Vec<RunEvent>>;

    async fn append_events(&self, events: &[RunEvent]) -> Result<()>;

    /// Keeps what a preview showed, for a deploy that is held to it.
    async fn keep_plan(&self, plan: &SealedPlan) -> Result<()>;

    /// Settles what runs left that are over and did not get to it.
    async fn settle_ended(&self, environment: EnvironmentName) -> Result<()>;
}

/// A run whose tenant's rows are in a database that is reached from here.
#[derive(Clone)]
pub(crate) struct DatabaseRun {
    pub(crate) tables: DeploymentTables,
    pub(crate) storage: DatabaseStorage,
    pub(crate) catalog: PinnedVersions,
}

impl TenantRuns {
    /// A run's way to its tenant's rows. Every write goes through the epoch that the run has here.
    pub(crate) async fn access(&self, tenant: TenantId, run: &StoredRun) -> Result<DatabaseRun> {
        let vault = TenantVault::open(self.store(), self.ring(), tenant).await?;
        let root = state_root(&run.deployment, run.rehearsal);
        let held = held(run);
        Ok(DatabaseRun {
            storage: DatabaseStorage::new(vault.clone(), &root).written_by(held.clone()),
            tables: DeploymentTables::new(vault, held, run.rehearsal, self.texts().clone()),
            catalog: PinnedVersions::read(&run.catalog)?,
        })
    }
}

#[async_trait]
impl RunAccess for DatabaseRun {
    fn tenant(&self) -> TenantId {
        self.tables.vault.tenant()
    }

    async fn record_ports(&self) -> Result<RecordPorts> {
        let tables = &self.tables;
        let contracts = self.catalog.contracts(&tables.vault).await?;
        Ok(RecordPorts {
            deployment: Box::new(tables.clone()),
            runs: Arc::new(tables.clone()),
            memories: Box::new(tables.clone()),
            locks: Box::new(tables.clone()),
            versions: Box::new(tables.clone()),
            gates: Box::new(tables.clone()),
            resolvers: Box::new(LeaseTables::new(tables).with_contracts(contracts)),
        })
    }

    fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.storage.clone())
    }

    async fn workspace(&self) -> Result<Vec<RunFile>> {
        let vault = &self.tables.vault;
        let index = vault.tx(async |tx| tx.workspace_index().await).await?;
        let entry = |file: nimbus_control_store::WorkspaceFile| RunFile {
            digest: hex::encode(&file.digest),
            path: file.path,
        };
        Ok(index.into_iter().map(entry).collect())
    }

    async fn content(&self, digest: &str) -> Result<Vec<u8>> {
        let digest = hex::decode(digest).unwrap_or_default();
        let vault = &self.tables.vault;
        let content = vault.tx(async |tx| tx.blob_get(&digest).await).await?;
        Ok(content.ok_or(StoreError::NotFound("content"))?)
    }

    async fn pinned_files(&self) -> Result<BTreeMap<String, String>> {
        self.catalog.files(&self.tables.vault).await
    }

    async fn secrets(&self) -> Result<RunSecrets> {
        let vault = &self.tables.vault;
        Ok(RunSecrets {
            passphrase: hex::encode(vault.secret("passphrase").await?),
            digests: hex::encode(vault.secret("digests").await?),
        })
    }

    async fn credentials(&self, environment: EnvironmentName) -> Result<BTreeMap<String, String>> {
        let vault = &self.tables.vault;
        let environment = environment.to_string();
        let sealed = vault.tx(async |tx| tx.cloud_credentials(&environment).await);
        let mut all = BTreeMap::new();
        for (id, _, sealed) in sealed.await? {
            let field = CloudAccount::credentials_field(id);
            let plain = vault.open_sealed(&field, &sealed)?;
            let variables: BTreeMap<String, String> =
                serde_json::from_slice(&plain).map_err(|_| {
                    Error::new(ErrorCode::INTERNAL, "credentials of a cloud cannot be read")
                })?;
            all.extend(variables);
        }
        Ok(all)
    }

    async fn go_on(&self, run: RunId) -> Result<Vec<RunEvent>> {
        self.tables.go_on(run).await
    }

    async fn append_events(&self, events: &[RunEvent]) -> Result<()> {
        self.tables.append_events(events).await
    }

    async fn keep_plan(&self, plan: &SealedPlan) -> Result<()> {
        self.tables.keep_plan(plan).await
    }

    async fn settle_ended(&self, environment: EnvironmentName) -> Result<()> {
        LeaseTables::new(&self.tables)
            .settle_ended(environment)
            .await
    }
}
