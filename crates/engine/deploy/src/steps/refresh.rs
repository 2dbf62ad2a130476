//! A recorded resource is compared with what is really there.

use nimbus_engine_model::provider_package;

use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct RefreshStep {
    old: RecordedResource,
}

impl RefreshStep {
    pub(crate) fn new(old: RecordedResource) -> Self {
        Self { old }
    }

    pub(crate) fn old(&self) -> &RecordedResource {
        &self.old
    }

    /// Whether there is an object to look at. Components and providers have none, and what waits
    /// for its replacement is gone already.
    pub(crate) fn has_object(&self) -> bool {
        let state = &self.old.state;
        state.custom && provider_package(&state.type_).is_none() && !state.pending_replacement
    }
}
