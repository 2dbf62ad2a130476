//! Units of somebody else's deployment, run by a server on this machine.
//!
//! The engine is the same as for one's own deployments. What differs is where things are: state is in
//! the server's storage, and programs are files that the server wrote out. And what nobody else's
//! deployment may reach: the machine's variables, its credentials and its shell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_aws::{Aws, AwsSettings, AwsVariables};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_engine_backend::store::{GIVEN, Storage};
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, PASSPHRASE};
use nimbus_engine_operations::{
    Cancellation, PackagePolicy, SandboxSettings, StackGrant, StateLocation,
};
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
    /// Variables by which providers take the tenant's credentials. Programs do not get them.
    pub credentials: BTreeMap<String, String>,
    /// A folder without credentials, where providers would look for those of the server.
    pub home: PathBuf,
    /// Where the simulated cloud keeps its world, in a rehearsal.
    pub rehearsal: Option<PathBuf>,
    pub orders: FaultOrders,
    /// Believe a look that finds much of what is recorded gone.
    pub allow_mass_removal: bool,
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
    let environment = EnvironmentVariables::process()
        .only(OWN_VARIABLES)
        .with(PASSPHRASE, run.passphrase)
        .storing_in(Arc::clone(&run.storage));
    std::fs::create_dir_all(&run.home).map_err(|error| {
        let message = format!("cannot write {}: {error}", run.home.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message)
    })?;
    let options = LocalOptions {
        // A rehearsal has no providers.
        variables: run
            .rehearsal
            .is_none()
            .then(|| provider_variables(std::env::vars(), &run.home, &run.credentials)),
        states: StateLocation {
            directory: run.workspace.root().to_owned(),
            backend: Some(GIVEN.to_owned()),
            // The storage holds the states of this tenant's deployment and no others.
            granted: StackGrant::by_operator(run.sandbox.as_ref()),
        },
        environment,
        // Whatever the sandbox is: the files are a tenant's, and the credentials would be the server's.
        services: KeyServices::Only(BTreeSet::new()),
        kept: KeptStates::Objects {
            storage: run.storage,
        },
        simulated,
        transpile_only: !run.typecheck,
        parallel: None,
        allow_mass_removal: run.allow_mass_removal,
        policy_packs: Vec::new(),
        packages: PackagePolicy::Install,
        by_hand: None,
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
        accounts: Box::new(TenantAccounts {
            credentials: run.credentials,
        }),
        checks: Box::new(NoChecks),
    })
}

/// Variables of this process that providers need and that open nothing.
const PLAIN_VARIABLES: &[&str] = &[
    "PATH",
    "PULUMI_HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
];

/// What providers of a tenant's run find: nothing of the server's that opens anything, and what the tenant gave.
fn provider_variables(
    own: impl Iterator<Item = (String, String)>,
    home: &Path,
    credentials: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let plain = own.filter(|(name, _)| PLAIN_VARIABLES.contains(&name.as_str()));
    let mut all: BTreeMap<String, String> = plain.collect();
    // Plugins that are installed are found in the server's own home.
    if !all.contains_key("PULUMI_HOME")
        && let Ok(own) = std::env::var("HOME")
    {
        all.insert("PULUMI_HOME".to_owned(), format!("{own}/.pulumi"));
    }
    all.insert("HOME".to_owned(), home.display().to_string());
    // A provider without credentials would ask the machine that the server is on for the server's own.
    for unasked in ["AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"] {
        all.insert(unasked.to_owned(), "true".to_owned());
    }
    all.extend(credentials.clone());
    all
}

/// The accounts behind the credentials that the tenant gave.
struct TenantAccounts {
    credentials: BTreeMap<String, String>,
}

#[async_trait]
impl CloudAccounts for TenantAccounts {
    async fn aws(&self, region: &str) -> Result<CloudIdentity> {
        if !self.credentials.keys().any(|name| name.starts_with("AWS_")) {
            let message = "the tenant has no AWS account for this environment";
            return Err(Error::new(ErrorCode::NOT_ON_SERVER, message).with_help(
                "give one, rehearse it, or deploy it from a machine that has credentials",
            ));
        }
        let variables = self.credentials.iter();
        let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
        let aws = Aws::new(AwsSettings::load(AwsVariables::fixed(variables))?)?;
        let identity = aws.identity(region).await?;
        Ok(CloudIdentity {
            account: identity.account,
            caller: identity.arn,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_find_what_the_tenant_gave_and_nothing_that_opens_something_of_the_server() {
        let own = [
            ("PATH", "/bin"),
            ("AWS_SECRET_ACCESS_KEY", "server"),
            ("NIMBUS_SECRET_KEY", "server"),
            ("HOME", "/root"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = BTreeMap::from([("AWS_ACCESS_KEY_ID".to_owned(), "tenant".to_owned())]);
        let all = provider_variables(own.into_iter(), Path::new("/empty"), &given);
        assert_eq!(
            all.get("AWS_ACCESS_KEY_ID").map(String::as_str),
            Some("tenant")
        );
        assert_eq!(all.get("HOME").map(String::as_str), Some("/empty"));
        assert_eq!(all.get("PATH").map(String::as_str), Some("/bin"));
        assert!(!all.values().any(|value| value == "server"), "{all:?}");
        // Nor does the machine answer for the server.
        assert_eq!(
            all.get("AWS_EC2_METADATA_DISABLED").map(String::as_str),
            Some("true")
        );
        assert_eq!(all.get("NO_GCE_CHECK").map(String::as_str), Some("true"));
    }
}
