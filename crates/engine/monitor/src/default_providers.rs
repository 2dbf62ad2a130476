//! Default providers: made by the engine for packages that a program uses without saying how.
//!
//! One exists per package, version and download address. Whoever asks first causes it to be
//! registered; everybody else waits for the same registration. That runs as a task of its own: a
//! program that goes away while waiting must not leave a provider half registered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use nimbus_engine_model::provider_inputs;
use nimbus_engine_model::{
    Goal, PackageDescriptor, ProviderRef, UNKNOWN_ID, default_provider_name, provider_type,
};
use nimbus_engine_ports::{DeploymentContext, RegisterStatus, Registrar};
use parking_lot::Mutex;

use crate::config::{denies_default_provider, package_config};
use crate::error::MonitorError;
use crate::packages::canonical;

type PendingProvider = Shared<BoxFuture<'static, Result<ProviderRef, MonitorError>>>;

pub(crate) struct DefaultProviders {
    registrar: Arc<dyn Registrar>,
    /// What the program's installed packages say about the plugins they need.
    installed: BTreeMap<String, PackageDescriptor>,
    by_key: Mutex<HashMap<DefaultProviderKey, PendingProvider>>,
}

#[derive(PartialEq, Eq, Hash)]
struct DefaultProviderKey {
    package: String,
    version: Option<semver::Version>,
    download_url: String,
}

impl DefaultProviders {
    pub(crate) fn new(
        registrar: Arc<dyn Registrar>,
        installed: BTreeMap<String, PackageDescriptor>,
    ) -> Self {
        Self {
            registrar,
            installed,
            by_key: Mutex::default(),
        }
    }

    pub(crate) fn installed(&self, package: &str) -> Option<&PackageDescriptor> {
        self.installed.get(package)
    }

    /// The default provider of a package; `token` is what needs it.
    pub(crate) async fn reference(
        &self,
        context: &DeploymentContext,
        package: PackageDescriptor,
        token: &str,
    ) -> Result<ProviderRef, MonitorError> {
        let package = self.complete(package);
        if denies_default_provider(context, package.package())? {
            return Err(MonitorError::DefaultProviderDenied {
                package: package.package().to_owned(),
                token: token.to_owned(),
            });
        }
        self.pending(context, package).await
    }

    fn pending(&self, context: &DeploymentContext, package: PackageDescriptor) -> PendingProvider {
        let key = DefaultProviderKey {
            package: package.package().to_owned(),
            version: package.package_version().cloned(),
            download_url: package.download_url.clone(),
        };
        let mut by_key = self.by_key.lock();
        let pending = by_key.entry(key).or_insert_with(|| {
            let goal = goal(context, &package);
            let registrar = Arc::clone(&self.registrar);
            let task = tokio::spawn(register(registrar, goal, package.package().to_owned()));
            async { task.await.unwrap_or(Err(MonitorError::Ending)) }
                .boxed()
                .shared()
        });
        pending.clone()
    }

    /// Fills what the request leaves open from what is installed.
    fn complete(&self, mut package: PackageDescriptor) -> PackageDescriptor {
        let Some(installed) = self.installed.get(package.package()) else {
            return package;
        };
        if package.parameterization.is_none() && installed.parameterization.is_some() {
            package
                .parameterization
                .clone_from(&installed.parameterization);
            package.name.clone_from(&installed.name);
            package.version.clone_from(&installed.version);
        }
        if package.version.is_none() {
            package.version.clone_from(&installed.version);
        }
        if package.download_url.is_empty() {
            package.download_url.clone_from(&installed.download_url);
        }
        if package.checksums.is_empty() {
            package.checksums.clone_from(&installed.checksums);
        }
        canonical(package)
    }
}

fn goal(context: &DeploymentContext, package: &PackageDescriptor) -> Goal {
    let mut inputs = package_config(context, package.package());
    provider_inputs::set_package(&mut inputs, package);
    let type_ = provider_type(package.package());
    let mut goal = Goal::new(type_, default_provider_name(package), true);
    goal.properties = inputs;
    goal
}

async fn register(
    registrar: Arc<dyn Registrar>,
    goal: Goal,
    package: String,
) -> Result<ProviderRef, MonitorError> {
    let result = registrar.register(goal).await.map_err(MonitorError::from)?;
    match result.status {
        RegisterStatus::Succeeded => Ok(ProviderRef {
            urn: result.urn,
            id: result.id.unwrap_or_else(|| UNKNOWN_ID.to_owned()),
        }),
        RegisterStatus::Failed | RegisterStatus::Skipped => {
            Err(MonitorError::DefaultProviderFailed { package })
        }
    }
}
