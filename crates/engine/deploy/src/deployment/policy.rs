//! Policy packs: they put inputs right, and say what is wrong.
//!
//! For each resource all packs remediate first, one after the other, each seeing what the one
//! before left; then all analyse. A mandatory violation stops the resource before anything happens
//! to it and ends the operation. A preview goes on, to show all violations, and fails at its end.

use nimbus_engine_model::{PropertyMap, ResourceState, Urn};
use nimbus_engine_ports::{
    AnalyzeRequest, AnalyzerError, AnalyzerProvider, AnalyzerResource, EnforcementLevel,
    EngineEvent, PolicyDiagnostic, PolicyViolation, Remediation,
};

use super::Deployment;
use crate::error::DeployError;
use crate::generator::PendingRegistration;

impl Deployment {
    /// Tells which packs will judge.
    pub(crate) fn tell_policies(&self) {
        for analyzer in &self.analyzers {
            let info = analyzer.info();
            let (pack, version) = (info.name.clone(), info.version.clone());
            self.executor
                .emit(EngineEvent::PolicyLoaded { pack, version });
        }
    }

    /// Inputs as the policies leave them.
    pub(super) async fn apply_policies(
        &self,
        registration: &mut PendingRegistration,
        inputs: PropertyMap,
    ) -> Result<PropertyMap, DeployError> {
        if self.analyzers.is_empty() {
            return Ok(inputs);
        }
        let provider = self.decide(|g| g.provider_of(&registration.new)).await;
        let provider = provider.map(|provider| analyzer_provider(&provider));
        let mut request = analyze_request(
            &registration.new,
            inputs,
            registration.goal.delete_before_replace,
        );
        request.provider = provider;
        for analyzer in &self.analyzers {
            for remediation in analyzer.remediate(&request).await.map_err(unanswered)? {
                self.remediate(&mut request, remediation);
            }
        }
        registration.new.inputs.clone_from(&request.properties);
        let mut violations = 0;
        for analyzer in &self.analyzers {
            for found in analyzer.analyze(&request).await.map_err(unanswered)? {
                violations += self.report(Some(&registration.urn), found);
            }
        }
        self.judge(violations).await?;
        Ok(request.properties)
    }

    fn remediate(&self, request: &mut AnalyzeRequest, remediation: Remediation) {
        let Remediation {
            policy,
            pack,
            pack_version,
            properties,
            diagnostic,
        } = remediation;
        let urn = request.urn.clone();
        if !diagnostic.is_empty() {
            self.executor
                .emit(EngineEvent::PolicyViolation(PolicyViolation {
                    urn: Some(urn),
                    message: diagnostic,
                    policy,
                    pack,
                    pack_version,
                    enforcement: EnforcementLevel::Advisory,
                }));
        } else if let Some(after) = properties {
            let before = std::mem::replace(&mut request.properties, after.clone());
            self.executor.emit(EngineEvent::PolicyRemediation {
                urn,
                policy,
                pack,
                pack_version,
                before,
                after,
            });
        }
    }

    /// Tells a finding; 1 if it is one that must not stand.
    fn report(&self, urn: Option<&Urn>, found: PolicyDiagnostic) -> usize {
        let enforcement = match found.enforcement {
            EnforcementLevel::Disabled => return 0,
            // What is still wrong after remediation is as bad as a mandatory violation.
            EnforcementLevel::Remediate => EnforcementLevel::Mandatory,
            level => level,
        };
        self.executor
            .emit(EngineEvent::PolicyViolation(PolicyViolation {
                urn: urn.cloned().or(found.urn),
                message: found.message,
                policy: found.policy,
                pack: found.pack,
                pack_version: found.pack_version,
                enforcement,
            }));
        usize::from(enforcement == EnforcementLevel::Mandatory)
    }

    async fn judge(&self, violations: usize) -> Result<(), DeployError> {
        if violations == 0 {
            return Ok(());
        }
        self.decide(|generator| generator.violate(violations)).await
    }

    /// Shows the whole stack, with outputs, to the packs at the end.
    pub(crate) async fn analyze_stack(&self) -> Result<(), DeployError> {
        if self.analyzers.is_empty() {
            return Ok(());
        }
        let mut resources = Vec::new();
        for state in self.executor.states.managed() {
            let provider = self.decide(|generator| generator.provider_of(&state)).await;
            let mut resource = analyze_request(&state, state.outputs.clone(), None);
            resource.provider = provider.map(|provider| analyzer_provider(&provider));
            resources.push(AnalyzerResource {
                resource,
                dependencies: state.dependencies.clone(),
                property_dependencies: state.property_dependencies.clone(),
            });
        }
        let mut violations = 0;
        for analyzer in &self.analyzers {
            for found in analyzer
                .analyze_stack(&resources)
                .await
                .map_err(unanswered)?
            {
                let urn = found
                    .urn
                    .clone()
                    .filter(|urn| self.executor.states.get(urn).is_some());
                let urn = urn.unwrap_or_else(|| self.root.clone());
                violations += self.report(Some(&urn), found);
            }
        }
        self.judge(violations).await
    }
}

fn analyze_request(
    state: &ResourceState,
    properties: PropertyMap,
    delete_before_replace: Option<bool>,
) -> AnalyzeRequest {
    AnalyzeRequest {
        urn: state.urn.clone(),
        type_: state.type_.clone(),
        name: state.urn.name().to_owned(),
        properties,
        protect: state.protect,
        ignore_changes: state.ignore_changes.clone(),
        delete_before_replace,
        additional_secret_outputs: state.additional_secret_outputs.clone(),
        aliases: state.aliases.clone(),
        custom_timeouts: state.custom_timeouts,
        parent: state.parent.clone(),
        provider: None,
    }
}

fn analyzer_provider(provider: &ResourceState) -> AnalyzerProvider {
    AnalyzerProvider {
        urn: provider.urn.clone(),
        type_: provider.type_.clone(),
        name: provider.urn.name().to_owned(),
        properties: provider.inputs.clone(),
    }
}

fn unanswered(error: AnalyzerError) -> DeployError {
    DeployError::PolicyFailed {
        message: error.to_string(),
    }
}
