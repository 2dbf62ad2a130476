//! An object that the stack does not manage is looked up.

use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp};

use super::{broken, check_provided};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct ReadStep {
    old: Option<RecordedResource>,
    new: Arc<ResourceState>,
    replaces: bool,
}

impl ReadStep {
    /// `old`, if any, was read before or is the very object that is read now.
    pub(crate) fn new(
        old: Option<RecordedResource>,
        new: ResourceState,
    ) -> Result<Self, DeployError> {
        check_read(&new)?;
        let fits = old
            .as_ref()
            .is_none_or(|old| old.state.external || old.state.id == new.id);
        if !fits {
            return Err(broken(&new, "would forget a managed object"));
        }
        Ok(Self {
            old,
            new: Arc::new(new),
            replaces: false,
        })
    }

    /// A managed resource becomes a read one of another id; the managed object is deleted later.
    pub(crate) fn replacing(
        old: RecordedResource,
        new: ResourceState,
    ) -> Result<Self, DeployError> {
        check_read(&new)?;
        if old.state.external {
            return Err(broken(&new, "was not managed before"));
        }
        Ok(Self {
            old: Some(old),
            new: Arc::new(new),
            replaces: true,
        })
    }

    pub(crate) fn op(&self) -> StepOp {
        if self.replaces {
            StepOp::ReadReplacement
        } else {
            StepOp::Read
        }
    }

    pub(crate) fn old(&self) -> Option<&RecordedResource> {
        self.old.as_ref()
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }

    pub(crate) fn replaces(&self) -> bool {
        self.replaces
    }
}

fn check_read(new: &ResourceState) -> Result<(), DeployError> {
    if !new.custom || !new.external || new.id.as_deref().is_none_or(str::is_empty) {
        return Err(broken(new, "cannot be read"));
    }
    check_provided(new)
}
