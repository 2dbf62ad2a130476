//! Versions of an environment: made by a run that changed something, found by a rollback.

use std::collections::BTreeMap;

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{RunAction, UnitGraph, UnitState, UnitVersion, VersionRecord};

use crate::bus::timestamp;
use crate::context::RunContext;
use crate::execute::ExecutionReport;
use crate::ports::RunPorts;
use crate::progress::UnitWork;
use crate::record::RunRecord;
use crate::rollback::RestoreTargets;
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
                "there are versions {} to {}; `nimbus rollback --list` shows them",
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
    // A version is the whole environment, also where the run was about a part of it.
    let mut units: BTreeMap<ComponentName, UnitVersion> = last
        .as_ref()
        .map(|last| last.units.clone())
        .unwrap_or_default();
    for (name, state) in &outcome.report.units {
        let gone = match record.request.action {
            RunAction::Destroy => true,
            RunAction::Rollback => outcome
                .targets
                .and_then(|targets| targets.get(name))
                .is_none_or(|target| !matches!(target.point, RestorePoint::Version(_))),
            RunAction::Deploy | RunAction::Preview | RunAction::Refresh => false,
        };
        if gone {
            units.remove(name);
        } else if ran(state) || !units.contains_key(name) {
            units.insert(name.clone(), unit_version(context, outcome, name).await?);
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
) -> Result<UnitVersion> {
    let address = context.address(name);
    let fingerprint = outcome
        .work
        .get(name)
        .and_then(|work| work.fingerprint.clone());
    let fingerprint = match fingerprint {
        Some(fingerprint) => Some(fingerprint),
        None => context
            .memory(name)
            .await?
            .last_run
            .map(|run| run.fingerprint),
    };
    let fingerprint = fingerprint.unwrap_or_default();
    Ok(UnitVersion {
        state: context.ports.engine.history_length(&address).await?,
        unit: address.unit.clone(),
        program: fingerprint.program_digest(),
        fingerprint: fingerprint.digest(),
        inputs: fingerprint,
        needs: outcome.graph.needs(name).cloned().collect(),
    })
}
