//! How a run went, as values: for summaries, records and tests.

use std::collections::BTreeMap;
use std::time::Duration;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{
    Fingerprint, RollbackTrigger, RunDirection, RunResult, UnitGraph, UnitState,
};

use crate::checks::CheckResult;
use crate::leases::ShownLease;
use crate::record::RunRecord;
use crate::session::stale::StaleUnits;
use crate::unit::UnitReport;

/// What is known of a unit's work.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitWork {
    pub(crate) reason: Option<String>,
    pub(crate) report: UnitReport,
    pub(crate) seconds: u64,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// A unit at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSummary {
    pub state: UnitState,
    /// Why it ran.
    pub reason: Option<String>,
    pub changes: BTreeMap<String, u64>,
    /// What resolvers answered it, in a preview.
    pub leases: Vec<ShownLease>,
}

/// A run that ended, however it did.
#[derive(Clone, Debug)]
pub struct FinishedRun {
    pub record: RunRecord,
    pub result: RunResult,
    /// What made it undo its work, if something did.
    pub trigger: Option<RollbackTrigger>,
    /// The version that it made, if it did.
    pub version: Option<u32>,
    pub units: BTreeMap<ComponentName, UnitSummary>,
    pub checks: Vec<CheckResult>,
    /// What is worth a warning.
    pub warnings: Vec<String>,
    /// Units that could not be returned to where they were, or only with values that no longer hold.
    pub attention: Vec<String>,
    /// Whether a unit waits for a person to look for what it may have created.
    pub open_creates: bool,
    pub took: Duration,
    pub graph: UnitGraph,
    pub direction: RunDirection,
}

/// Units with what their work came to.
pub(crate) fn summaries(
    units: &BTreeMap<ComponentName, UnitState>,
    work: &BTreeMap<ComponentName, UnitWork>,
) -> BTreeMap<ComponentName, UnitSummary> {
    let summary = |(name, state): (&ComponentName, &UnitState)| {
        let work = work.get(name).cloned().unwrap_or_default();
        let summary = UnitSummary {
            state: state.clone(),
            reason: work.reason,
            changes: work.report.changes,
            leases: Vec::new(),
        };
        (name.clone(), summary)
    };
    units.iter().map(summary).collect()
}

/// What a person must look at.
pub(crate) fn attention(
    units: &BTreeMap<ComponentName, UnitState>,
    stale: &StaleUnits,
) -> Vec<String> {
    let stuck = units.iter().filter_map(|(name, state)| match state {
        UnitState::Stuck { message } => Some((name, message)),
        _ => None,
    });
    let told = |(name, message): (&ComponentName, &String)| {
        format!("{name}: {}", nimbus_telemetry::redact(message))
    };
    stuck.chain(stale).map(told).collect()
}
