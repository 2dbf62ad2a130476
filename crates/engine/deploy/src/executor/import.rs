//! Taking an existing object under management.

use std::sync::Arc;

use nimbus_engine_model::{JournalChange, OperationKind, PropertyMap, ResourceState, StateRef};
use nimbus_engine_ports::{CheckRequest, Provider, ProviderError, ReadRequest, Severity};

use super::{Executor, ProviderAnswer, StepError};
use crate::known::RecordedResource;
use crate::steps::{ImportOrigin, ImportStep};

/// The object as its provider describes it.
struct ImportedObject {
    id: String,
    inputs: PropertyMap,
    outputs: PropertyMap,
    init_errors: Vec<String>,
    refresh_before_update: bool,
}

impl Executor {
    pub(super) async fn import(&self, step: &ImportStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let known = if wanted.custom {
            let provider = self.provider(wanted).await?;
            let act = self.begin(OperationKind::Importing, wanted).await?;
            let answer = match self.examine(wanted, provider.as_ref()).await {
                ProviderAnswer::Done(object) => {
                    self.check_imported(step, object, provider.as_ref()).await
                }
                other => other,
            };
            self.conclude(act, answer, |object| self.imported(step, object))
                .await?
        } else {
            let (change, state) = self.imported_component(wanted);
            let act = self.record(None, change).await?;
            RecordedResource {
                key: StateRef::New(act),
                state,
            }
        };
        self.states.put(known.clone());
        Ok(known)
    }

    async fn examine(
        &self,
        wanted: &ResourceState,
        provider: &dyn Provider,
    ) -> ProviderAnswer<ImportedObject> {
        let import_id = wanted.import_id.clone().unwrap_or_default();
        let request = ReadRequest {
            urn: Some(wanted.urn.clone()),
            name: wanted.urn.name().to_owned(),
            type_: wanted.type_.clone(),
            id: import_id.clone(),
            ..ReadRequest::default()
        };
        let failed = |message: String| ProviderAnswer::failed(message);
        let (response, init_errors) = match provider.read(request).await {
            Ok(response) => (response, Vec::new()),
            Err(ProviderError::InitFailed(failure)) => {
                let response = nimbus_engine_ports::ReadResponse {
                    id: Some(failure.id),
                    outputs: failure.properties,
                    inputs: failure.inputs,
                    refresh_before_update: failure.refresh_before_update,
                };
                (response, failure.reasons)
            }
            // Looking changes nothing, so not even an unknown outcome leaves something open.
            Err(error) => return ProviderAnswer::refused(&error),
        };
        let Some(id) = response.id else {
            return failed(format!("there is no object {import_id}"));
        };
        let Some(inputs) = response.inputs else {
            return failed("the provider cannot import: it does not return inputs".to_owned());
        };
        ProviderAnswer::Done(ImportedObject {
            id: if id.is_empty() { import_id } else { id },
            inputs,
            outputs: response.outputs,
            init_errors,
            refresh_before_update: response.refresh_before_update,
        })
    }

    /// The import operation has no program to compare with. It asks the provider whether it would
    /// accept its own inputs, and goes on either way.
    async fn check_imported(
        &self,
        step: &ImportStep,
        object: ImportedObject,
        provider: &dyn Provider,
    ) -> ProviderAnswer<ImportedObject> {
        let ImportOrigin::Command { properties, seed } = step.origin() else {
            return ProviderAnswer::Done(object);
        };
        let wanted = step.new_state();
        let request = CheckRequest {
            urn: Some(wanted.urn.clone()),
            name: wanted.urn.name().to_owned(),
            type_: wanted.type_.clone(),
            olds: Some(object.inputs.clone()),
            news: chosen_inputs(&object.inputs, properties),
            random_seed: seed.to_vec(),
            naming: None,
            allow_unknowns: self.rules.dry_run,
        };
        let response = match provider.check(request).await {
            Ok(response) => response,
            Err(error) => return ProviderAnswer::refused(&error),
        };
        for failure in response.failures {
            let message = format!(
                "the imported inputs are not ones that the provider accepts, so the program will \
                 need others: {} {}",
                failure.property, failure.reason
            );
            self.diagnose(Severity::Warning, Some(&wanted.urn), message);
        }
        ProviderAnswer::Done(object)
    }

    fn imported(
        &self,
        step: &ImportStep,
        object: ImportedObject,
    ) -> (JournalChange, Arc<ResourceState>) {
        let now = self.clock.now();
        let mut state = ResourceState::clone(step.new_state());
        state.id = Some(object.id);
        state.outputs = object.outputs;
        state.init_errors = object.init_errors;
        state.refresh_before_update = object.refresh_before_update;
        state.created = Some(now);
        state.modified = Some(now);
        match step.origin() {
            ImportOrigin::Program { .. } => state.inputs = object.inputs,
            ImportOrigin::Command { properties, .. } => {
                state.inputs = chosen_inputs(&object.inputs, properties);
                state.import_id = None;
            }
        }
        self.mark_secrets(&mut state);
        let state = Arc::new(state);
        let change = JournalChange {
            state: Some(Arc::clone(&state)),
            mark_delete: step.original().map(|original| original.key),
            ..JournalChange::default()
        };
        (change, state)
    }

    fn imported_component(&self, wanted: &ResourceState) -> (JournalChange, Arc<ResourceState>) {
        let now = self.clock.now();
        let mut state = wanted.clone();
        state.created = Some(now);
        state.modified = Some(now);
        let state = Arc::new(state);
        (
            JournalChange {
                state: Some(Arc::clone(&state)),
                ..JournalChange::default()
            },
            state,
        )
    }
}

/// The inputs to keep: those named, or all.
fn chosen_inputs(inputs: &PropertyMap, properties: &[String]) -> PropertyMap {
    let kept = inputs
        .iter()
        .filter(|(key, _)| properties.is_empty() || properties.contains(key));
    kept.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
