//! The running deployment, as the monitor sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{Goal, PropertyMap, ProviderRef, ResourceState, TypeToken, Urn};

use crate::provider::Provider;

/// Takes what the program asks for and answers when the steps for it are done.
///
/// Calls arrive concurrently. The deployment decides on one at a time and executes many at once.
/// It never waits for the program while deciding, so the caller may run callbacks before calling.
#[async_trait]
pub trait Registrar: Send + Sync {
    async fn register(&self, goal: Goal) -> Result<RegisterResult, RegisterError>;

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), RegisterError>;

    /// Reads an object that this stack does not manage.
    async fn read(&self, goal: ReadGoal) -> Result<RegisterResult, RegisterError>;

    /// A provider that was registered before.
    fn provider(&self, reference: &ProviderRef) -> Option<Arc<dyn Provider>>;

    /// A resource as registered in this run, or as recorded when the program did not reach it yet.
    fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>>;
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterResult {
    pub status: RegisterStatus,
    pub urn: Urn,
    /// `None` for components and for ids not known yet.
    pub id: Option<String>,
    /// What the program gets to see: outputs of custom resources, nothing for components.
    pub outputs: PropertyMap,
    /// Outputs that this update cannot change.
    pub stable: Vec<String>,
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// The create was left out (not targeted): every output is unknown.
    pub elided: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterStatus {
    Succeeded,
    Failed,
    Skipped,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum RegisterError {
    /// The request itself is wrong; the program is told why.
    #[error("{message}")]
    Invalid { message: String },
    /// The deployment is ending and takes no more registrations. Diagnostics were emitted.
    #[error("the deployment is shutting down")]
    ShuttingDown,
}

/// What a program asks to read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadGoal {
    pub type_: TypeToken,
    pub name: String,
    pub id: String,
    pub parent: Option<Urn>,
    pub properties: PropertyMap,
    pub dependencies: Vec<Urn>,
    pub provider: String,
    pub additional_secret_outputs: Vec<String>,
    pub source_position: String,
    pub stack_trace: Vec<String>,
}
