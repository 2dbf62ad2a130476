//! The ports of a run on files, put together once for each command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result, shell_word};
use nimbus_disk::unwritable;
use nimbus_engine_operations::{
    Cancellation, IsolationMode, PackagePolicy, PolicyPackRequest, ProgramNetwork, SandboxSettings,
    key_services,
};
use nimbus_engine_ports::{EventSink, ProviderHost};
use nimbus_rehearsal::{
    Answers, Declarations, FaultOrders, Observer, Rehearsal, SimulatedAccount, SimulatedWorld,
};
use nimbus_runs::ports::{RunPorts, SystemRunClock};
use nimbus_runs::{
    EngineChoice, EventBus, PolicyPackChoice, RunChoices, SandboxChoice, SandboxLimits,
};
use nimbus_workspace::Workspace;

use crate::engine::{LocalEngine, LocalOptions, UnitEvents, pack_digest};
use crate::environment_lock::EnvironmentLockFiles;
use crate::external_values::MachineValues;
use crate::gate_file::GateFile;
use crate::kept_states::KeptStates;
use crate::key::digest_key;
use crate::lease_files::LeaseFiles;
use crate::logs::RunLogFiles;
use crate::memory_files::MemoryFiles;
use crate::passphrase;
use crate::place::DeploymentPlace;
use crate::run_files::RunFiles;
use crate::shell_checks::ShellChecks;
use crate::sources::{MachineAccounts, ManifestFile, WorkspaceComponents};
use crate::unit_events::UnitEventSink;
use crate::version_files::VersionFiles;

/// How runs of one command are carried out on this machine: what the request says, and what only this
/// machine knows.
pub struct LocalRunOptions {
    pub choices: RunChoices,
    pub sandbox: Option<SandboxSettings>,
    /// What a simulated cloud is told to do, in a rehearsal.
    pub orders: FaultOrders,
    /// Sees what a rehearsal does.
    pub observer: Observer,
    /// Hears units besides the event bus.
    pub listener: Option<UnitEvents>,
    /// What becomes of packages that programs lack.
    pub packages: PackagePolicy,
}

/// Puts the ports of a deployment together.
///
/// # Errors
///
/// When a policy pack is not what was asked for, or a folder cannot be made.
pub fn local_ports(
    place: &DeploymentPlace,
    environment: EnvironmentName,
    options: LocalRunOptions,
    bus: &Arc<EventBus>,
    cancellation: &Cancellation,
) -> Result<RunPorts> {
    let rehearsal = place.records.is_rehearsal();
    let LocalRunOptions {
        choices,
        sandbox,
        orders,
        observer,
        listener,
        packages,
    } = options;
    let state = place.state_folder();
    let made = place.records.files().create_folders(&state);
    made.map_err(|error| unwritable(&state, error))?;
    // Said by the manifest that is read under the lock, not by the one that the deployment was found by.
    let account = SimulatedAccount::default();
    let simulated = if rehearsal {
        let orders = orders.in_account(&account);
        let cloud = simulated_cloud(&place.workspace, &state, environment, orders)?;
        Some(Arc::new(cloud.observed_by(observer.clone())) as Arc<dyn ProviderHost>)
    } else {
        None
    };
    let local = LocalOptions {
        states: place.states(choices.backend.as_deref(), sandbox.as_ref()),
        environment: passphrase::environment(rehearsal),
        services: key_services(sandbox.as_ref()),
        kept: KeptStates::new(&place.records),
        simulated,
        transpile_only: !choices.typecheck,
        variables: None,
        parallel: None,
        allow_mass_removal: choices.allow_mass_removal,
        policy_packs: policy_packs(&choices.policy_packs, sandbox.as_ref())?,
        packages,
        by_hand: Some(command_words(
            place,
            environment,
            choices.backend.as_deref(),
        )),
    };
    let records = &place.records;
    let engine = LocalEngine::new(
        local,
        place.workspace.clone(),
        unit_events(bus, &observer, listener),
        cancellation.clone(),
    )
    .sandboxed(sandbox.clone())
    .sharing(choices.shared_providers)
    .official(choices.engine == EngineChoice::Official);
    let values = MachineValues::new(rehearsal)
        .with_keys(engine.keyring())
        .with_secrets(&place.deployment.directory, place.records.files())
        .sandboxed(sandbox.as_ref());
    let id = place.deployment.manifest.metadata.id.as_str();
    Ok(RunPorts {
        deployment: Box::new(ManifestFile::new(
            &place.workspace,
            id,
            environment,
            account,
        )),
        components: Box::new(WorkspaceComponents::new(&place.workspace, sandbox.as_ref())),
        runs: Arc::new(RunFiles::new(records)),
        memories: Box::new(MemoryFiles::new(records)),
        locks: Box::new(EnvironmentLockFiles::new(records)),
        versions: Box::new(VersionFiles::new(records)),
        gates: Box::new(GateFile::new(records)),
        logs: Box::new(RunLogFiles::new(records)),
        engine: Box::new(engine),
        resolvers: Box::new(LeaseFiles::new(
            place.workspace.root(),
            place.workspace.files(),
            id,
            rehearsal,
            values.keyring(),
        )),
        values: Box::new(values),
        accounts: Box::new(MachineAccounts),
        checks: Box::new(ShellChecks::new(records).sandboxed(sandbox, place.workspace.root())),
        clock: Box::new(SystemRunClock),
        key: digest_key(place.workspace.root(), place.workspace.files())?,
    })
}

/// A policy pack as it is now, to be recorded with a request.
#[must_use]
pub fn policy_pack_choice(
    folder: PathBuf,
    config: Option<PathBuf>,
    sandbox: Option<&SandboxSettings>,
) -> PolicyPackChoice {
    PolicyPackChoice {
        digest: pack_digest(&folder, config.as_deref(), sandbox),
        folder,
        config,
    }
}

/// How programs are kept from everything else, to be recorded with a request.
#[must_use]
pub fn sandbox_choice(settings: Option<&SandboxSettings>) -> SandboxChoice {
    let Some(settings) = settings else {
        return SandboxChoice::Off;
    };
    let network = match settings.network {
        ProgramNetwork::None => "none",
        ProgramNetwork::Full => "full",
    };
    let network = network.to_owned();
    let most = settings.limits;
    let limits = Some(SandboxLimits {
        memory_bytes: most.memory_bytes,
        processes: most.processes,
        open_files: most.open_files,
        file_bytes: most.file_bytes,
        temporary_bytes: most.temporary_bytes,
        temporary_files: most.temporary_files,
        output_bytes: most.output_bytes,
        environment: settings.environment.clone(),
        roots: settings.roots.clone(),
    });
    match settings.mode {
        IsolationMode::BestEffort => SandboxChoice::BestEffort { network, limits },
        IsolationMode::Strict { allow_weak } => SandboxChoice::Strict {
            network,
            allow_weak,
            limits,
        },
    }
}

/// The packs that were asked for, refused when they are no longer what they were: a run that goes on
/// is held to the rules that it began with.
fn policy_packs(
    choices: &[PolicyPackChoice],
    sandbox: Option<&SandboxSettings>,
) -> Result<Vec<PolicyPackRequest>> {
    let request = |choice: &PolicyPackChoice| {
        if pack_digest(&choice.folder, choice.config.as_deref(), sandbox) != choice.digest {
            let message = format!(
                "the policy pack {} is not what it was when the run was asked for",
                choice.folder.display()
            );
            return Err(Error::new(ErrorCode::PLAN_MOVED, message).with_help(
                "put it back as it was, or start a new run; what did not change is skipped",
            ));
        }
        Ok(PolicyPackRequest {
            folder: choice.folder.clone(),
            config: choice.config.clone(),
        })
    };
    choices.iter().map(request).collect()
}

/// Units are heard by the bus, by the observer of a rehearsal and by whoever else listens.
pub(crate) fn unit_events(
    bus: &Arc<EventBus>,
    observer: &Observer,
    listener: Option<UnitEvents>,
) -> UnitEvents {
    let (bus, observer) = (Arc::clone(bus), observer.clone());
    Arc::new(move |component: &ComponentName| {
        let mut sink: Arc<dyn EventSink> =
            Arc::new(UnitEventSink::new(component, Arc::clone(&bus)));
        if let Some(listener) = &listener {
            sink = Arc::new(BothSinks(listener(component), sink));
        }
        observer.listen(component, sink)
    })
}

struct BothSinks(Arc<dyn EventSink>, Arc<dyn EventSink>);

impl EventSink for BothSinks {
    fn emit(&self, event: nimbus_engine_ports::EngineEvent) {
        self.0.emit(event.clone());
        self.1.emit(event);
    }
}

pub(crate) fn simulated_cloud(
    workspace: &Workspace,
    folder: &Path,
    environment: EnvironmentName,
    orders: FaultOrders,
) -> Result<Rehearsal> {
    let answers = Answers::load(&workspace.root().join("rehearsal/invokes.yaml"))?;
    let declarations = declarations(workspace)?;
    let file = SimulatedWorld::file_in(folder, environment.as_str());
    let world = SimulatedWorld::open(&file)?;
    Rehearsal::new(world, declarations, orders, answers).map_err(|error| unwritable(&file, error))
}

/// Programs share the modules of Node.js, and each may have packages of its own.
fn declarations(workspace: &Workspace) -> Result<Declarations> {
    let stacks = &workspace.root().join("stacks");
    let components = std::fs::read_dir(stacks).into_iter().flatten().flatten();
    let folders = components.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = folders.fold(Declarations::of_program(stacks), |found, component| {
        found.and_program(&component.path())
    });
    // Programs elsewhere bring their own modules.
    for template in workspace.library()?.stacks.values() {
        if template.source.is_some() {
            let folder = workspace.stack_source(&template.name);
            found = found.and_program(&folder);
        }
    }
    Ok(found)
}

/// What every command about an environment of a deployment ends with.
fn command_words(
    place: &DeploymentPlace,
    environment: EnvironmentName,
    backend: Option<&str>,
) -> String {
    let id = &place.deployment.manifest.metadata.id;
    let mut words = format!("{id} --environment {environment}");
    if place.records.is_rehearsal() {
        words.push_str(" --rehearse");
    }
    if let Some(backend) = backend {
        words.push_str(&format!(" --backend {}", shell_word(backend)));
    }
    words
}
