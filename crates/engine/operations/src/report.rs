//! What comes back from an operation.

use std::collections::BTreeMap;
use std::time::Duration;

use nimbus_core::Error;
use nimbus_engine_backend::{RecoveryReport, StateVersion};
use nimbus_engine_deploy::DeploymentOutcome;
use nimbus_engine_model::{PendingOperation, PropertyMap, StepOp};

use crate::stacks::stack_outputs;

/// How an operation went. It was started; what stopped it before that is an error instead.
#[derive(Debug)]
pub struct OperationReport {
    pub result: Result<(), Error>,
    /// How many steps of each kind ended well.
    pub changes: BTreeMap<StepOp, usize>,
    /// Outputs of the stack, as they are now; after a preview, as they would be.
    pub outputs: PropertyMap,
    /// Acts of this operation whose outcome nobody knows.
    pub unknown: Vec<PendingOperation>,
    /// What was found of earlier operations that did not finish.
    pub recovered: Vec<RecoveryReport>,
    /// The state that was left; `None` after a preview and when it could not be saved.
    pub version: Option<StateVersion>,
    pub duration: Duration,
}

impl From<DeploymentOutcome> for OperationReport {
    fn from(outcome: DeploymentOutcome) -> Self {
        Self {
            outputs: stack_outputs(&outcome.snapshot),
            result: outcome.result.map_err(Error::from),
            changes: outcome.changes,
            unknown: outcome.unknown,
            recovered: Vec::new(),
            version: None,
            duration: Duration::ZERO,
        }
    }
}

impl OperationReport {
    /// Whether anything but unchanged resources was counted.
    pub fn has_changes(&self) -> bool {
        self.changes
            .iter()
            .any(|(op, count)| *op != StepOp::Same && *count > 0)
    }
}
