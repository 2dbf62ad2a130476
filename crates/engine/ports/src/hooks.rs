//! Hooks: functions of the program that run around a resource's steps.

use async_trait::async_trait;
use nimbus_engine_model::{HookKind, PropertyMap, TypeToken, Urn};

/// Calls back into the program. The deployment asks for hooks by the names that goals carry.
#[async_trait]
pub trait HookRunner: Send + Sync {
    /// Whether the hook wants to run in previews. An unknown name answers `None`.
    fn runs_on_dry_run(&self, name: &str) -> Option<bool>;
    async fn run(&self, request: HookRequest) -> Result<(), HookError>;
    /// Asks an error hook whether the failed step should be tried again.
    async fn retry(&self, request: HookRequest, errors: &[String]) -> Result<bool, HookError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct HookRequest {
    pub hook: String,
    pub kind: HookKind,
    pub urn: Urn,
    pub id: Option<String>,
    pub name: String,
    pub type_: TypeToken,
    pub new_inputs: Option<PropertyMap>,
    pub old_inputs: Option<PropertyMap>,
    pub new_outputs: Option<PropertyMap>,
    pub old_outputs: Option<PropertyMap>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum HookError {
    #[error("hook {hook} failed: {message}")]
    Failed { hook: String, message: String },
    #[error("there is no hook named {hook}")]
    NotFound { hook: String },
}
