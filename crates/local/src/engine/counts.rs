//! How much there is of a unit, and what was done to it, in numbers that people are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StepOp};
use nimbus_engine_operations::OperationRequest;

use super::LocalEngine;

impl LocalEngine {
    /// How many resources a failed operation left, if what is recorded is all there is to know. Its own steps do not
    /// tell: those that it did not come to are not among them.
    pub(super) async fn recorded_resources(&self, request: &OperationRequest) -> Option<u64> {
        if request.options.dry_run {
            return None;
        }
        let access = self.access(&request.location).await.ok()?;
        if access.stack().interrupted().await.ok()?.is_some() {
            return None;
        }
        let recorded = self.recorded(&request.location).await.ok()?;
        let resources = recorded.unwrap_or_default().resources;
        let counts = |resource: &&Arc<ResourceState>| !resource.delete && !is_default(resource);
        Some(resources.iter().filter(counts).count() as u64)
    }
}

/// Steps by kind.
pub(super) fn counted(changes: BTreeMap<StepOp, usize>) -> BTreeMap<String, u64> {
    let changes = changes.into_iter();
    changes
        .map(|(op, count)| (op.to_string(), count as u64))
        .collect()
}

/// A provider that nobody asked for is no step of a program, and is not counted as a resource either.
fn is_default(resource: &ResourceState) -> bool {
    resource.urn.type_().starts_with("pulumi:providers:")
        && resource.urn.name().starts_with("default")
}

/// How many resources there are after these steps.
pub(super) fn left(changes: &BTreeMap<StepOp, usize>) -> u64 {
    let gone = [
        StepOp::Delete,
        StepOp::DeleteReplaced,
        StepOp::ReadDiscard,
        StepOp::DiscardReplaced,
        StepOp::RemovePendingReplace,
    ];
    let stay = changes.iter().filter(|(op, _)| !gone.contains(op));
    stay.map(|(_, count)| *count as u64).sum()
}
