//! The workers of a server: what they run, where, and how many at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_app::{App, StatePlace, StateSource, StoredUnitState, UnitNames};
use nimbus_control_runs::{
    DriverSettings, ProgramSettings, RecordedState, RunDriver, RunLimits, SandboxSettings,
    TenantPrograms, TenantRuns,
};
use nimbus_core::{Result, TenantId};

/// What an operator may set about runs.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub limits: RunLimits,
    /// Packages of Node.js that programs of tenants find.
    pub node_modules: Option<PathBuf>,
    /// How programs are kept from everything else; `None` runs them among everything else, which is only
    /// for tests of the server.
    pub sandbox: Option<SandboxSettings>,
}

/// Goes on with runs that an earlier process left, and carries out what comes.
pub(crate) fn start(app: &App, options: &RunOptions, data_dir: &Path) -> Result<RunDriver> {
    let folder = data_dir.join("runs");
    let settings = DriverSettings::of_folder(&folder, options.limits)?;
    let programs = TenantPrograms::new(ProgramSettings {
        folder,
        node_modules: options.node_modules.clone(),
        sandbox: options.sandbox.clone(),
    });
    let store = app.store().clone();
    let tenant_runs = TenantRuns::new(store.clone(), app.key_ring(), programs);
    app.read_states_from(Arc::new(ServedStates(tenant_runs.clone())));
    Ok(RunDriver::start(
        store,
        Arc::new(tenant_runs),
        settings,
        app.run_bell(),
    ))
}

/// States, read where runs keep them.
struct ServedStates(TenantRuns);

#[async_trait]
impl StateSource for ServedStates {
    async fn of_environment(
        &self,
        tenant: TenantId,
        place: &StatePlace,
        names: &UnitNames,
    ) -> Result<Vec<StoredUnitState>> {
        let unit = |stack: &str| names.component(stack, &place.environment);
        let found = self
            .0
            .states(tenant, &place.deployment, place.rehearsal, &unit)
            .await?;
        let stored = |state: RecordedState| StoredUnitState {
            unit: state.unit,
            stack: state.stack,
            checkpoint: state.checkpoint,
            modified: state.modified,
        };
        Ok(found.into_iter().map(stored).collect())
    }
}
