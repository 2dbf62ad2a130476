//! To which state each unit of an environment returns when it goes back to an earlier version.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, Result};
use nimbus_orchestrator::{Fingerprint, GraphUnit, UnitGraph, VersionRecord};

use crate::planning::invalid_graph;
use crate::unit::RestorePoint;

/// Where a unit returns to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreTarget {
    pub point: RestorePoint,
    /// What it was made from then; empty where that is not recorded.
    pub made_from: Fingerprint,
}

impl RestoreTarget {
    pub(crate) fn nothing() -> Self {
        Self {
            point: RestorePoint::Nothing,
            made_from: Fingerprint::default(),
        }
    }
}

/// Where each unit that is touched returns to.
pub type RestoreTargets = BTreeMap<ComponentName, RestoreTarget>;

/// The state that each unit returns to, and who needs whom. Units that came later go away, and what
/// is as it was stays alone.
///
/// # Errors
///
/// When what is recorded of a version needs itself.
pub fn restore_targets(
    target: &VersionRecord,
    current: Option<&VersionRecord>,
) -> Result<(RestoreTargets, UnitGraph)> {
    let mut targets = RestoreTargets::new();
    let mut needs: BTreeMap<ComponentName, BTreeSet<ComponentName>> = BTreeMap::new();
    // Who goes away needs what it needs now; who returns needs what it needed then.
    let now = current.into_iter().flat_map(|version| &version.units);
    for (name, unit) in now {
        targets.insert(name.clone(), RestoreTarget::nothing());
        needs.insert(name.clone(), unit.needs.clone());
    }
    for (name, unit) in &target.units {
        let same = current.and_then(|version| version.units.get(name));
        if same.is_some_and(|same| same.state == unit.state) {
            targets.remove(name);
            needs.remove(name);
            continue;
        }
        let back = RestoreTarget {
            point: RestorePoint::Version(unit.state),
            made_from: unit.inputs.clone(),
        };
        targets.insert(name.clone(), back);
        needs.insert(name.clone(), unit.needs.clone());
    }
    let units = needs.iter().map(|(name, needs)| GraphUnit {
        name: name.clone(),
        priority: 0,
        needs: needs
            .iter()
            .filter(|need| targets.contains_key(*need))
            .cloned()
            .collect(),
    });
    let graph = UnitGraph::new(units).map_err(|error| invalid_graph(&error))?;
    Ok((targets, graph))
}

#[cfg(test)]
mod tests {
    use nimbus_core::{EnvironmentName, UnitName};
    use nimbus_orchestrator::{RunAction, RunId, UnitVersion};

    use super::*;

    fn version(number: u32, units: &[(&str, usize, &[&str])]) -> VersionRecord {
        let unit = |(name, state, needs): &(&str, usize, &[&str])| {
            let unit = UnitVersion {
                unit: UnitName::new(&"D1".parse().unwrap(), name, EnvironmentName::DEV),
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

    #[test]
    fn what_came_later_goes_what_changed_returns_and_the_rest_stays() {
        let target = version(1, &[("net", 1, &[]), ("app", 1, &["net"])]);
        let current = version(
            3,
            &[("net", 1, &[]), ("app", 2, &["net"]), ("new", 1, &["app"])],
        );
        let (targets, graph) = restore_targets(&target, Some(&current)).unwrap();
        assert_eq!(
            targets,
            BTreeMap::from([
                (
                    "app".parse().unwrap(),
                    RestoreTarget {
                        point: RestorePoint::Version(1),
                        made_from: Fingerprint::default(),
                    }
                ),
                ("new".parse().unwrap(), RestoreTarget::nothing())
            ])
        );
        assert_eq!(graph.needs("new").collect::<Vec<_>>(), ["app"]);
        assert_eq!(graph.needs("app").count(), 0, "net is not touched");
    }
}
