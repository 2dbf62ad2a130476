//! Comparing the record with what is really there.
//!
//! A refresh step records nothing by itself: what all of them found is judged together, and then
//! recorded together.

use std::sync::Arc;

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::{PropertyMap, ResourceState, StepOp};
use nimbus_engine_ports::{
    DiffRequest, DiffResponse, Diffs, Provider, ProviderError, ReadRequest, ReadResponse, Severity,
};

use super::{Executor, StepError};
use crate::generator::{complete, invert};
use crate::steps::RefreshStep;

/// What a refresh found.
#[derive(Clone, Debug)]
pub(crate) struct Refreshed {
    /// What it amounts to: same, update or delete.
    pub op: StepOp,
    /// The resource as it really is; `None` when it is gone.
    pub new: Option<Arc<ResourceState>>,
    pub diff: DiffResponse,
}

impl Refreshed {
    fn unchanged(state: &Arc<ResourceState>) -> Self {
        let new = Some(Arc::clone(state));
        Self {
            op: StepOp::Same,
            new,
            diff: DiffResponse::default(),
        }
    }
}

impl Executor {
    pub(super) async fn refresh(&self, step: &RefreshStep) -> Result<Refreshed, StepError> {
        let old = &step.old().state;
        if !step.has_object() {
            return Ok(Refreshed::unchanged(old));
        }
        let provider = self.provider(old).await?;
        let (response, init_errors) = self.current(old, provider.as_ref()).await?;
        let Some(id) = response.id else {
            return Ok(Refreshed {
                op: StepOp::Delete,
                new: None,
                diff: DiffResponse::default(),
            });
        };
        let mut state = ResourceState::clone(old);
        state.id = Some(id);
        state.init_errors = init_errors;
        state.refresh_before_update = response.refresh_before_update;
        // A provider may know outputs only; the next comparison needs inputs, so the old ones stay.
        state.inputs = response.inputs.unwrap_or_else(|| old.inputs.clone());
        state.outputs = response.outputs;
        self.mark_secrets(&mut state);
        let drifted =
            !maps_equal(&state.inputs, &old.inputs) || !maps_equal(&state.outputs, &old.outputs);
        if drifted {
            state.modified = Some(self.clock.now());
        }
        self.judge(old, Arc::new(state), provider.as_ref()).await
    }

    async fn current(
        &self,
        old: &ResourceState,
        provider: &dyn Provider,
    ) -> Result<(ReadResponse, Vec<String>), StepError> {
        let request = ReadRequest {
            urn: Some(old.urn.clone()),
            name: old.urn.name().to_owned(),
            type_: old.type_.clone(),
            id: old.id.clone().unwrap_or_default(),
            inputs: old.inputs.clone(),
            state: old.outputs.clone(),
        };
        match provider.read(request).await {
            Ok(mut response) => {
                response.id = response.id.filter(|id| !id.is_empty());
                Ok((response, Vec::new()))
            }
            Err(ProviderError::InitFailed(failure)) => {
                let message = format!("the object is not healthy: {}", failure.reasons.join("; "));
                self.diagnose(Severity::Warning, Some(&old.urn), message);
                let id = Some(failure.id)
                    .filter(|id| !id.is_empty())
                    .or_else(|| old.id.clone());
                let response = ReadResponse {
                    id,
                    outputs: failure.properties,
                    inputs: failure.inputs,
                    refresh_before_update: failure.refresh_before_update,
                };
                Ok((response, failure.reasons))
            }
            // Whoever could not look has seen nothing: this says nothing about the object.
            Err(error) => Err(StepError::refused(&error)),
        }
    }

    /// Shows drift as what an update that changes nothing else would put right, turned round.
    async fn judge(
        &self,
        old: &ResourceState,
        state: Arc<ResourceState>,
        provider: &dyn Provider,
    ) -> Result<Refreshed, StepError> {
        if old.external {
            let same = maps_equal(&old.outputs, &state.outputs);
            let op = if same { StepOp::Same } else { StepOp::Update };
            return Ok(Refreshed {
                op,
                new: Some(state),
                diff: DiffResponse::default(),
            });
        }
        let request = DiffRequest {
            urn: Some(state.urn.clone()),
            name: state.urn.name().to_owned(),
            type_: state.type_.clone(),
            id: state.id.clone().unwrap_or_default(),
            old_inputs: state.inputs.clone(),
            old_outputs: state.outputs.clone(),
            new_inputs: old.inputs.clone(),
            allow_unknowns: self.rules.dry_run,
            ignore_changes: old.ignore_changes.clone(),
        };
        let diff = self.drift(provider, request, &state.inputs, old).await?;
        let op = if diff.changes == Diffs::None {
            StepOp::Same
        } else {
            StepOp::Update
        };
        Ok(Refreshed {
            op,
            new: Some(state),
            diff: invert(diff),
        })
    }

    async fn drift(
        &self,
        provider: &dyn Provider,
        request: DiffRequest,
        found: &PropertyMap,
        old: &ResourceState,
    ) -> Result<DiffResponse, StepError> {
        match provider.diff(request).await {
            Ok(diff) => Ok(complete(diff, found, &old.inputs, &old.ignore_changes)),
            Err(error) => Err(StepError::refused(&error)),
        }
    }
}
