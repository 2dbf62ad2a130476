//! An object that exists is taken under management.

use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp};

use super::{broken, check_wanted};
use crate::error::DeployError;
use crate::known::RecordedResource;

#[derive(Clone, Debug)]
pub(crate) struct ImportStep {
    new: Arc<ResourceState>,
    origin: ImportOrigin,
}

/// Who asked for the import.
#[derive(Clone, Debug)]
pub(crate) enum ImportOrigin {
    /// The program; `original` is a managed resource that gives way.
    Program { original: Option<RecordedResource> },
    /// The import operation, which keeps only these inputs; all when there are none.
    Command {
        properties: Vec<String>,
        seed: [u8; 32],
    },
}

impl ImportStep {
    pub(crate) fn new(new: ResourceState, origin: ImportOrigin) -> Result<Self, DeployError> {
        check_wanted(&new)?;
        let by_command = matches!(origin, ImportOrigin::Command { .. });
        if new.id.is_some()
            || (new.custom && new.import_id.is_none())
            || !(new.custom || by_command)
        {
            return Err(broken(&new, "cannot be imported"));
        }
        Ok(Self {
            new: Arc::new(new),
            origin,
        })
    }

    pub(crate) fn op(&self) -> StepOp {
        match self.original() {
            Some(_) => StepOp::ImportReplacement,
            None => StepOp::Import,
        }
    }

    pub(crate) fn new_state(&self) -> &Arc<ResourceState> {
        &self.new
    }

    pub(crate) fn origin(&self) -> &ImportOrigin {
        &self.origin
    }

    pub(crate) fn original(&self) -> Option<&RecordedResource> {
        match &self.origin {
            ImportOrigin::Program { original } => original.as_ref(),
            ImportOrigin::Command { .. } => None,
        }
    }
}
