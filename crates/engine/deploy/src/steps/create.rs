//! A resource is made, for the first time or in place of another.

use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp};

use super::{Reasons, broken, check_recorded, check_wanted};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct CreateStep {
    new: Arc<ResourceState>,
    replacement: Option<Replacement>,
}

/// What a new resource takes the place of.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub old: RecordedResource,
    /// The old one is still there and is deleted at the end; otherwise it is gone already.
    pub delete_later: bool,
    pub reasons: Reasons,
}

impl CreateStep {
    pub(crate) fn new(new: ResourceState) -> Result<Self, DeployError> {
        check_new(&new)?;
        Ok(Self {
            new: Arc::new(new),
            replacement: None,
        })
    }

    pub(crate) fn replacing(
        new: ResourceState,
        replacement: Replacement,
    ) -> Result<Self, DeployError> {
        check_new(&new)?;
        check_recorded(&replacement.old.state)?;
        if replacement.old.state.delete {
            return Err(broken(&new, "was replaced already"));
        }
        Ok(Self {
            new: Arc::new(new),
            replacement: Some(replacement),
        })
    }

    pub(crate) fn op(&self) -> StepOp {
        match self.replacement {
            Some(_) => StepOp::CreateReplacement,
            None => StepOp::Create,
        }
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }

    pub(crate) fn replacement(&self) -> Option<&Replacement> {
        self.replacement.as_ref()
    }
}

fn check_new(new: &ResourceState) -> Result<(), DeployError> {
    if new.id.is_some() {
        return Err(broken(new, "has an id before it exists"));
    }
    check_wanted(new)
}

#[derive(Clone, Debug)]
pub(crate) struct ReplaceStep {
    old: RecordedResource,
    new: Arc<ResourceState>,
    reasons: Reasons,
}

impl ReplaceStep {
    pub(crate) fn new(
        old: RecordedResource,
        new: ResourceState,
        reasons: Reasons,
    ) -> Result<Self, DeployError> {
        check_recorded(&old.state)?;
        if old.state.delete || new.delete {
            return Err(broken(&new, "was replaced already"));
        }
        Ok(Self {
            old,
            new: Arc::new(new),
            reasons,
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
}
