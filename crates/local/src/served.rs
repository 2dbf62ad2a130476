//! Units of somebody else's deployment, run by a server on this machine.
//!
//! The engine is the same as for one's own deployments. What differs is where things are: state is in
//! the server's storage, and programs are files that the server wrote out. And what nobody else's
//! deployment may reach: the machine's variables, its credentials and its shell.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_engine_backend::store::{GIVEN, Storage};
use nimbus_engine_backend::{Environment, PASSPHRASE};
use nimbus_engine_operations::{Cancellation, SandboxSettings};
use nimbus_engine_ports::ProviderHost;
use nimbus_orchestrator::{CheckCommand, LookupValue};
use nimbus_rehearsal::{FaultOrders, Observer};
use nimbus_runs::EventBus;
use nimbus_runs::ports::{
    CheckOutput, CheckRunner, CheckSubject, CloudAccounts, CloudIdentity, ComponentSource,
    ExternalValues, UnitEngine,
};
use nimbus_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::engine::{LocalEngine, LocalOptions};
use crate::external_values::MachineValues;
use crate::kept_states::KeptStates;
use crate::local_runs::{simulated_cloud, unit_events};
use crate::sources::WorkspaceComponents;

/// Variables of the server that its own programs, such as plugins, are found by.
const OWN_VARIABLES: &[&str] = &["PATH", "HOME", "PULUMI_HOME"];

/// What a server says about a run of one environment.
pub struct ServedRun {
    /// Templates and programs, written out.
    pub workspace: Workspace,
    pub environment: EnvironmentName,
    pub typecheck: bool,
    /// How programs are kept from everything else; `None` only for programs that the server trusts.
    pub sandbox: Option<SandboxSettings>,
    pub storage: Arc<dyn Storage>,
    /// Protects the secrets in the states.
    pub passphrase: String,
    /// Where the simulated cloud keeps its world, in a rehearsal.
    pub rehearsal: Option<PathBuf>,
    pub orders: FaultOrders,
}

/// The ports of a run that a server has nothing of its own for.
pub struct ServedPorts {
    pub components: Box<dyn ComponentSource>,
    pub engine: Box<dyn UnitEngine>,
    pub values: Box<dyn ExternalValues>,
    pub accounts: Box<dyn CloudAccounts>,
    pub checks: Box<dyn CheckRunner>,
}

/// Puts the ports together.
///
/// # Errors
///
/// When the simulated cloud cannot be opened.
pub fn served_ports(
    run: ServedRun,
    bus: &Arc<EventBus>,
    cancellation: &Cancellation,
) -> Result<ServedPorts> {
    let observer = Observer::default();
    let simulated = match &run.rehearsal {
        Some(folder) => {
            let cloud = simulated_cloud(&run.workspace, folder, run.environment, run.orders)?;
            Some(Arc::new(cloud.observed_by(observer.clone())) as Arc<dyn ProviderHost>)
        }
        None => None,
    };
    let environment = Environment::process()
        .only(OWN_VARIABLES)
        .with(PASSPHRASE, run.passphrase)
        .storing_in(Arc::clone(&run.storage));
    let options = LocalOptions {
        backend: GIVEN.to_owned(),
        environment,
        kept: KeptStates::Objects {
            storage: run.storage,
        },
        simulated,
        transpile_only: !run.typecheck,
        parallel: None,
        policy_packs: Vec::new(),
    };
    let events = unit_events(bus, &observer, None);
    let components = WorkspaceComponents::new(&run.workspace, run.sandbox.as_ref());
    let engine = LocalEngine::new(options, run.workspace.clone(), events, cancellation.clone())
        .sandboxed(run.sandbox);
    let values = MachineValues::new(run.rehearsal.is_some())
        .with_keys(engine.keyring())
        .served();
    Ok(ServedPorts {
        components: Box::new(components),
        engine: Box::new(engine),
        values: Box::new(values),
        accounts: Box::new(NoAccounts),
        checks: Box::new(NoChecks),
    })
}

/// A server's credentials are for its providers, and say nothing about a tenant's account.
struct NoAccounts;

#[async_trait]
impl CloudAccounts for NoAccounts {
    async fn aws(&self, _region: &str) -> Result<CloudIdentity> {
        let message = "the server has no AWS account for this tenant";
        Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
            .with_help("rehearse it, or deploy it from a machine that has credentials"))
    }
}

/// A check is a command for a shell, which nobody gets on a server.
struct NoChecks;

#[async_trait]
impl CheckRunner for NoChecks {
    async fn hand_over(
        &self,
        _subject: &CheckSubject,
        _outputs: &BTreeMap<ComponentName, BTreeMap<String, LookupValue>>,
    ) -> Result<()> {
        Ok(())
    }

    async fn run(
        &self,
        name: &str,
        _check: &CheckCommand,
        _subject: &CheckSubject,
        _stop: &CancellationToken,
        _output: Arc<CheckOutput>,
    ) -> Result<()> {
        let message = format!("the check {name} is a command, and a server runs none for others");
        Err(Error::new(ErrorCode::NOT_ON_SERVER, message)
            .with_help("take it out of the manifest, or deploy from a machine of your own"))
    }
}
