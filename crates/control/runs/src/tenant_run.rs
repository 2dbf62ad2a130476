//! Everything that a run on the server needs, put together once for each run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_control_store::{Store, StoredRun};
use nimbus_control_vault::KeyRing;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::{Backend, BackendOptions, StackRef};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{ServedRun, rehearsal_orders, served_ports};
use nimbus_orchestrator::DigestKey;
use nimbus_runs::ports::{RunPorts, SystemRunClock};
use nimbus_runs::{EventBus, RunRequest};

use crate::access::RunAccess;
use crate::credential_end::{EXPIRATION, end_of_credentials};
use crate::pinned::PinnedVersions;
use crate::programs::TenantPrograms;
use crate::tables::NoLogs;
use crate::tenant_texts::TenantTexts;

/// Where runs of all tenants are carried out. Cheap to clone.
#[derive(Clone)]
pub struct TenantRuns {
    store: Store,
    ring: Arc<KeyRing>,
    programs: TenantPrograms,
}

/// One run with the way to its tenant's things.
pub struct TenantRun {
    pub(crate) access: Arc<dyn RunAccess>,
    pub(crate) request: RunRequest,
    deployment: String,
    rehearsal: bool,
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
        let access = self.access(tenant, run).await?;
        TenantRun::new(Arc::new(access), run, self.programs.clone())
    }
}

/// Whether a run goes on although its record says that it ended.
pub(crate) fn goes_on(run: &StoredRun) -> bool {
    matches!(run.wish.as_deref(), Some("resume" | "forget_creates"))
}

impl TenantRun {
    /// # Errors
    ///
    /// When the request cannot be read.
    pub(crate) fn new(
        access: Arc<dyn RunAccess>,
        run: &StoredRun,
        programs: TenantPrograms,
    ) -> Result<Self> {
        let mut request: RunRequest =
            serde_json::from_value(run.request.clone()).map_err(|error| {
                let message = format!("the request of run {} cannot be read: {error}", run.number);
                Error::new(ErrorCode::INTERNAL, message)
            })?;
        // Whoever goes on with a rehearsal has mended what was ordered to go wrong, as on their own machine.
        if goes_on(run) {
            request.choices.rehearsal = request.choices.rehearsal.without_faults();
        }
        Ok(Self {
            access,
            request,
            deployment: run.deployment.clone(),
            rehearsal: run.rehearsal,
            programs,
            catalog: PinnedVersions::read(&run.catalog)?,
        })
    }

    /// The ports of the run core.
    pub(crate) async fn ports(
        &self,
        bus: &Arc<EventBus>,
        cancellation: &Cancellation,
    ) -> Result<RunPorts> {
        let access = &*self.access;
        let workspace = self.programs.write_out(access, &self.catalog).await?;
        let secrets = access.secrets().await?;
        let worlds = self.programs.folder().join("worlds");
        let world = worlds
            .join(access.tenant().to_string())
            .join(&self.deployment);
        let credentials = if self.rehearsal {
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
            storage: access.storage(),
            passphrase: secrets.passphrase.clone(),
            home: self.programs.folder().join("home"),
            rehearsal: self.rehearsal.then_some(world),
            orders: rehearsal_orders(&self.request.choices.rehearsal)?,
            allow_mass_removal: self.request.choices.allow_mass_removal,
        };
        let served = served_ports(served, bus, cancellation)?;
        let records = access.record_ports().await?;
        Ok(RunPorts {
            deployment: records.deployment,
            components: served.components,
            runs: records.runs,
            memories: records.memories,
            locks: records.locks,
            versions: records.versions,
            gates: records.gates,
            logs: Box::new(NoLogs),
            engine: served.engine,
            values: served.values,
            resolvers: records.resolvers,
            accounts: served.accounts,
            checks: served.checks,
            clock: Box::new(SystemRunClock),
            key: DigestKey::new(secrets.digest_key()?),
        })
    }

    /// When what opens the tenant's cloud accounts ends, if anybody knows. A rehearsal opens none.
    pub(crate) async fn credentials_end(&self) -> Result<Option<Timestamp>> {
        if self.rehearsal {
            return Ok(None);
        }
        Ok(end_of_credentials(&self.credentials().await?))
    }

    /// What opens the tenant's cloud accounts for this environment, for providers and nobody else.
    async fn credentials(&self) -> Result<BTreeMap<String, String>> {
        if !self.programs.is_strict() {
            let message = "real runs of tenants need the strict sandbox, and this server has less";
            return Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
                .with_help("set engine.sandbox to strict; `nimbus doctor` says what it needs"));
        }
        let all = self.access.credentials(self.request.environment).await?;
        for (name, value) in &all {
            // A time is none, and would be missing from every text that has it.
            if name != EXPIRATION {
                nimbus_telemetry::register_secret(value);
            }
        }
        Ok(all)
    }

    /// Ends the leases of units that a worker left when it died. The run is ours, and its epoch says so;
    /// whoever had the leases finds its journals shut.
    pub(crate) async fn end_leases(&self, environment: EnvironmentName) -> Result<()> {
        let storage = self.access.storage();
        let backend = Backend::in_storage(storage, BackendOptions::default()).await?;
        let records = self.access.record_ports().await?;
        let manifest = records.deployment.load().await?.manifest;
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
