//! What a run would do: units in layers, which are skipped and why, and how long it should take.
//!
//! Layers are a view; execution does not wait for them. The estimate that is shown is the sum of the
//! longest unit of each layer. The limit of a run also knows how many units run at once.

mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::fingerprint::RunReason;
use crate::graph::UnitGraph;
use crate::record::{PlannedEvent, RunEvent};
use crate::template::Estimate;

pub use text::PlanText;

/// Decisions as events have them.
const SKIP: &str = "skip";
const DEPENDS: &str = "depends";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    pub subject: PlanSubject,
    pub environment: EnvironmentName,
    pub layers: Vec<Vec<PlannedUnit>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedUnit {
    pub name: ComponentName,
    pub priority: i64,
    pub decision: UnitDecision,
    pub estimate: Estimate,
    /// Units that have to be done before it.
    pub needs: Vec<ComponentName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitDecision {
    Skip,
    /// Nothing of its own changed, but something it needs runs: decided when that is done.
    Depends {
        on: ComponentName,
    },
    Run(RunReason),
}

/// The deployment that a plan is of, as people know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PlanSubject {
    /// By the name of its directory.
    Directory(String),
    /// A rehearsal is not what lies in the directory.
    Rehearsal(DeploymentId),
}

impl fmt::Display for PlanSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(name) => f.write_str(name),
            Self::Rehearsal(id) => id.fmt(f),
        }
    }
}

impl RunPlan {
    /// `reasons` says why a unit runs; one that is absent has no reason of its own.
    pub fn new(
        subject: PlanSubject,
        environment: EnvironmentName,
        graph: &UnitGraph,
        reasons: &BTreeMap<ComponentName, RunReason>,
        estimates: &BTreeMap<ComponentName, Estimate>,
    ) -> Self {
        let mut decisions: BTreeMap<&ComponentName, UnitDecision> = BTreeMap::new();
        let layers = graph.layers();
        for name in layers.iter().flatten().copied() {
            let decision = match reasons.get(name) {
                Some(reason) => UnitDecision::Run(reason.clone()),
                None => graph
                    .needs(name)
                    .find(|need| !matches!(decisions.get(*need), None | Some(UnitDecision::Skip)))
                    .map_or(UnitDecision::Skip, |need| UnitDecision::Depends {
                        on: need.to_owned(),
                    }),
            };
            decisions.insert(name, decision);
        }
        let unit = |name: &ComponentName| PlannedUnit {
            name: name.to_owned(),
            priority: graph.priority(name).unwrap_or_default(),
            decision: decisions.get(name).cloned().unwrap_or(UnitDecision::Skip),
            estimate: estimates.get(name).copied().unwrap_or_default(),
            needs: graph.needs(name).cloned().collect(),
        };
        Self {
            subject,
            environment,
            layers: layers
                .iter()
                .map(|layer| layer.iter().map(|n| unit(n)).collect())
                .collect(),
        }
    }

    pub fn units(&self) -> impl Iterator<Item = &PlannedUnit> {
        self.layers.iter().flatten()
    }

    /// Sum of the layers' times, as far as they are known.
    pub fn minutes(&self) -> u64 {
        self.layers.iter().map(|layer| layer_minutes(layer)).sum()
    }

    /// When a run takes too long: twice what it may well take with so many units at once. `None`
    /// when there is nothing to do, or something of which nobody said how long it may take: undoing
    /// what only is slower than a guess would do harm.
    pub fn time_limit(&self, parallel: usize) -> Option<Duration> {
        let mut active = self.units().filter(|unit| !unit.is_skipped());
        if active.any(|unit| unit.estimate.longest.is_none()) {
            return None;
        }
        let parallel = u64::try_from(parallel.max(1)).unwrap_or(u64::MAX);
        let layer = |layer: &Vec<PlannedUnit>| {
            let active = layer.iter().filter(|unit| !unit.is_skipped());
            let (longest, sum) = active.fold((0, 0), |(longest, sum), unit| {
                let minutes = unit.estimate.longest.unwrap_or_default();
                (minutes.max(longest), minutes.saturating_add(sum))
            });
            longest.max(sum.div_ceil(parallel))
        };
        let minutes: u64 = self.layers.iter().map(layer).sum();
        (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(120)))
    }

    /// When each unit that runs takes too long: twice what it may well take.
    pub fn unit_limits(&self) -> BTreeMap<ComponentName, Duration> {
        let active = self.units().filter(|unit| !unit.is_skipped());
        let limited = active.filter_map(|unit| {
            let minutes = unit.estimate.longest.filter(|minutes| *minutes > 0)?;
            let limit = Duration::from_secs(minutes.saturating_mul(120));
            Some((unit.name.clone(), limit))
        });
        limited.collect()
    }

    /// The plan as an event, for records and programs.
    pub fn event(&self, at: String) -> RunEvent {
        RunEvent::Plan {
            at,
            layers: self.told(),
            minutes: self.minutes(),
        }
    }

    fn told(&self) -> Vec<Vec<PlannedEvent>> {
        let unit = |unit: &PlannedUnit| {
            let (decision, reason) = unit.decision.words();
            PlannedEvent {
                unit: unit.name.clone(),
                priority: unit.priority,
                decision: decision.to_owned(),
                reason,
                minutes: unit.estimate.minutes,
                measured: unit.estimate.measured,
                rehearsed_seconds: unit.estimate.rehearsed,
                resources: unit.estimate.resources,
                needs: unit.needs.clone(),
            }
        };
        let layers = self.layers.iter();
        layers
            .map(|layer| layer.iter().map(unit).collect())
            .collect()
    }

    /// Tells whether two plans do the same: what is deployed where, in which order, which units run
    /// and why. Estimates are not part of it: they are learnt anew from every run, and the same plan
    /// a day later would look like another one.
    pub fn digest(&self) -> String {
        let unit = |unit: &PlannedUnit| {
            let (decision, reason) = unit.decision.words();
            (unit.name.clone(), unit.priority, decision, reason)
        };
        let layers: Vec<Vec<_>> = self
            .layers
            .iter()
            .map(|layer| layer.iter().map(unit).collect())
            .collect();
        // Lists only, because the order of a mapping's keys depends on how the build was put together.
        let text = serde_json::json!([self.subject, self.environment, layers]).to_string();
        hex::encode(Sha256::digest(text))
    }
}

impl UnitDecision {
    /// The decision and its reason as events have them.
    fn words(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Skip => (SKIP, None),
            Self::Depends { on } => (DEPENDS, Some(format!("outputs of {on}"))),
            Self::Run(reason) => ("run", Some(reason.to_string())),
        }
    }
}

impl PlannedUnit {
    pub fn is_skipped(&self) -> bool {
        self.decision == UnitDecision::Skip
    }
}

fn layer_minutes(layer: &[PlannedUnit]) -> u64 {
    let active = layer.iter().filter(|unit| !unit.is_skipped());
    let known = active.filter_map(|unit| unit.estimate.minutes);
    known.max().unwrap_or(0)
}

impl fmt::Display for RunPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PlanText {
            subject: &self.subject,
            environment: self.environment,
            layers: &self.told(),
        }
        .fmt(f)
    }
}

#[cfg(test)]
mod tests;
