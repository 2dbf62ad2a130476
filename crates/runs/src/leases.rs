//! What resolvers leased to the units of a run: shown with the plan, and settled when the run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{ComponentName, EnvironmentName, Result};
use nimbus_orchestrator::{RunAction, RunId, RunResult, UnitState};
use nimbus_resolvers::{LeaseHolder, ResolverKind, Settlement};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::context::RunContext;
use crate::ports::RunPorts;
use crate::rollback::RestoreTargets;
use crate::unit::RestorePoint;
use crate::versions::{self, RunOutcome};

/// An answer of a resolver as a plan shows it. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownLease {
    pub resolver: ResolverKind,
    /// What was asked.
    pub question: String,
    pub outputs: Map<String, Value>,
    /// What holds it; nothing for an answer that takes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Uuid>,
    /// Such as that an image is deprecated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What becomes of a unit's leases when its run ends.
///
/// What is deployed keeps what it was deployed with. What is as it was before the run gives back what the
/// run took. Where nobody knows, or the run may go on, everything stays held: an address that may be in use is
/// nobody else's.
fn settlement(
    action: RunAction,
    result: RunResult,
    state: &UnitState,
    restored: impl FnOnce() -> Settlement,
) -> Settlement {
    match (action, state) {
        (RunAction::Preview | RunAction::Refresh, _) => Settlement::Open,
        (RunAction::Deploy, UnitState::Succeeded) => Settlement::Deployed,
        (RunAction::Destroy, UnitState::Succeeded) => Settlement::Destroyed,
        (RunAction::Rollback, UnitState::Succeeded) => restored(),
        (_, UnitState::RolledBack) => Settlement::Undone,
        // Never begun. A run that was interrupted goes on with what it showed.
        (_, UnitState::Waiting | UnitState::NotStarted { .. }) => match result {
            RunResult::Interrupted => Settlement::Open,
            RunResult::Succeeded
            | RunResult::Failed
            | RunResult::RolledBack
            | RunResult::NeedsAttention => Settlement::Undone,
        },
        (
            _,
            UnitState::Running
            | UnitState::Skipped
            | UnitState::Failed { .. }
            | UnitState::RollingBack
            | UnitState::Stuck { .. },
        ) => Settlement::Open,
    }
}

/// Where a rollback has brought a unit, in terms of runs.
fn restored(targets: Option<&RestoreTargets>, name: &ComponentName, version: u64) -> Settlement {
    let point = targets.and_then(|targets| targets.get(name));
    match point.map(|target| target.point) {
        Some(RestorePoint::Version(_)) => Settlement::Restored { to_run: version },
        Some(RestorePoint::BeforeRun(run)) => Settlement::Restored {
            to_run: u64::from(run.0).saturating_sub(1),
        },
        Some(RestorePoint::Nothing) | None => Settlement::Destroyed,
    }
}

/// Commits and releases what the units of a run have.
pub(crate) async fn settle(context: &RunContext, outcome: &RunOutcome<'_>) -> Result<()> {
    let record = outcome.record;
    let request = &record.request;
    let version = match request.choices.to_version {
        Some(number) if request.action == RunAction::Rollback && number > 0 => {
            let version = versions::find(&context.ports, context.environment, number).await?;
            u64::from(version.run.0)
        }
        _ => 0,
    };
    let mut units = BTreeMap::new();
    for (name, state) in &outcome.report.units {
        let back = || restored(outcome.targets, name, version);
        let settlement = settlement(request.action, outcome.report.result, state, back);
        if settlement != Settlement::Open {
            units.insert(name.clone(), settlement);
        }
    }
    if units.is_empty() {
        return Ok(());
    }
    let resolvers = &context.ports.resolvers;
    resolvers
        .settle(context.environment, record.run, &units)
        .await
}

/// What became of the units of a run that is over, from its record: for one that ended without settling.
///
/// A unit that a deploy finished has what it was deployed with, one that was undone or never begun has not; what a
/// rollback or a destroy did is settled by the run itself.
pub fn settlements_of_record(
    action: RunAction,
    result: RunResult,
    units: &[(ComponentName, UnitState)],
) -> BTreeMap<ComponentName, Settlement> {
    let settled = units.iter().map(|(name, state)| {
        let settlement = settlement(action, result, state, || Settlement::Open);
        (name.clone(), settlement)
    });
    settled.collect()
}

/// See [`RunContext::taken_leases`].
pub(crate) struct TakenLeases {
    pub(crate) ports: Arc<RunPorts>,
    pub(crate) environment: EnvironmentName,
    pub(crate) leases: Arc<Mutex<Vec<Uuid>>>,
}

impl TakenLeases {
    /// What a plan took; a run settles its own.
    pub(crate) async fn give_back(self) {
        let leases = std::mem::take(&mut *self.leases.lock());
        give_back(&self.ports, self.environment, LeaseHolder::Plan, &leases).await;
    }
}

/// What does not come back now does when the plan that holds it has expired.
pub(crate) async fn give_back(
    ports: &RunPorts,
    environment: EnvironmentName,
    holder: LeaseHolder,
    leases: &[Uuid],
) {
    if leases.is_empty() {
        return;
    }
    let given = ports.resolvers.give_back(environment, holder, leases);
    if let Err(error) = given.await {
        tracing::warn!(%error, "leases of resolvers could not be given back");
    }
}

/// The holder of leases in a context: its run, or a plan.
pub(crate) fn holder(run: Option<RunId>) -> LeaseHolder {
    match run {
        Some(run) => LeaseHolder::Run(run.0.into()),
        None => LeaseHolder::Plan,
    }
}
