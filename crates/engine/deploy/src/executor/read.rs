//! Looking up an object that the stack does not manage.

use std::sync::Arc;

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::{Change, OperationKind, PropertyMap, ResourceState, UNKNOWN_ID};
use nimbus_engine_ports::{ProviderError, ReadRequest};

use super::{Answer, Executor, StepError};
use crate::known::Known;
use crate::steps::ReadStep;

/// What was found.
struct Found {
    id: String,
    outputs: PropertyMap,
    init_errors: Vec<String>,
}

impl Executor {
    /// Reading changes nothing, so it happens in previews as well, and an error is an error even
    /// if nobody knows how the provider fared.
    pub(super) async fn read(&self, step: &ReadStep) -> Result<Known, StepError> {
        let wanted = step.new_state();
        let id = wanted.id.clone().unwrap_or_default();
        let act = self.begin(OperationKind::Reading, wanted).await?;
        let answer = if id == UNKNOWN_ID {
            Answer::Done(Found {
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
        self.world.put(known.clone());
        Ok(known)
    }

    async fn look_up(&self, wanted: &ResourceState, id: String) -> Answer<Found> {
        let provider = match self.provider(&wanted.urn, &wanted.provider) {
            Ok(provider) => provider,
            Err(error) => {
                return Answer::Failed {
                    message: error.message(),
                };
            }
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
                Some(id) => Answer::Done(Found {
                    id,
                    outputs: response.outputs,
                    init_errors: Vec::new(),
                }),
                None => Answer::Failed {
                    message: format!("there is no object {id}"),
                },
            },
            Err(ProviderError::InitFailed(failure)) => {
                let message = failure.reasons.join("; ");
                let id = if failure.id.is_empty() {
                    id
                } else {
                    failure.id
                };
                let outputs = failure.properties;
                let value = Found {
                    id,
                    outputs,
                    init_errors: failure.reasons,
                };
                Answer::HalfDone { message, value }
            }
            Err(error) => Answer::Failed {
                message: error.to_string(),
            },
        }
    }

    fn found(&self, step: &ReadStep, found: Found) -> (Change, Arc<ResourceState>) {
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
        let mut change = Change {
            state: Some(Arc::clone(&state)),
            ..Change::default()
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
