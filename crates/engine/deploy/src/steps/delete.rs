//! A resource goes away.

use nimbus_engine_model::StepOp;

use super::{bad, broken, check_recorded};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct DeleteStep {
    old: RecordedResource,
    reason: DeleteReason,
    /// Another resource is deleted too and takes this one along.
    goes_with_another: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeleteReason {
    /// Nobody asks for it any more.
    Unwanted,
    /// Its replacement exists.
    Replaced,
    /// Its replacement comes next; the record stays until then.
    BeforeReplacement,
}

impl DeleteStep {
    pub(crate) fn new(old: RecordedResource, reason: DeleteReason) -> Result<Self, DeployError> {
        check_recorded(&old.state)?;
        let fits = match reason {
            DeleteReason::Unwanted => true,
            DeleteReason::Replaced => old.state.delete,
            DeleteReason::BeforeReplacement => !old.state.delete,
        };
        if !fits {
            return Err(broken(&old.state, "is deleted for the wrong reason"));
        }
        Ok(Self {
            old,
            reason,
            goes_with_another: false,
        })
    }

    pub(crate) fn op(&self) -> StepOp {
        let replaced = self.reason != DeleteReason::Unwanted;
        match (self.old.state.external, replaced) {
            (false, false) => StepOp::Delete,
            (false, true) => StepOp::DeleteReplaced,
            (true, false) => StepOp::ReadDiscard,
            (true, true) => StepOp::DiscardReplaced,
        }
    }

    pub(crate) fn old(&self) -> &RecordedResource {
        &self.old
    }

    pub(crate) fn reason(&self) -> DeleteReason {
        self.reason
    }

    /// Called once all deletes around this one are decided.
    pub(crate) fn set_goes_with_another(&mut self) {
        self.goes_with_another = true;
    }

    /// Whether the provider must be asked; otherwise only the record goes. What was read is not
    /// ours, what is retained shall outlive its record, and what goes with another would be asked
    /// for when it is gone.
    pub(crate) fn needs_provider(&self) -> bool {
        let state = &self.old.state;
        state.custom && !state.external && !state.retain_on_delete && !self.goes_with_another
    }
}

/// The record of a resource that was deleted ahead of a replacement that nobody wants any more.
#[derive(Clone, Debug)]
pub(crate) struct RemovePendingReplaceStep {
    old: RecordedResource,
}

impl RemovePendingReplaceStep {
    pub(crate) fn new(old: RecordedResource) -> Result<Self, DeployError> {
        if !old.state.pending_replacement {
            return Err(bad(&old.state, "is not pending replacement"));
        }
        Ok(Self { old })
    }

    pub(crate) fn old(&self) -> &RecordedResource {
        &self.old
    }
}
