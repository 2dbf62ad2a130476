//! Looking up an object that the stack does not manage.

use std::sync::Arc;

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::{JournalChange, OperationKind, PropertyMap, ResourceState, UNKNOWN_ID};
use nimbus_engine_ports::{ProviderError, ReadRequest};

use super::{Executor, ProviderAnswer, StepError};
use crate::known::RecordedResource;
use crate::steps::ReadStep;

/// What was found.
struct ReadResult {
    id: String,
    outputs: PropertyMap,
    init_errors: Vec<String>,
}

impl Executor {
    /// Reading changes nothing, so it happens in previews as well, and an error is an error even
    /// if nobody knows how the provider fared.
    pub(super) async fn read(&self, step: &ReadStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let id = wanted.id.clone().unwrap_or_default();
        let act = self.begin(OperationKind::Reading, wanted).await?;
        let answer = if id == UNKNOWN_ID {
            ProviderAnswer::Done(ReadResult {
                id,
                outputs: PropertyMap::new(),
                init_errors: Vec::new(),
            })
        } else {
            self.look_up(wanted, id).await
        };
        let known = self
            .conclude(act, answer, |found| self.found(step, found))
            .await?;
        self.states.put(known.clone());
        Ok(known)
    }

    async fn look_up(&self, wanted: &ResourceState, id: String) -> ProviderAnswer<ReadResult> {
        let provider = match self.provider(wanted).await {
            Ok(provider) => provider,
            Err(error) => return ProviderAnswer::failed(error.message()),
        };
        let request = ReadRequest {
            urn: Some(wanted.urn.clone()),
            name: wanted.urn.name().to_owned(),
            type_: wanted.type_.clone(),
            id: id.clone(),
            inputs: wanted.inputs.clone(),
            // All there is to send; providers expect it here too.
            state: wanted.inputs.clone(),
        };
        match provider.read(request).await {
            Ok(response) => match response.id {
                Some(id) => ProviderAnswer::Done(ReadResult {
                    id,
                    outputs: response.outputs,
                    init_errors: Vec::new(),
                }),
                None => ProviderAnswer::failed(format!("there is no object {id}")),
            },
            Err(ProviderError::InitFailed(failure)) => {
                let message = failure.reasons.join("; ");
                let id = if failure.id.is_empty() {
                    id
                } else {
                    failure.id
                };
                let outputs = failure.properties;
                let value = ReadResult {
                    id,
                    outputs,
                    init_errors: failure.reasons,
                };
                ProviderAnswer::HalfDone { message, value }
            }
            Err(error) => ProviderAnswer::refused(&error),
        }
    }

    fn found(&self, step: &ReadStep, found: ReadResult) -> (JournalChange, Arc<ResourceState>) {
        let mut state = ResourceState::clone(step.new_state());
        state.id = Some(found.id);
        state.outputs = found.outputs;
        state.init_errors = found.init_errors;
        self.mark_secrets(&mut state);
        if let Some(old) = step.old().map(|old| &old.state) {
            state.created = old.created;
            state.modified = old.modified;
            let same =
                maps_equal(&state.inputs, &old.inputs) && maps_equal(&state.outputs, &old.outputs);
            if !same {
                state.modified = Some(self.clock.now());
            }
        }
        let state = Arc::new(state);
        let mut change = JournalChange {
            state: Some(Arc::clone(&state)),
            ..JournalChange::default()
        };
        let key = step.old().map(|old| old.key);
        if step.replaces() {
            change.mark_delete = key;
        } else {
            change.remove = key;
        }
        (change, state)
    }
}
