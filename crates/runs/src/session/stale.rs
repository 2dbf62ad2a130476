//! Units that went back to a recorded state whose values no longer hold.
//!
//! A recorded state is applied as it is. Where a provider had to make something anew it has another id, and
//! what was recorded with the earlier one names what is gone. Only a run of the programs puts that right, so
//! these units and all that build on them must not be skipped by it.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, Result};
use nimbus_orchestrator::{RunAction, RunResult, UnitState};

use crate::context::RunContext;
use crate::execute::ExecutionReport;
use crate::planning;
use crate::rollback::RestoreTargets;

/// Units that went back with values that no longer hold, and which.
pub(crate) type StaleUnits = BTreeMap<ComponentName, String>;

/// Marks the units whose values do not hold, and all that build on them, so that the next deploy runs them.
/// `seen` is what this attempt saw; what an earlier one left is in the units' memories.
pub(super) async fn distrust(
    context: &RunContext,
    action: RunAction,
    report: &ExecutionReport,
    targets: Option<&RestoreTargets>,
    seen: StaleUnits,
) -> Result<StaleUnits> {
    let mut stale = seen;
    for (name, state) in &report.units {
        let went_back = match action {
            RunAction::Rollback => *state == UnitState::Succeeded,
            RunAction::Deploy => *state == UnitState::RolledBack,
            RunAction::Preview | RunAction::Destroy | RunAction::Refresh => false,
        };
        if went_back && !stale.contains_key(name) && context.is_stale(name).await? {
            let message = "what is recorded of it names things that were made anew since";
            stale.insert(name.clone(), message.to_owned());
        }
    }
    let names = stale.keys().cloned().collect();
    for name in building_on(context, targets, names)? {
        context.mark_drifted(&name).await?;
    }
    Ok(stale)
}

/// A run that went well but for these has not brought the environment where it was to be.
pub(super) fn result(result: RunResult, stale: &StaleUnits) -> RunResult {
    match result {
        RunResult::Succeeded | RunResult::RolledBack if !stale.is_empty() => {
            RunResult::NeedsAttention
        }
        result => result,
    }
}

/// These units and all that build on them, directly or not: by the manifest, and by what they needed in the
/// version that they return to.
pub(crate) fn building_on(
    context: &RunContext,
    targets: Option<&RestoreTargets>,
    names: BTreeSet<ComponentName>,
) -> Result<BTreeSet<ComponentName>> {
    if names.is_empty() {
        return Ok(names);
    }
    let graph = planning::graph(context, None)?;
    let now = graph
        .names()
        .flat_map(|name| graph.needs(name).map(move |need| (name, need)));
    let then = targets.into_iter().flatten();
    let then = then.flat_map(|(name, target)| target.needs.iter().map(move |need| (name, need)));
    let edges: Vec<_> = now.chain(then).collect();
    let mut found = names;
    loop {
        let more: BTreeSet<_> = edges
            .iter()
            .filter(|(name, need)| found.contains(*need) && !found.contains(*name))
            .map(|(name, _)| (*name).clone())
            .collect();
        if more.is_empty() {
            return Ok(found);
        }
        found.extend(more);
    }
}
