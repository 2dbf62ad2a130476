//! Versions of an environment: made by a run that changed something, found by a rollback.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    RememberedRun, RunAction, RunId, UnitGraph, UnitState, UnitVersion, VersionRecord,
};

use crate::bus::timestamp;
use crate::context::RunContext;
use crate::execute::ExecutionReport;
use crate::ports::RunPorts;
use crate::progress::UnitWork;
use crate::record::RunRecord;
use crate::rollback::{RestoreTarget, RestoreTargets};
use crate::unit::RestorePoint;

/// The newest version of an environment.
pub(crate) async fn last(
    ports: &RunPorts,
    environment: EnvironmentName,
) -> Result<Option<VersionRecord>> {
    Ok(ports.versions.all(environment).await?.pop())
}

/// A version by its number.
pub(crate) async fn find(
    ports: &RunPorts,
    environment: EnvironmentName,
    number: u32,
) -> Result<VersionRecord> {
    let all = ports.versions.all(environment).await?;
    let found = all.iter().find(|version| version.version == number);
    found.cloned().ok_or_else(|| {
        let message = format!("{environment} has no version {number}");
        let known = match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!(
                "there are versions {} to {}; `nimbus rollback ID --environment {environment} --list` shows them",
                first.version, last.version
            ),
            _ => "nothing was deployed yet".to_owned(),
        };
        Error::new(ErrorCode::VERSION_UNKNOWN, message).with_help(known)
    })
}

/// What a run left behind, and what is needed to write it down.
pub(crate) struct RunOutcome<'a> {
    pub(crate) record: &'a RunRecord,
    pub(crate) graph: &'a UnitGraph,
    pub(crate) report: &'a ExecutionReport,
    pub(crate) work: &'a BTreeMap<ComponentName, UnitWork>,
    /// For a rollback.
    pub(crate) targets: Option<&'a RestoreTargets>,
}

/// A run that changed something makes a version of the environment. A run has one version: an
/// attempt that died after it had written it is gone on with under the same one.
pub(crate) async fn keep(context: &RunContext, outcome: &RunOutcome<'_>) -> Result<Option<u32>> {
    let ran = |state: &UnitState| *state == UnitState::Succeeded;
    if !outcome.report.units.values().any(ran) {
        return Ok(None);
    }
    let ports = context.ports.as_ref();
    let last = last(ports, context.environment).await?;
    let record = outcome.record;
    if let Some(last) = last.as_ref().filter(|last| last.run == record.run) {
        return Ok(Some(last.version));
    }
    // A version is the whole environment, also where the run was about a part of it. It names the state
    // that each unit has now: what a failed run changed and this one skipped is in no version before.
    let known = last.iter().flat_map(|last| last.units.keys());
    let names: BTreeSet<&ComponentName> = known.chain(outcome.report.units.keys()).collect();
    let mut units = BTreeMap::new();
    for name in names {
        let part = outcome.report.units.contains_key(name);
        let gone = match record.request.action {
            RunAction::Destroy => part,
            RunAction::Rollback => {
                let target = outcome.targets.and_then(|targets| targets.get(name));
                let returned =
                    |target: &RestoreTarget| matches!(target.point, RestorePoint::Version(_));
                part && !target.is_some_and(returned)
            }
            RunAction::Deploy | RunAction::Preview | RunAction::Refresh => false,
        };
        if !gone {
            let then = last
                .as_ref()
                .and_then(|last| Some((last.run, last.units.get(name)?)));
            let unit = unit_version(context, outcome, name, then).await?;
            units.insert(name.clone(), unit);
        }
    }
    let version = last.map_or(1, |last| last.version + 1);
    let made = VersionRecord {
        version,
        run: record.run,
        kind: record.request.action,
        at: timestamp(ports.clock.now()),
        user: record.request.user.clone(),
        units,
    };
    ports.versions.add(context.environment, &made).await?;
    Ok(Some(version))
}

async fn unit_version(
    context: &RunContext,
    outcome: &RunOutcome<'_>,
    name: &ComponentName,
    then: Option<(RunId, &UnitVersion)>,
) -> Result<UnitVersion> {
    let address = context.address(name);
    let part = outcome.report.units.contains_key(name);
    let last = context.memory(name).await?.last_run;
    // What is half done, or not what it was made from, is no proof later: whoever returns to it runs it.
    let proved = last.filter(|last| last.outcome.is_whole() && !last.drifted);
    if let (Some(then), Some(proved)) = (then, &proved)
        && is_as_then(context, outcome, name, then, proved).await?
    {
        return Ok(then.1.clone());
    }
    let state = context.ports.engine.history_length(&address).await?;
    if let Some((_, then)) = then.filter(|_| !part && state == 0) {
        // Its state is not where the manifest of now says, and what was recorded of it is all there is.
        return Ok(then.clone());
    }
    let fingerprint = outcome
        .work
        .get(name)
        .and_then(|work| work.fingerprint.clone())
        .or_else(|| proved.map(|last| last.fingerprint))
        .unwrap_or_default();
    let target = outcome.targets.and_then(|targets| targets.get(name));
    let needs = match (target, then) {
        (Some(target), _) => target.needs.clone(),
        (None, Some((_, then))) if !part => then.needs.clone(),
        _ => outcome.graph.needs(name).cloned().collect(),
    };
    Ok(UnitVersion {
        state,
        unit: address.unit.clone(),
        program: fingerprint.program_digest(),
        fingerprint: fingerprint.digest(),
        inputs: fingerprint,
        needs,
    })
}

/// Whether nothing has touched a unit since the version that `then` is of. Asked of what is remembered, for a
/// history is long.
async fn is_as_then(
    context: &RunContext,
    outcome: &RunOutcome<'_>,
    name: &ComponentName,
    (version, then): (RunId, &UnitVersion),
    last: &RememberedRun,
) -> Result<bool> {
    let untouched = match outcome.report.units.get(name) {
        Some(state) => *state == UnitState::Skipped,
        None => last.state == context.state_version(name).await?,
    };
    let before = last.run.is_some_and(|run| run <= version);
    // Older versions may name a state from before a run that failed, and then other inputs too.
    Ok(untouched && before && last.fingerprint == then.inputs)
}
