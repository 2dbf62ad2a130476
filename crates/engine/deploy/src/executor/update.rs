//! Changing a resource.

use std::sync::Arc;

use nimbus_engine_model::{
    HookKind, JournalChange, OperationKind, PropertyMap, ResourceState, StateRef, provider_package,
};
use nimbus_engine_ports::{ProviderError, UpdateRequest, UpdateResponse};

use super::create::timeout;
use super::hooks::Views;
use super::{Executor, ProviderAnswer, StepError, known_or_unknown};
use crate::known::RecordedResource;
use crate::steps::UpdateStep;

/// What came of the change: outputs, and what the object was last known to be made of.
struct Updated {
    response: UpdateResponse,
    inputs: PropertyMap,
    init_errors: Vec<String>,
}

impl Executor {
    pub(super) async fn update(&self, step: &UpdateStep) -> Result<RecordedResource, StepError> {
        let (old, wanted) = (&step.old().state, step.new_state());
        let before = Views {
            old: Some(old),
            new: Some(wanted),
            new_outputs: None,
        };
        self.run_before(HookKind::BeforeUpdate, before).await?;
        let known = if !wanted.custom {
            self.update_component(step).await?
        } else if provider_package(&wanted.type_).is_some() {
            self.update_provider(step).await?
        } else {
            self.update_object(step).await?
        };
        self.states.put(known.clone());
        if old.custom {
            let new = &*known.state;
            let after = Views {
                old: Some(old),
                new: Some(new),
                new_outputs: Some(&new.outputs),
            };
            self.run_after(HookKind::AfterUpdate, after).await;
        }
        Ok(known)
    }

    async fn update_object(&self, step: &UpdateStep) -> Result<RecordedResource, StepError> {
        let (old, wanted) = (&step.old().state, step.new_state());
        let provider = self.provider(wanted).await?;
        let request = UpdateRequest {
            urn: Some(wanted.urn.clone()),
            name: wanted.urn.name().to_owned(),
            type_: wanted.type_.clone(),
            id: old.id.clone().unwrap_or_default(),
            old_inputs: old.inputs.clone(),
            old_outputs: old.outputs.clone(),
            new_inputs: wanted.inputs.clone(),
            timeout: timeout(wanted.custom_timeouts.update),
            ignore_changes: wanted.ignore_changes.clone(),
            preview: self.rules.dry_run,
        };
        let act = self.begin(OperationKind::Updating, wanted).await?;
        let views = Views {
            old: Some(old),
            new: Some(wanted),
            new_outputs: None,
        };
        let call = || provider.update(request.clone());
        let answer = match self.with_retries(views, call, |_| true).await {
            Ok(response) => {
                let inputs = wanted.inputs.clone();
                ProviderAnswer::Done(Updated {
                    response,
                    inputs,
                    init_errors: Vec::new(),
                })
            }
            Err(ProviderError::InitFailed(failure)) => {
                let message = failure.reasons.join("; ");
                let response = UpdateResponse {
                    properties: failure.properties,
                    refresh_before_update: failure.refresh_before_update,
                };
                // The object exists as its outputs say, but it was not made with the new inputs.
                let inputs = old.inputs.clone();
                let value = Updated {
                    response,
                    inputs,
                    init_errors: failure.reasons,
                };
                ProviderAnswer::HalfDone { message, value }
            }
            Err(error) => known_or_unknown(error),
        };
        self.conclude(act, answer, |updated| self.updated(step, updated))
            .await
    }

    async fn update_provider(&self, step: &UpdateStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let id = step.old().state.id.clone().unwrap_or_default();
        let updated = self.registry.update(&wanted.urn, &id, &wanted.inputs).await;
        let response = updated.map_err(|error| StepError::refused(&error))?;
        let inputs = wanted.inputs.clone();
        let updated = Updated {
            response,
            inputs,
            init_errors: Vec::new(),
        };
        let (change, state) = self.updated(step, updated);
        let act = self.record(None, change).await?;
        Ok(RecordedResource {
            key: StateRef::New(act),
            state,
        })
    }

    async fn update_component(&self, step: &UpdateStep) -> Result<RecordedResource, StepError> {
        let mut state = ResourceState::clone(step.new_state());
        self.mark_secrets(&mut state);
        let state = Arc::new(state);
        let act = self.record(None, supersede(step, &state)).await?;
        Ok(RecordedResource {
            key: StateRef::New(act),
            state,
        })
    }

    fn updated(&self, step: &UpdateStep, updated: Updated) -> (JournalChange, Arc<ResourceState>) {
        let mut state = ResourceState::clone(step.new_state());
        let Updated {
            response,
            inputs,
            init_errors,
        } = updated;
        state.inputs = inputs;
        state.outputs = response.properties;
        state.refresh_before_update = response.refresh_before_update;
        state.init_errors = init_errors;
        state.modified = Some(self.clock.now());
        self.mark_secrets(&mut state);
        let state = Arc::new(state);
        (supersede(step, &state), state)
    }
}

fn supersede(step: &UpdateStep, state: &Arc<ResourceState>) -> JournalChange {
    JournalChange {
        remove: Some(step.old().key),
        state: Some(Arc::clone(state)),
        ..JournalChange::default()
    }
}
