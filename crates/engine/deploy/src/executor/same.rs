//! Nothing happens; the record may change.

use std::sync::Arc;

use nimbus_engine_model::{JournalChange, ResourceState, StateRef, provider_package};

use super::{Executor, StepError, mark_secret_outputs};
use crate::known::RecordedResource;
use crate::steps::SameStep;

impl Executor {
    pub(super) async fn same(&self, step: &SameStep) -> Result<RecordedResource, StepError> {
        let old = step.old();
        let mut state = ResourceState::clone(step.new_state());
        if provider_package(&state.type_).is_some() && !step.is_untargeted() {
            let id = state.id.clone().unwrap_or_default();
            let loaded = self.registry.same(&state.urn, &id, &old.state.inputs).await;
            loaded.map_err(|error| StepError::refused(&error))?;
        }
        mark_secret_outputs(&mut state);
        let state = Arc::new(state);
        // Recorded anew even if it is equal: a state lists resources in the order in which they
        // were settled, and what comes next may depend on this one.
        let change = JournalChange {
            remove: Some(old.key),
            state: Some(Arc::clone(&state)),
            ..JournalChange::default()
        };
        let act = if step.changes_record() {
            self.recorder.change(change).await?
        } else {
            self.recorder.note(change)
        };
        let known = RecordedResource {
            key: StateRef::New(act),
            state,
        };
        self.states.put(known.clone());
        Ok(known)
    }
}
