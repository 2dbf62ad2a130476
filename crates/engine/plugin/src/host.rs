//! The plugins of one run: where the deployment's providers come from, and how they all end.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use futures::future::{join, join_all};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::{LoadError, Provider, ProviderHost};
use nimbus_engine_proto as proto;
use parking_lot::Mutex;

use crate::allocator::ProcessAllocator;
use crate::error::PluginError;
use crate::options::HostOptions;
use crate::plugin::reason;
use crate::policy::{PolicyPack, PolicyPackOptions};
use crate::provider::GrpcProvider;

pub struct PluginHost {
    allocator: Arc<ProcessAllocator>,
    policy_packs: Mutex<Vec<Weak<PolicyPack>>>,
}

impl PluginHost {
    pub fn new(options: HostOptions) -> Self {
        Self {
            allocator: Arc::new(ProcessAllocator::new(options)),
            policy_packs: Mutex::default(),
        }
    }

    /// Starts a policy pack. It ends with the host, or when it is closed.
    pub async fn start_policy_pack(
        &self,
        options: PolicyPackOptions,
    ) -> Result<Arc<PolicyPack>, PluginError> {
        let pack = Arc::new(PolicyPack::start(self.allocator.options(), options).await?);
        self.policy_packs.lock().push(Arc::downgrade(&pack));
        Ok(pack)
    }

    /// The schema of a package, a JSON document.
    pub async fn schema(&self, package: &PackageDescriptor) -> Result<String, Arc<PluginError>> {
        let lease = self.allocator.any(&self.allocator.plan(package)?)?;
        let plugin = lease.plugin().await?;
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
        let limits = self.allocator.limits();
        let call = plugin.link.call("GetSchema", limits.quick, request, send);
        let response = call.await;
        if let Some(plugin) = lease.give_back() {
            plugin.end(limits).await;
        }
        let refused = |error| PluginError::Refused {
            plugin: package.name.clone(),
            reason: reason(error),
        };
        let response = response.map_err(|error| Arc::new(refused(error)));
        response.map(|response| response.schema)
    }

    /// Ends every plugin that is this run's own. Nothing can be loaded afterwards.
    pub async fn shutdown(&self) {
        let packs = self.packs();
        let end_packs = join_all(packs.iter().map(|pack| pack.close()));
        join(self.allocator.close(), end_packs).await;
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
        let explain =
            |error: &PluginError| error.for_package(package, &self.allocator.options().tenancy);
        if self.allocator.is_closed() {
            return Err(explain(&PluginError::Ending));
        }
        let plan = self
            .allocator
            .plan(package)
            .map_err(|error| explain(&error))?;
        let lease = self.allocator.any(&plan).map_err(|error| explain(&error))?;
        let lease = Arc::new(lease);
        lease.plugin().await.map_err(|error| explain(&error))?;
        let allocator = Arc::clone(&self.allocator);
        Ok(Arc::new(GrpcProvider::new(
            allocator,
            package.clone(),
            plan,
            lease,
        )))
    }
}
