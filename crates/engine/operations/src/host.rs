//! Where providers come from: the built-in one, and plugins for the rest.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_monitor::{BUILTIN_PACKAGE, BuiltinProvider};
use nimbus_engine_ports::{LoadError, Provider, ProviderHost};

/// Answers for the built-in package itself and asks `plugins` for every other.
pub(crate) struct BuiltInHost {
    builtin: Arc<BuiltinProvider>,
    plugins: Arc<dyn ProviderHost>,
}

impl BuiltInHost {
    pub(crate) fn new(builtin: BuiltinProvider, plugins: Arc<dyn ProviderHost>) -> Self {
        Self {
            builtin: Arc::new(builtin),
            plugins,
        }
    }
}

#[async_trait]
impl ProviderHost for BuiltInHost {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        if package.name == BUILTIN_PACKAGE {
            return Ok(Arc::clone(&self.builtin) as Arc<dyn Provider>);
        }
        self.plugins.load(package).await
    }
}
