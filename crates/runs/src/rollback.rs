//! To which state each unit of an environment returns when it goes back to an earlier version.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    Fingerprint, GraphUnit, RunId, UnitGraph, UnitState, VersionRecord, progress_of,
};

use crate::context::RunContext;
use crate::planning::{self, invalid_graph};
use crate::ports::RunPorts;
use crate::unit::RestorePoint;
use crate::versions;

/// Where a unit returns to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreTarget {
    pub point: RestorePoint,
    /// What it was made from then; empty where that is not recorded.
    pub made_from: Fingerprint,
    /// What it needed then; of one that goes away, what it needs now.
    pub needs: BTreeSet<ComponentName>,
}

impl RestoreTarget {
    /// To a point of which nothing more is recorded.
    pub fn of(point: RestorePoint) -> Self {
        Self {
            point,
            made_from: Fingerprint::default(),
            needs: BTreeSet::new(),
        }
    }

    /// Whether it comes back to what others may need, and is not only taken away.
    fn returns(&self) -> bool {
        match self.point {
            RestorePoint::Version(_) => true,
            RestorePoint::BeforeRun(_) | RestorePoint::Nothing => false,
        }
    }
}

/// Where each unit that is touched returns to.
pub type RestoreTargets = BTreeMap<ComponentName, RestoreTarget>;

/// Units that runs after the newest version touched and left as they were then, each with the first
/// of these runs.
pub type UnsettledUnits = BTreeMap<ComponentName, RunId>;

/// Where a rollback leads.
pub(crate) struct RollbackPlan {
    /// 0 is what there was before the first version.
    pub(crate) version: u32,
    pub(crate) targets: RestoreTargets,
    /// Who waits for whom.
    pub(crate) graph: UnitGraph,
}

/// Where a rollback leads. `resumed` is the run itself when it is gone on with: a version that it
/// has already written is where it wants to be, not where it came from.
pub(crate) async fn plan_rollback(
    context: &RunContext,
    to_version: Option<u32>,
    resumed: Option<RunId>,
) -> Result<RollbackPlan> {
    let ports = context.ports.as_ref();
    let environment = context.environment;
    let all = ports.versions.all(environment).await?;
    let current = all
        .iter()
        .rev()
        .find(|version| Some(version.run) != resumed);
    let unsettled = unsettled(ports, environment, current, resumed).await?;
    let version = to_version.or_else(|| default_version(current, &unsettled));
    let version = version.ok_or_else(|| {
        let message = format!("{environment} has no versions yet");
        Error::new(ErrorCode::VERSION_UNKNOWN, message)
    })?;
    let target = match current {
        None if version == 0 && !unsettled.is_empty() => None,
        _ => Some(versions::find(ports, environment, version).await?),
    };
    let now = planning::graph(context, None)?;
    let (targets, graph) = restore_targets(target.as_ref(), current, &unsettled, &now)?;
    Ok(RollbackPlan {
        version,
        targets,
        graph,
    })
}

/// A run that ended well has made a version of what it did; any other is undone first.
fn default_version(current: Option<&VersionRecord>, unsettled: &UnsettledUnits) -> Option<u32> {
    match (current, unsettled.is_empty()) {
        (None, true) => None,
        (None, false) => Some(0),
        (Some(current), true) => Some(current.version.saturating_sub(1)),
        (Some(current), false) => Some(current.version),
    }
}

async fn unsettled(
    ports: &RunPorts,
    environment: EnvironmentName,
    current: Option<&VersionRecord>,
    resumed: Option<RunId>,
) -> Result<UnsettledUnits> {
    let runs = ports.runs.of_environment(environment).await?;
    let since = |run: RunId| current.is_none_or(|version| run > version.run);
    let mut unsettled = UnsettledUnits::new();
    for record in runs.iter().rev() {
        if Some(record.run) == resumed || !since(record.run) {
            continue;
        }
        let progress = progress_of(&ports.runs.events(record.run).await?);
        for (name, state) in progress.earlier.units {
            let touched = match state {
                UnitState::Running
                | UnitState::Succeeded
                | UnitState::Failed { .. }
                | UnitState::RollingBack
                | UnitState::Stuck { .. } => true,
                UnitState::Waiting
                | UnitState::Skipped
                | UnitState::NotStarted { .. }
                | UnitState::RolledBack => false,
            };
            if touched {
                unsettled.entry(name).or_insert(record.run);
            }
        }
    }
    Ok(unsettled)
}

/// The state that each unit returns to, and who waits for whom; without a target, to what there was
/// before the first run. Units that came later go away, and what is as it was stays alone. `now` is
/// who needs whom in the manifest.
///
/// What returns may have to be made anew, so it waits for what it needed then. What goes away goes before
/// what it needs.
///
/// # Errors
///
/// When what is recorded of a version needs itself.
pub fn restore_targets(
    target: Option<&VersionRecord>,
    current: Option<&VersionRecord>,
    unsettled: &UnsettledUnits,
    now: &UnitGraph,
) -> Result<(RestoreTargets, UnitGraph)> {
    let mut targets = RestoreTargets::new();
    // No version knows these. What was there before the first run that touched them is not nothing
    // where a state was brought in from elsewhere.
    for (name, run) in unsettled {
        let before = RestoreTarget {
            needs: now.needs(name).cloned().collect(),
            ..RestoreTarget::of(RestorePoint::BeforeRun(*run))
        };
        targets.insert(name.clone(), before);
    }
    // Who goes away needs what it needs now; who returns needs what it needed then.
    for (name, unit) in current.into_iter().flat_map(|version| &version.units) {
        let gone = RestoreTarget {
            needs: unit.needs.clone(),
            ..RestoreTarget::of(RestorePoint::Nothing)
        };
        targets.insert(name.clone(), gone);
    }
    for (name, unit) in target.into_iter().flat_map(|version| &version.units) {
        let same = current.and_then(|version| version.units.get(name));
        let same = same.is_some_and(|same| same.state == unit.state);
        if same && !unsettled.contains_key(name) {
            targets.remove(name);
            continue;
        }
        let back = RestoreTarget {
            point: RestorePoint::Version(unit.state),
            made_from: unit.inputs.clone(),
            needs: unit.needs.clone(),
        };
        targets.insert(name.clone(), back);
    }
    let graph = waiting(&targets)?;
    Ok((targets, graph))
}

/// Who waits for whom.
fn waiting(targets: &RestoreTargets) -> Result<UnitGraph> {
    let mut waits: BTreeMap<&ComponentName, BTreeSet<ComponentName>> = BTreeMap::new();
    for (name, target) in targets {
        waits.entry(name).or_default();
        let known = |need: &&ComponentName| targets.contains_key(*need);
        for need in target.needs.iter().filter(known) {
            let (later, sooner) = if target.returns() {
                (name, need)
            } else {
                (need, name)
            };
            waits.entry(later).or_default().insert(sooner.clone());
        }
    }
    let units = waits.into_iter().map(|(name, needs)| GraphUnit {
        name: name.clone(),
        priority: 0,
        needs,
    });
    UnitGraph::new(units).map_err(|error| invalid_graph(&error))
}

#[cfg(test)]
mod tests {
    use nimbus_core::UnitName;
    use nimbus_orchestrator::{RunAction, UnitVersion};

    use super::*;

    fn version(number: u32, units: &[(&str, usize, &[&str])]) -> VersionRecord {
        let unit = |(name, state, needs): &(&str, usize, &[&str])| {
            let unit = UnitVersion {
                unit: UnitName::new(
                    &"D1".parse().unwrap(),
                    &name.parse().unwrap(),
                    EnvironmentName::DEV,
                ),
                state: *state,
                program: String::new(),
                fingerprint: String::new(),
                inputs: Fingerprint::default(),
                needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
            };
            (name.parse().unwrap(), unit)
        };
        VersionRecord {
            version: number,
            run: RunId(number),
            kind: RunAction::Deploy,
            at: String::new(),
            user: String::new(),
            units: units.iter().map(unit).collect(),
        }
    }

    fn graph_of(version: &VersionRecord) -> UnitGraph {
        let units = version.units.iter().map(|(name, unit)| GraphUnit {
            name: name.clone(),
            priority: 0,
            needs: unit.needs.clone(),
        });
        UnitGraph::new(units).unwrap()
    }

    #[test]
    fn what_a_failed_run_touched_returns_although_its_number_is_the_same() {
        let current = version(2, &[("net", 1, &[]), ("app", 2, &["net"])]);
        let then = version(
            3,
            &[("net", 1, &[]), ("app", 2, &["net"]), ("new", 1, &["app"])],
        );
        let unsettled = UnsettledUnits::from([
            ("app".parse().unwrap(), RunId(4)),
            ("new".parse().unwrap(), RunId(5)),
        ]);
        assert_eq!(default_version(Some(&current), &unsettled), Some(2));
        assert_eq!(default_version(None, &unsettled), Some(0));
        let now = graph_of(&then);
        let (targets, graph) =
            restore_targets(Some(&current), Some(&current), &unsettled, &now).unwrap();
        let points: Vec<_> = targets
            .iter()
            .map(|(name, to)| (&**name, to.point))
            .collect();
        let before = RestorePoint::BeforeRun(RunId(5));
        assert_eq!(points, [("app", RestorePoint::Version(2)), ("new", before)]);
        assert_eq!(graph.needs("app").collect::<Vec<_>>(), ["new"]);

        let (targets, _) = restore_targets(None, None, &unsettled, &now).unwrap();
        let point = |name: &str| targets.get(name).map(|to| to.point);
        assert_eq!(point("app"), Some(RestorePoint::BeforeRun(RunId(4))));
        assert_eq!(point("net"), None);
    }

    #[test]
    fn without_a_failed_run_the_version_before_is_meant() {
        let nobody = UnsettledUnits::new();
        let current = version(3, &[]);
        assert_eq!(default_version(Some(&current), &nobody), Some(2));
        assert_eq!(default_version(None, &nobody), None);
    }

    #[test]
    fn what_came_later_goes_what_changed_returns_and_the_rest_stays() {
        let target = version(1, &[("net", 1, &[]), ("app", 1, &["net"])]);
        let current = version(
            3,
            &[("net", 1, &[]), ("app", 2, &["net"]), ("new", 1, &["app"])],
        );
        let nobody = UnsettledUnits::new();
        let now = graph_of(&current);
        let (targets, graph) =
            restore_targets(Some(&target), Some(&current), &nobody, &now).unwrap();
        assert_eq!(
            targets,
            BTreeMap::from([
                (
                    "app".parse().unwrap(),
                    RestoreTarget {
                        needs: BTreeSet::from(["net".parse().unwrap()]),
                        ..RestoreTarget::of(RestorePoint::Version(1))
                    }
                ),
                (
                    "new".parse().unwrap(),
                    RestoreTarget {
                        needs: BTreeSet::from(["app".parse().unwrap()]),
                        ..RestoreTarget::of(RestorePoint::Nothing)
                    }
                )
            ])
        );
        // What goes away goes first; net is not touched.
        assert_eq!(graph.needs("app").collect::<Vec<_>>(), ["new"]);
        assert_eq!(graph.needs("new").count(), 0);

        // What comes back waits for what it needed.
        let both = version(4, &[("net", 2, &[]), ("app", 2, &["net"])]);
        let (_, graph) = restore_targets(Some(&target), Some(&both), &nobody, &now).unwrap();
        assert_eq!(graph.needs("app").collect::<Vec<_>>(), ["net"]);
    }
}
