//! A program made of a recorded state: it asks for exactly what was there.
//!
//! Running it brings a stack back to that state as far as providers allow. No code of the past is
//! needed: inputs, options and dependencies are all in the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{Goal, ProviderRef, ResourceState, Snapshot, UNKNOWN_ID, Urn};
use nimbus_engine_ports::{
    Program, ProgramError, ReadGoal, RegisterError, RegisterStatus, Registrar,
};

pub(crate) struct RecordedProgram {
    snapshot: Snapshot,
}

impl RecordedProgram {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot }
    }

    async fn ask_for_all(&self, registrar: &dyn Registrar) -> Result<(), RegisterError> {
        // In the order of the record, which lists what is needed before who needs it. Providers may
        // have other ids now than when they were recorded.
        let mut providers: BTreeMap<Urn, String> = BTreeMap::new();
        let live = self
            .snapshot
            .resources
            .iter()
            .filter(|resource| !resource.delete);
        for resource in live {
            let provider = current_provider(resource, &providers);
            if resource.external {
                registrar.read(read_goal(resource, provider)).await?;
                continue;
            }
            let result = registrar.register(goal(resource, provider)).await?;
            if result.status != RegisterStatus::Succeeded {
                continue;
            }
            let id = result.id.unwrap_or_else(|| UNKNOWN_ID.to_owned());
            providers.insert(resource.urn.clone(), id);
            if !resource.custom {
                registrar
                    .register_outputs(result.urn, resource.outputs.clone())
                    .await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Program for RecordedProgram {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        match self.ask_for_all(registrar.as_ref()).await {
            Ok(()) => Ok(()),
            Err(RegisterError::ShuttingDown) => Err(ProgramError::AlreadyReported),
            Err(RegisterError::Invalid { message }) => Err(ProgramError::Failed { message }),
        }
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        Ok(())
    }
}

fn current_provider(resource: &ResourceState, providers: &BTreeMap<Urn, String>) -> String {
    let Ok(reference) = ProviderRef::parse(&resource.provider) else {
        return resource.provider.clone();
    };
    let id = providers
        .get(&reference.urn)
        .cloned()
        .unwrap_or(reference.id);
    ProviderRef {
        urn: reference.urn,
        id,
    }
    .to_string()
}

/// What is recorded, without hooks, which are functions of a program that is not run, and without the
/// import option: the object may be gone, and then it has to be made.
fn goal(resource: &ResourceState, provider: String) -> Goal {
    Goal {
        properties: resource.inputs.clone(),
        parent: resource.parent.clone(),
        protect: Some(resource.protect),
        dependencies: resource.dependencies.clone(),
        provider,
        property_dependencies: resource.property_dependencies.clone(),
        ignore_changes: resource.ignore_changes.clone(),
        replace_on_changes: resource.replace_on_changes.clone(),
        additional_secret_outputs: resource.additional_secret_outputs.clone(),
        custom_timeouts: resource.custom_timeouts,
        retain_on_delete: Some(resource.retain_on_delete),
        deleted_with: resource.deleted_with.clone(),
        replace_with: resource.replace_with.clone(),
        replacement_trigger: resource.replacement_trigger.clone(),
        source_position: resource.source_position.clone(),
        stack_trace: resource.stack_trace.clone(),
        hide_diff: resource.hide_diff.clone(),
        ..Goal::new(resource.type_.clone(), resource.urn.name(), resource.custom)
    }
}

fn read_goal(resource: &ResourceState, provider: String) -> ReadGoal {
    ReadGoal {
        type_: resource.type_.clone(),
        name: resource.urn.name().to_owned(),
        id: resource.id.clone().unwrap_or_default(),
        parent: resource.parent.clone(),
        properties: resource.inputs.clone(),
        dependencies: resource.dependencies.clone(),
        provider,
        additional_secret_outputs: resource.additional_secret_outputs.clone(),
        source_position: resource.source_position.clone(),
        stack_trace: resource.stack_trace.clone(),
    }
}
