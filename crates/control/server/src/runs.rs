//! The workers of a server: what they run, where, and how many at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_catalog_programs::{EnclosedReader, ProgramReader, ReadingLimits};
use nimbus_control_app::{
    App, StatePlace, StateSource, StoredUnitState, SurfaceReader, UnitNames, UnitStateSource,
};
use nimbus_control_runs::{
    Cancellation, DriverSettings, ProgramSettings, RecordedState, RunCarrier, RunDriver, RunLimits,
    RunVerdict, SandboxSettings, TenantPrograms, TenantRuns, UnitStack,
};
use nimbus_control_store::{CmdbSync, StoredRun};
use nimbus_control_wire::{RepairUnit, UnitHealth, UnitRepairReport, UnitStateVersion};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use serde_json::Value;

use crate::system::ServedSystem;
use crate::workers::ServedWorkers;

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
    app.tell_system_by(Arc::new(ServedSystem::new(options)));
    app.read_programs_with(program_reader(options)?);
    app.check_orders_with(nimbus_control_runs::check_order);
    let carrier: Arc<dyn RunCarrier> = Arc::new(ToldCarrier {
        runs: tenant_runs.clone(),
        app: app.clone(),
    });
    app.answer_workers_with(Arc::new(ServedWorkers {
        runs: tenant_runs,
        carrier: Arc::clone(&carrier),
    }));
    Ok(RunDriver::start(store, carrier, settings, app.run_wakeup()))
}

/// Carries runs out, and tells their workflows when a row was given back.
struct ToldCarrier {
    runs: TenantRuns,
    app: App,
}

#[async_trait]
impl RunCarrier for ToldCarrier {
    async fn carry(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        cancellation: &Cancellation,
    ) -> RunVerdict {
        self.runs.carry(tenant, run, cancellation).await
    }

    async fn inventory(&self, tenant: TenantId, run: &StoredRun) -> Result<Option<CmdbSync>> {
        self.runs.inventory(tenant, run).await
    }

    fn given_back(&self, tenant: TenantId, run: &StoredRun) {
        self.app.flow_hears(tenant, run.id);
    }

    fn problem(&self, error: &Error) -> Value {
        self.runs.problem(error)
    }
}

/// Who reads programs of components: this program, started again with limits. Tests of the server are no program that
/// could be.
fn program_reader(options: &RunOptions) -> Result<Arc<dyn SurfaceReader>> {
    if options.sandbox.is_none() {
        return Ok(Arc::new(ProgramReader));
    }
    let own = std::env::current_exe().map_err(|error| {
        let message = "the server does not find its own program";
        Error::new(ErrorCode::PROGRAMS_UNREADABLE, message).with_source(error)
    })?;
    Ok(Arc::new(EnclosedReader::new(own, ReadingLimits::default())))
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

    async fn unit(
        &self,
        tenant: TenantId,
        place: &StatePlace,
        names: &UnitNames,
        unit: &str,
    ) -> Result<Option<Box<dyn UnitStateSource>>> {
        let is_it = |stack: &str| {
            let component = names.component(stack, &place.environment);
            component.as_deref() == Some(unit)
        };
        let found = self
            .0
            .unit_stack(tenant, &place.deployment, place.rehearsal, &is_it)
            .await?;
        let unit = unit.to_owned();
        Ok(found.map(|stack| Box::new(ServedUnit { stack, unit }) as Box<dyn UnitStateSource>))
    }
}

/// One unit's stack, where runs keep it.
struct ServedUnit {
    stack: UnitStack,
    unit: String,
}

#[async_trait]
impl UnitStateSource for ServedUnit {
    fn stack(&self) -> &str {
        self.stack.name()
    }

    async fn versions(&self) -> Result<Vec<UnitStateVersion>> {
        self.stack.versions().await
    }

    async fn version(&self, number: Option<u64>) -> Result<Option<Value>> {
        self.stack.version(number).await
    }

    async fn examine(&self) -> Result<(UnitHealth, Value, Value)> {
        self.stack.examine(&self.unit).await
    }

    async fn edit(&self, edit: &RepairUnit) -> Result<(UnitRepairReport, Value, Value)> {
        self.stack.edit(&self.unit, edit).await
    }
}
