//! Steps: what is done to one resource, as values.
//!
//! Each kind is a struct whose constructor refuses what could not be carried out; the executor may
//! rely on it. Steps decide nothing and do nothing.

mod create;
mod delete;
mod import;
mod read;
mod refresh;
mod same;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp, Urn, provider_package};
use nimbus_engine_ports::{DiffResponse, PropertyDiff, StepEvent};

pub(crate) use create::{CreateStep, ReplaceStep, Replacement};
pub(crate) use delete::{DeleteReason, DeleteStep, RemovePendingReplaceStep};
pub(crate) use import::{ImportOrigin, ImportStep};
pub(crate) use read::ReadStep;
pub(crate) use refresh::RefreshStep;
pub(crate) use same::{SameStep, SkippedCreateStep};
pub(crate) use update::UpdateStep;

use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Same(SameStep),
    /// A resource that would be created, had it been chosen.
    SkippedCreate(SkippedCreateStep),
    Create(CreateStep),
    Update(UpdateStep),
    /// Tells that the steps around it are a replacement; does nothing itself.
    Replace(ReplaceStep),
    Delete(DeleteStep),
    RemovePendingReplace(RemovePendingReplaceStep),
    Read(ReadStep),
    Import(ImportStep),
    Refresh(RefreshStep),
}

/// Why a resource changes, property by property.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reasons {
    pub replace_keys: Vec<String>,
    pub changed_keys: Vec<String>,
    pub detailed: Option<BTreeMap<String, PropertyDiff>>,
}

impl Reasons {
    pub(crate) fn of(diff: &DiffResponse) -> Self {
        Self {
            replace_keys: diff.replace_keys.clone(),
            changed_keys: diff.changed_keys.clone(),
            detailed: diff.detailed.clone(),
        }
    }

    pub(crate) fn replacing(keys: Vec<String>) -> Self {
        Self {
            replace_keys: keys,
            ..Self::default()
        }
    }
}

impl Step {
    pub(crate) fn op(&self) -> StepOp {
        match self {
            Self::Same(_) | Self::SkippedCreate(_) => StepOp::Same,
            Self::Create(step) => step.op(),
            Self::Update(_) => StepOp::Update,
            Self::Replace(_) => StepOp::Replace,
            Self::Delete(step) => step.op(),
            Self::RemovePendingReplace(_) => StepOp::RemovePendingReplace,
            Self::Read(step) => step.op(),
            Self::Import(step) => step.op(),
            Self::Refresh(_) => StepOp::Refresh,
        }
    }

    /// The resource before the step.
    pub(crate) fn old(&self) -> Option<&RecordedResource> {
        match self {
            Self::Same(step) => Some(step.old()),
            Self::SkippedCreate(_) | Self::Import(_) => None,
            Self::Create(step) => step.replacement().map(|replacement| &replacement.old),
            Self::Update(step) => Some(step.old()),
            Self::Replace(step) => Some(step.old()),
            Self::Delete(step) => Some(step.old()),
            Self::RemovePendingReplace(step) => Some(step.old()),
            Self::Read(step) => step.old(),
            Self::Refresh(step) => Some(step.old()),
        }
    }

    /// The resource as it shall be; `None` when it shall not be.
    pub(crate) fn new_state(&self) -> Option<&Arc<ResourceState>> {
        match self {
            Self::Same(step) => Some(step.new_state()),
            Self::SkippedCreate(step) => Some(step.new_state()),
            Self::Create(step) => Some(step.new_state()),
            Self::Update(step) => Some(step.new_state()),
            Self::Replace(step) => Some(step.new_state()),
            Self::Delete(_) | Self::RemovePendingReplace(_) => None,
            Self::Read(step) => Some(step.new_state()),
            Self::Import(step) => Some(step.new_state()),
            Self::Refresh(step) => Some(&step.old().state),
        }
    }

    /// The resource that the step is about: as it shall be, else as it was.
    pub(crate) fn subject(&self) -> &ResourceState {
        match self {
            Self::Same(step) => step.new_state(),
            Self::SkippedCreate(step) => step.new_state(),
            Self::Create(step) => step.new_state(),
            Self::Update(step) => step.new_state(),
            Self::Replace(step) => step.new_state(),
            Self::Delete(step) => &step.old().state,
            Self::RemovePendingReplace(step) => &step.old().state,
            Self::Read(step) => step.new_state(),
            Self::Import(step) => step.new_state(),
            Self::Refresh(step) => &step.old().state,
        }
    }

    pub(crate) fn urn(&self) -> &Urn {
        &self.subject().urn
    }

    /// Whether users see the step as one of theirs; the halves of a replacement are not.
    pub(crate) fn is_logical(&self) -> bool {
        match self {
            Self::Same(_) | Self::SkippedCreate(_) | Self::Update(_) | Self::Replace(_) => true,
            Self::Create(step) => step.replacement().is_none(),
            Self::Delete(step) => step.reason() == DeleteReason::Unwanted,
            Self::Read(step) => !step.replaces(),
            Self::Import(step) => step.original().is_none(),
            Self::RemovePendingReplace(_) | Self::Refresh(_) => false,
        }
    }

    /// The engine's own business: such steps are not counted among the changes.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Self::RemovePendingReplace(_)) || is_default_provider(self.urn())
    }

    fn reasons(&self) -> Reasons {
        match self {
            Self::Create(step) => step
                .replacement()
                .map(|r| r.reasons.clone())
                .unwrap_or_default(),
            Self::Update(step) => step.reasons().clone(),
            Self::Replace(step) => step.reasons().clone(),
            _ => Reasons::default(),
        }
    }

    /// What is told about the step; `new` is the resource as far as it is known.
    pub(crate) fn event(&self, op: StepOp, new: Option<Arc<ResourceState>>) -> StepEvent {
        let subject = self.subject();
        let Reasons {
            replace_keys,
            changed_keys,
            detailed,
        } = self.reasons();
        StepEvent {
            op,
            urn: subject.urn.clone(),
            type_: subject.type_.clone(),
            provider: subject.provider.clone(),
            old: match self {
                // What is left out is told as what stays the same: as something that never was.
                Self::SkippedCreate(step) => Some(Arc::clone(step.new_state())),
                step => step.old().map(|old| Arc::clone(&old.state)),
            },
            new,
            replace_keys,
            changed_keys,
            detailed_diff: detailed,
            logical: self.is_logical(),
        }
    }
}

/// Providers that the engine made by itself.
pub(crate) fn is_default_provider(urn: &Urn) -> bool {
    provider_package(urn.type_()).is_some() && urn.name().starts_with("default")
}

/// What must hold of a recorded resource before a step may touch it: without an id its provider
/// cannot find the object, and without a provider nobody can.
fn check_recorded(state: &ResourceState) -> Result<(), DeployError> {
    if state.custom && state.id.as_deref().is_none_or(str::is_empty) {
        return Err(bad(state, "has no id"));
    }
    check_provided(state)
}

fn check_provided(state: &ResourceState) -> Result<(), DeployError> {
    let needs_provider = state.custom && provider_package(&state.type_).is_none();
    if needs_provider && state.provider.is_empty() {
        return Err(bad(state, "has no provider"));
    }
    Ok(())
}

/// What must hold of a resource that is about to be made or changed. The generator never wants
/// anything else, so this is a defect of ours and not of the state.
fn check_wanted(state: &ResourceState) -> Result<(), DeployError> {
    if state.delete || state.external {
        return Err(broken(state, "is not the program's to change"));
    }
    check_provided(state)
}

fn bad(state: &ResourceState, what: &str) -> DeployError {
    DeployError::BadState {
        message: format!("{} {what}", state.urn),
    }
}

fn broken(state: &ResourceState, what: &str) -> DeployError {
    DeployError::Internal {
        message: format!("{} {what}", state.urn),
    }
}

#[cfg(test)]
mod tests;
