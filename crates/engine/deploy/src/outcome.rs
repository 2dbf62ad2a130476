//! What comes back from an operation.

use std::collections::BTreeMap;

use nimbus_engine_model::{Operation, Snapshot, StepOp};

use crate::error::DeployError;
use crate::plan::Plan;

#[derive(Debug)]
pub struct Outcome {
    pub result: Result<(), DeployError>,
    /// How many steps of each kind ended well.
    pub changes: BTreeMap<StepOp, usize>,
    /// The state as replaying the journal on the base gives it. After a preview: as it would be.
    pub snapshot: Snapshot,
    /// When one was asked for.
    pub plan: Option<Plan>,
    /// Acts of this operation whose outcome nobody knows.
    pub unknown: Vec<Operation>,
}
