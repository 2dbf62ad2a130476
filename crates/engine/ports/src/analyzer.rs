//! Policy packs: they look at resources and say what is wrong, or put it right.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nimbus_engine_model::{CustomTimeouts, PropertyMap, TypeToken, Urn};

#[async_trait]
pub trait Analyzer: Send + Sync {
    fn info(&self) -> &PolicyInfo;
    /// Looks at the inputs of one resource before anything happens to it.
    async fn analyze(
        &self,
        request: &AnalyzeRequest,
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError>;
    /// Proposes other inputs.
    async fn remediate(&self, request: &AnalyzeRequest) -> Result<Vec<Remediation>, AnalyzerError>;
    /// Looks at all resources, with outputs, at the end.
    async fn analyze_stack(
        &self,
        resources: &[AnalyzerResource],
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError>;
    async fn cancel(&self);
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct PolicyInfo {
    pub name: String,
    pub version: String,
    pub supports_remediation: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AnalyzeRequest {
    pub urn: Urn,
    pub type_: TypeToken,
    pub name: String,
    pub properties: PropertyMap,
    pub protect: bool,
    pub ignore_changes: Vec<String>,
    pub delete_before_replace: Option<bool>,
    pub additional_secret_outputs: Vec<String>,
    pub aliases: Vec<Urn>,
    pub custom_timeouts: CustomTimeouts,
    pub parent: Option<Urn>,
    /// URN, type, name and inputs of the provider resource.
    pub provider: Option<AnalyzerProvider>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AnalyzerProvider {
    pub urn: Urn,
    pub type_: TypeToken,
    pub name: String,
    pub properties: PropertyMap,
}

/// A resource in the whole-stack view.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalyzerResource {
    pub resource: AnalyzeRequest,
    pub dependencies: Vec<Urn>,
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDiagnostic {
    pub policy: String,
    pub pack: String,
    pub pack_version: String,
    pub message: String,
    pub enforcement: EnforcementLevel,
    pub urn: Option<Urn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EnforcementLevel {
    Advisory,
    Mandatory,
    Disabled,
    Remediate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Remediation {
    pub policy: String,
    pub pack: String,
    pub pack_version: String,
    /// The inputs as they should be; `None` when nothing is wrong.
    pub properties: Option<PropertyMap>,
    /// Why no remediation was possible.
    pub diagnostic: String,
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("policy pack {pack}: {message}")]
pub struct AnalyzerError {
    pub pack: String,
    pub message: String,
}
