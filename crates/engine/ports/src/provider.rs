//! A provider: something that creates, reads, changes and deletes resources of one package.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_engine_model::{
    Naming, PackageDescriptor, Parameterization, PropertyMap, PropertyValue, TypeToken, Urn,
};

use crate::failure_cause::FailureCause;

/// A loaded provider. Every method may be called concurrently.
///
/// Property values arrive and leave with their secrets marked; an implementation whose peer does
/// not understand secrets strips them on the way in and marks them again on the way out.
#[async_trait]
pub trait Provider: Send + Sync {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError>;
    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError>;
    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError>;

    /// Makes it serve an extension of its package beside the package itself. Asked again with the same
    /// one, it has nothing to do.
    async fn extend(&self, _extension: &Parameterization) -> Result<(), ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "Parameterize",
        })
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError>;
    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError>;
    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError>;
    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError>;
    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError>;
    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError>;

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError>;
    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError>;
    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError>;

    /// Asks running calls to end early.
    async fn cancel(&self) -> Result<(), ProviderError>;
    /// Ends the provider's process, if it has one of its own.
    async fn close(&self);
}

/// Where providers come from.
#[async_trait]
pub trait ProviderHost: Send + Sync {
    /// A fresh, unconfigured provider. Implementations may share processes behind it as long as
    /// configurations do not mix.
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError>;
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("no plugin for package {package}{}: {reason}", version.as_ref().map(|v| format!(" {v}")).unwrap_or_default())]
    NotFound {
        package: String,
        version: Option<semver::Version>,
        reason: String,
    },
    #[error("the plugin for package {package} did not start: {reason}")]
    NotStarted { package: String, reason: String },
}

/// Why a provider call did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider answered: it did not do it.
    #[error("{message}")]
    Failed {
        cause: FailureCause,
        message: String,
    },
    /// The object exists but did not finish initialising.
    #[error("{}", .0.reasons.join("; "))]
    InitFailed(Box<InitFailure>),
    /// The provider died, hung or answered nonsense while it may have acted.
    #[error("the outcome is unknown: {message}")]
    Unknown { message: String },
    /// The provider does not have this method.
    #[error("the provider does not implement {method}")]
    Unimplemented { method: &'static str },
    /// Somebody cancelled before the provider acted.
    #[error("cancelled")]
    Cancelled,
}

impl ProviderError {
    /// Something was not done, for a reason that nobody acts on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            cause: FailureCause::Other,
            message: message.into(),
        }
    }

    /// What it goes back to.
    pub fn cause(&self) -> FailureCause {
        match self {
            Self::Failed { cause, .. } => *cause,
            // What is there but not ready, or not known at all, has met no limit.
            Self::InitFailed(_)
            | Self::Unknown { .. }
            | Self::Unimplemented { .. }
            | Self::Cancelled => FailureCause::Other,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct InitFailure {
    pub id: String,
    pub properties: PropertyMap,
    pub inputs: Option<PropertyMap>,
    pub reasons: Vec<String>,
    pub refresh_before_update: bool,
}

/// Check and CheckConfig.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CheckRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    /// Inputs of the recorded state; `None` for a new resource.
    pub olds: Option<PropertyMap>,
    pub news: PropertyMap,
    /// Makes generated names reproducible; empty when they need not be.
    pub random_seed: Vec<u8>,
    /// The stack's own rules for a name that the program does not give.
    pub naming: Option<Naming>,
    pub allow_unknowns: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CheckResponse {
    pub properties: PropertyMap,
    pub failures: Vec<CheckFailure>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CheckFailure {
    pub property: String,
    pub reason: String,
}

/// Diff and DiffConfig.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DiffRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    pub id: String,
    pub old_inputs: PropertyMap,
    pub old_outputs: PropertyMap,
    pub new_inputs: PropertyMap,
    pub allow_unknowns: bool,
    pub ignore_changes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct DiffResponse {
    pub changes: Diffs,
    /// Keys whose change forces a replacement.
    pub replace_keys: Vec<String>,
    pub changed_keys: Vec<String>,
    pub stable_keys: Vec<String>,
    /// By property path; `None` when the provider does not say.
    pub detailed: Option<BTreeMap<String, PropertyDiff>>,
    pub delete_before_replace: bool,
}

impl DiffResponse {
    pub fn replaces(&self) -> bool {
        !self.replace_keys.is_empty()
            || self
                .detailed
                .as_ref()
                .is_some_and(|d| d.values().any(|p| p.kind.is_replace()))
    }
}

/// Whether a provider sees a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Diffs {
    /// The provider cannot tell; the engine compares inputs.
    #[default]
    Unknown,
    None,
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyDiff {
    pub kind: DiffKind,
    /// The difference is between old and new inputs, not between old state and new inputs.
    pub input_diff: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    Add,
    AddReplace,
    Delete,
    DeleteReplace,
    Update,
    UpdateReplace,
}

impl DiffKind {
    pub fn is_replace(self) -> bool {
        matches!(
            self,
            Self::AddReplace | Self::DeleteReplace | Self::UpdateReplace
        )
    }

    pub fn as_replace(self) -> Self {
        match self {
            Self::Add | Self::AddReplace => Self::AddReplace,
            Self::Delete | Self::DeleteReplace => Self::DeleteReplace,
            Self::Update | Self::UpdateReplace => Self::UpdateReplace,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::AddReplace => "add-replace",
            Self::Delete => "delete",
            Self::DeleteReplace => "delete-replace",
            Self::Update => "update",
            Self::UpdateReplace => "update-replace",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConfigureRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    /// `None` in a preview whose provider was not created yet.
    pub id: Option<String>,
    pub inputs: PropertyMap,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    pub properties: PropertyMap,
    pub timeout: Option<Duration>,
    pub preview: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateResponse {
    /// Empty only in a preview.
    pub id: String,
    pub properties: PropertyMap,
    pub refresh_before_update: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    pub id: String,
    pub inputs: PropertyMap,
    pub state: PropertyMap,
}

/// An absent object has no id.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadResponse {
    pub id: Option<String>,
    pub outputs: PropertyMap,
    /// `None` when the provider does not return inputs.
    pub inputs: Option<PropertyMap>,
    pub refresh_before_update: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    pub id: String,
    pub old_inputs: PropertyMap,
    pub old_outputs: PropertyMap,
    pub new_inputs: PropertyMap,
    pub timeout: Option<Duration>,
    pub ignore_changes: Vec<String>,
    pub preview: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateResponse {
    pub properties: PropertyMap,
    pub refresh_before_update: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRequest {
    pub urn: Option<Urn>,
    pub name: String,
    pub type_: TypeToken,
    pub id: String,
    pub inputs: PropertyMap,
    pub outputs: PropertyMap,
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct InvokeRequest {
    pub token: String,
    pub args: PropertyMap,
    pub preview: bool,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct InvokeResponse {
    pub properties: PropertyMap,
    pub failures: Vec<CheckFailure>,
}

/// What remote code needs to call back into the running deployment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeploymentContext {
    pub project: String,
    pub stack: String,
    pub organization: String,
    pub config: BTreeMap<String, String>,
    pub config_secret_keys: BTreeSet<String>,
    pub dry_run: bool,
    pub parallel: i32,
    pub monitor_endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CallRequest {
    pub context: DeploymentContext,
    pub token: String,
    pub args: PropertyMap,
    pub arg_dependencies: BTreeMap<String, Vec<Urn>>,
    pub stack_trace_handle: String,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CallResponse {
    pub properties: PropertyMap,
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    pub failures: Vec<CheckFailure>,
}

/// Options that a remote component gets beside its inputs.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConstructOptions {
    pub aliases: Vec<nimbus_engine_model::Alias>,
    pub dependencies: Vec<Urn>,
    pub protect: Option<bool>,
    pub providers: BTreeMap<String, String>,
    pub additional_secret_outputs: Vec<String>,
    pub custom_timeouts: nimbus_engine_model::CustomTimeouts,
    pub deleted_with: Option<Urn>,
    pub replace_with: Vec<Urn>,
    pub delete_before_replace: Option<bool>,
    pub ignore_changes: Vec<String>,
    pub replace_on_changes: Vec<String>,
    pub replacement_trigger: PropertyValue,
    pub retain_on_delete: Option<bool>,
    pub hooks: BTreeMap<nimbus_engine_model::HookKind, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConstructRequest {
    pub context: DeploymentContext,
    pub type_: TypeToken,
    pub name: String,
    pub parent: Option<Urn>,
    pub inputs: PropertyMap,
    pub input_dependencies: BTreeMap<String, Vec<Urn>>,
    pub options: ConstructOptions,
    pub stack_trace_handle: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConstructResponse {
    pub urn: Urn,
    pub outputs: PropertyMap,
    pub output_dependencies: BTreeMap<String, Vec<Urn>>,
}
