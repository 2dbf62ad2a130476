//! The plugins of one run: where the deployment's providers come from, and how they all end.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use futures::future::{join, join_all};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::{Analyzer, LoadError, Provider, ProviderHost};
use nimbus_engine_proto as proto;
use parking_lot::Mutex;

use crate::error::PluginError;
use crate::options::HostOptions;
use crate::plugin::reason;
use crate::policy::{PolicyPack, PolicyPackOptions};
use crate::pool::Pool;
use crate::provider::GrpcProvider;

pub struct PluginHost {
    pool: Arc<Pool>,
    policy_packs: Mutex<Vec<Weak<PolicyPack>>>,
}

impl PluginHost {
    pub fn new(options: HostOptions) -> Self {
        Self {
            pool: Arc::new(Pool::new(options)),
            policy_packs: Mutex::default(),
        }
    }

    /// Starts a policy pack. It ends with the host, or when it is closed.
    pub async fn start_policy_pack(
        &self,
        options: PolicyPackOptions,
    ) -> Result<Arc<PolicyPack>, PluginError> {
        let pack = Arc::new(PolicyPack::start(self.pool.options(), options).await?);
        self.policy_packs.lock().push(Arc::downgrade(&pack));
        Ok(pack)
    }

    /// The schema of a package, a JSON document.
    pub async fn schema(&self, package: &PackageDescriptor) -> Result<String, PluginError> {
        let plugin = self.pool.take(package).await?;
        let mut client = plugin.link.provider();
        let send = |request| async move { client.get_schema(request).await };
        let parameterization = package.parameterization.as_ref();
        let request = proto::GetSchemaRequest {
            version: 0,
            subpackage_name: parameterization.map(|p| p.name.clone()).unwrap_or_default(),
            subpackage_version: parameterization
                .map(|p| p.version.to_string())
                .unwrap_or_default(),
        };
        let limit = self.pool.limits().quick;
        let response = plugin.link.call("GetSchema", limit, request, send).await;
        self.pool.give_back(package, plugin);
        response
            .map(|response| response.schema)
            .map_err(|error| PluginError::Refused {
                plugin: package.name.clone(),
                reason: reason(error),
            })
    }

    /// Asks every plugin to stop what it is doing. They stay usable for what has to be finished.
    pub async fn cancel(&self) {
        let limit = self.pool.limits().shutdown;
        let plugins = self.pool.plugins();
        let packs = self.packs();
        let cancel_plugins = join_all(plugins.iter().map(|plugin| plugin.cancel(limit)));
        let cancel_packs = join_all(packs.iter().map(|pack| pack.cancel()));
        join(cancel_plugins, cancel_packs).await;
    }

    /// Ends every plugin. Nothing can be loaded afterwards.
    pub async fn shutdown(&self) {
        let plugins = self.pool.close();
        let limits = self.pool.limits();
        let packs = self.packs();
        let end_plugins = join_all(plugins.iter().map(|plugin| plugin.end(limits)));
        let end_packs = join_all(packs.iter().map(|pack| pack.close()));
        join(end_plugins, end_packs).await;
    }

    fn packs(&self) -> Vec<Arc<PolicyPack>> {
        self.policy_packs
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

#[async_trait]
impl ProviderHost for PluginHost {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        let plugin = self
            .pool
            .take(package)
            .await
            .map_err(|error| error.for_package(package))?;
        Ok(Arc::new(GrpcProvider::new(
            self.pool.clone(),
            package.clone(),
            plugin,
        )))
    }
}
