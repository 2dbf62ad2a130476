//! A resource is changed where it is.

use std::sync::Arc;

use nimbus_engine_model::ResourceState;
use nimbus_engine_ports::DiffResponse;

use super::{Reasons, broken, check_recorded, check_wanted};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct UpdateStep {
    old: RecordedResource,
    new: Arc<ResourceState>,
    reasons: Reasons,
    stable_keys: Vec<String>,
}

impl UpdateStep {
    pub(crate) fn new(
        old: RecordedResource,
        mut new: ResourceState,
        diff: &DiffResponse,
    ) -> Result<Self, DeployError> {
        check_recorded(&old.state)?;
        check_wanted(&new)?;
        if old.state.delete || old.state.external {
            return Err(broken(
                &new,
                "cannot be updated: its record is not a live one",
            ));
        }
        new.id.clone_from(&old.state.id);
        new.created = old.state.created;
        new.modified = old.state.modified;
        Ok(Self {
            old,
            new: Arc::new(new),
            reasons: Reasons::of(diff),
            stable_keys: diff.stable_keys.clone(),
        })
    }

    pub(crate) fn old(&self) -> &RecordedResource {
        &self.old
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }

    pub(crate) fn reasons(&self) -> &Reasons {
        &self.reasons
    }

    /// Outputs that cannot change by this update.
    pub(crate) fn stable_keys(&self) -> &[String] {
        &self.stable_keys
    }
}
