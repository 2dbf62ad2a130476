//! Nothing happens to the resource itself, but its record may change.

use std::sync::Arc;

use nimbus_engine_model::ResourceState;

use super::{check_provided, check_recorded};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct SameStep {
    old: RecordedResource,
    new: Arc<ResourceState>,
    untargeted: bool,
}

impl SameStep {
    /// The program asks for what is there already; options and dependencies may differ.
    pub(crate) fn new(old: RecordedResource, mut new: ResourceState) -> Result<Self, DeployError> {
        check_recorded(&old.state)?;
        check_provided(&new)?;
        new.id.clone_from(&old.state.id);
        new.outputs.clone_from(&old.state.outputs);
        Ok(Self {
            old,
            new: Arc::new(new),
            untargeted: false,
        })
    }

    /// The resource is not part of the operation: its record is carried over as it is.
    pub(crate) fn untargeted(old: RecordedResource) -> Result<Self, DeployError> {
        check_recorded(&old.state)?;
        let new = Arc::clone(&old.state);
        Ok(Self {
            old,
            new,
            untargeted: true,
        })
    }

    pub(crate) fn old(&self) -> &RecordedResource {
        &self.old
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }

    pub(crate) fn is_untargeted(&self) -> bool {
        self.untargeted
    }

    /// Whether the record changes in a way that matters, so that it must be written now and not
    /// whenever something else is. Where the resource was declared does not matter.
    pub(crate) fn changes_record(&self) -> bool {
        let mut comparable = ResourceState::clone(&self.new);
        let old = &self.old.state;
        comparable.source_position.clone_from(&old.source_position);
        comparable.stack_trace.clone_from(&old.stack_trace);
        comparable.init_errors.clone_from(&old.init_errors);
        comparable != **old
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SkippedCreateStep {
    new: Arc<ResourceState>,
}

impl SkippedCreateStep {
    pub(crate) fn new(new: ResourceState) -> Result<Self, DeployError> {
        check_provided(&new)?;
        Ok(Self { new: Arc::new(new) })
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }
}
