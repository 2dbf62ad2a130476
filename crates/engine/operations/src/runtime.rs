//! What an operation works with: providers, policies and the program, all of them alive.
//!
//! A [`RuntimeLauncher`] sets them up. The real one starts processes; tests bring one that does not, so
//! that everything above can be tested without a single process.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::Result;
use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_monitor::StackReader;
use nimbus_engine_ports::{
    Analyzer, DeploymentContext, EventSink, HookRunner, Program, ProviderHost,
};

use crate::cancel::Cancellation;
use crate::request::OperationRequest;
use crate::workspace::StackWorkspace;

/// Everything that is known before anything is started.
pub struct RuntimeSetup<'a> {
    pub request: &'a OperationRequest,
    pub workspace: &'a StackWorkspace,
    pub config: &'a ResolvedConfig,
    /// The stack's tags, which policy packs get to see.
    pub tags: BTreeMap<String, String>,
    /// Its endpoint is not known yet.
    pub context: DeploymentContext,
    /// Reads outputs of other stacks.
    pub stacks: Arc<dyn StackReader>,
    pub events: Arc<dyn EventSink>,
    pub cancellation: &'a Cancellation,
}

#[async_trait]
pub trait RuntimeLauncher: Send + Sync {
    async fn set_up(&self, setup: RuntimeSetup<'_>) -> Result<Box<dyn OperationRuntime>>;
}

/// Providers, policies and the program of one operation, all of them alive.
#[async_trait]
pub trait OperationRuntime: Send + Sync {
    fn host(&self) -> Arc<dyn ProviderHost>;
    fn hooks(&self) -> Arc<dyn HookRunner>;
    fn analyzers(&self) -> Vec<Arc<dyn Analyzer>>;
    /// `None` for operations that run no program.
    fn program(&self) -> Option<Arc<dyn Program>>;
    /// What the program's installed packages need, by package.
    fn packages(&self) -> &BTreeMap<String, PackageDescriptor>;
    /// Ends every process.
    async fn tear_down(self: Box<Self>);
}
