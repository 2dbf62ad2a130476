//! Everything that a run on the server needs, put together once for each run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_control_store::{CloudAccount, HeldRun, Store, StoredRun};
use nimbus_control_vault::KeyRing;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::Storage;
use nimbus_engine_backend::{Backend, BackendOptions, StackRef};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{ServedRun, rehearsal_orders, served_ports};
use nimbus_orchestrator::DigestKey;
use nimbus_runs::ports::{DeploymentSource, RunPorts, SystemRunClock};
use nimbus_runs::{EventBus, RunRequest};

use crate::credential_end::{EXPIRATION, end_of_credentials};
use crate::leases::LeaseTables;
use crate::pinned::PinnedVersions;
use crate::programs::TenantPrograms;
use crate::storage::DatabaseStorage;
use crate::tables::{DeploymentTables, NoLogs};
use crate::tenant_texts::TenantTexts;
use crate::vault::TenantVault;

/// Where runs of all tenants are carried out. Cheap to clone.
#[derive(Clone)]
pub struct TenantRuns {
    store: Store,
    ring: Arc<KeyRing>,
    programs: TenantPrograms,
}

/// One run with its tenant's keys and tables.
pub struct TenantRun {
    pub(crate) tables: DeploymentTables,
    pub(crate) request: RunRequest,
    storage: Arc<dyn Storage>,
    pub(crate) programs: TenantPrograms,
    /// Versions of the catalog that it is made of.
    catalog: PinnedVersions,
}

/// Where the state of a deployment is.
pub(crate) fn state_root(deployment: &str, rehearsal: bool) -> String {
    let kind = if rehearsal { "rehearsal" } else { "state" };
    format!("deployments/{deployment}/{kind}")
}

impl TenantRuns {
    pub fn new(store: Store, ring: KeyRing, programs: TenantPrograms) -> Self {
        Self {
            store,
            ring: Arc::new(ring),
            programs,
        }
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    pub(crate) fn texts(&self) -> &TenantTexts {
        self.programs.texts()
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// # Errors
    ///
    /// When the tenant's keys do not open, or the request cannot be read.
    pub async fn enter(&self, tenant: TenantId, run: &StoredRun) -> Result<TenantRun> {
        let vault = TenantVault::open(&self.store, &self.ring, tenant).await?;
        let mut request: RunRequest =
            serde_json::from_value(run.request.clone()).map_err(|error| {
                let message = format!("the request of run {} cannot be read: {error}", run.number);
                Error::new(ErrorCode::INTERNAL, message)
            })?;
        // Whoever goes on with a rehearsal has mended what was ordered to go wrong, as on their own machine.
        if goes_on(run) {
            request.choices.rehearsal = request.choices.rehearsal.without_faults();
        }
        let root = state_root(&run.deployment, run.rehearsal);
        Ok(TenantRun {
            storage: Arc::new(DatabaseStorage::new(vault.clone(), &root)),
            tables: DeploymentTables::new(
                vault,
                HeldRun {
                    deployment: run.deployment.clone(),
                    number: run.number,
                    epoch: run.epoch,
                },
                run.rehearsal,
                self.programs.texts().clone(),
            ),
            request,
            programs: self.programs.clone(),
            catalog: PinnedVersions::read(&run.catalog)?,
        })
    }
}

/// Whether a run goes on although its record says that it ended.
pub(crate) fn goes_on(run: &StoredRun) -> bool {
    matches!(run.wish.as_deref(), Some("resume" | "forget_creates"))
}

impl TenantRun {
    /// The ports of the run core.
    pub(crate) async fn ports(
        &self,
        bus: &Arc<EventBus>,
        cancellation: &Cancellation,
    ) -> Result<RunPorts> {
        let tables = &self.tables;
        let vault = &tables.vault;
        let workspace = self.programs.write_out(vault, &self.catalog).await?;
        let contracts = self.catalog.contracts(vault).await?;
        let passphrase = vault.secret("passphrase").await?;
        let digests = vault.secret("digests").await?;
        let worlds = self.programs.folder().join("worlds");
        let world = worlds
            .join(vault.tenant().to_string())
            .join(&tables.held.deployment);
        let credentials = if tables.rehearsal {
            BTreeMap::new()
        } else {
            self.credentials().await?
        };
        let served = ServedRun {
            credentials,
            sandbox: self.programs.sandbox(&workspace),
            workspace,
            environment: self.request.environment,
            typecheck: self.request.choices.typecheck,
            storage: Arc::clone(&self.storage),
            passphrase: hex::encode(passphrase),
            home: self.programs.folder().join("home"),
            rehearsal: tables.rehearsal.then_some(world),
            orders: rehearsal_orders(&self.request.choices.rehearsal)?,
            allow_mass_removal: self.request.choices.allow_mass_removal,
        };
        let served = served_ports(served, bus, cancellation)?;
        Ok(RunPorts {
            deployment: Box::new(tables.clone()),
            components: served.components,
            runs: Arc::new(tables.clone()),
            memories: Box::new(tables.clone()),
            locks: Box::new(tables.clone()),
            versions: Box::new(tables.clone()),
            gates: Box::new(tables.clone()),
            logs: Box::new(NoLogs),
            engine: served.engine,
            values: served.values,
            resolvers: Box::new(LeaseTables::new(tables).with_contracts(contracts)),
            accounts: served.accounts,
            checks: served.checks,
            clock: Box::new(SystemRunClock),
            key: DigestKey::new(digests),
        })
    }

    /// When what opens the tenant's cloud accounts ends, if anybody knows. A rehearsal opens none.
    pub(crate) async fn credentials_end(&self) -> Result<Option<Timestamp>> {
        if self.tables.rehearsal {
            return Ok(None);
        }
        Ok(end_of_credentials(&self.credentials().await?))
    }

    /// What opens the tenant's cloud accounts for this environment, for providers and nobody else.
    async fn credentials(&self) -> Result<BTreeMap<String, String>> {
        let vault = &self.tables.vault;
        if !self.programs.is_strict() {
            let message = "real runs of tenants need the strict sandbox, and this server has less";
            return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                .with_help("set engine.sandbox to strict; `nimbus doctor` says what it needs"));
        }
        let environment = self.request.environment.to_string();
        let sealed = vault.tx(async |tx| tx.cloud_credentials(&environment).await);
        let mut all = BTreeMap::new();
        for (id, _, sealed) in sealed.await? {
            let field = CloudAccount::credentials_field(id);
            let plain = vault.open_sealed(&field, &sealed)?;
            let variables: BTreeMap<String, String> =
                serde_json::from_slice(&plain).map_err(|_| {
                    Error::new(ErrorCode::INTERNAL, "credentials of a cloud cannot be read")
                })?;
            for (name, value) in &variables {
                // A time is none, and would be missing from every text that has it.
                if name != EXPIRATION {
                    nimbus_telemetry::register_secret(value);
                }
            }
            all.extend(variables);
        }
        Ok(all)
    }

    /// Ends the leases of units that a worker left when it died. The run is ours, and its epoch says so;
    /// whoever had the leases finds its journals shut.
    pub(crate) async fn end_leases(&self, environment: EnvironmentName) -> Result<()> {
        let storage = Arc::clone(&self.storage);
        let backend = Backend::in_storage(storage, BackendOptions::default()).await?;
        let manifest = DeploymentSource::load(&self.tables).await?.manifest;
        let mut names = backend.stacks().await?;
        // Nobody else's: another environment of the deployment may have a run of its own.
        names.retain(|name| manifest.has_unit_in(environment, name.project(), name.stack()));
        // A stack whose first operation died has a lease before it has a state.
        for component in manifest.stacks.keys() {
            let unit = manifest.pulumi_stack(component, environment);
            names.extend(StackRef::new(&unit.project, &unit.stack).ok());
        }
        names.sort();
        names.dedup();
        for name in names {
            backend.stack(name).unlock().await?;
        }
        Ok(())
    }
}

impl fmt::Debug for TenantRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantRuns(..)")
    }
}
