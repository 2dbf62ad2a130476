//! What a run would do: units in layers, which are skipped and why, and how long it should take.
//!
//! Layers are a view; execution does not wait for them. The estimate that is shown is the sum of the
//! longest unit of each layer. The limit of a run also knows how many units run at once.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::fingerprint::RunReason;
use crate::graph::UnitGraph;
use crate::record::{PlannedEvent, RunEvent};
use crate::template::Estimate;

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

    /// Sum of the layers' times.
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
    active.map(|unit| unit.estimate.minutes).max().unwrap_or(0)
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

/// A plan as people read it, from what its event says: it reads the same wherever it was made.
#[derive(Clone, Copy, Debug)]
pub struct PlanText<'a> {
    pub subject: &'a PlanSubject,
    pub environment: EnvironmentName,
    pub layers: &'a [Vec<PlannedEvent>],
}

impl PlannedEvent {
    pub fn is_skipped(&self) -> bool {
        self.decision == SKIP
    }
}

/// What those of a layer take that are not skipped.
fn told_minutes(layer: &[PlannedEvent]) -> u64 {
    let active = layer.iter().filter(|unit| !unit.is_skipped());
    active.map(|unit| unit.minutes).max().unwrap_or(0)
}

impl fmt::Display for PlanText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = || self.layers.iter().flatten();
        let (skipped, active): (Vec<_>, Vec<_>) = units().partition(|unit| unit.is_skipped());
        let names: Vec<_> = active.iter().map(|unit| unit.unit.as_str()).collect();
        let minutes: u64 = self.layers.iter().map(|layer| told_minutes(layer)).sum();
        let longest = |layer: &Vec<PlannedEvent>| layer.iter().map(|unit| unit.minutes).max();
        let in_full: u64 = self.layers.iter().filter_map(longest).sum();
        let saved = in_full.saturating_sub(minutes);
        let percent = (saved * 100).checked_div(in_full).unwrap_or(0);
        writeln!(f, "Deployment: {}", self.subject)?;
        writeln!(f, "Environment: {}", self.environment)?;
        writeln!(f, "Total Stacks: {} enabled", units().count())?;
        writeln!(f, "Changed Stacks: {}{}", active.len(), listed(&names))?;
        writeln!(f, "Skipped Stacks: {} (no changes detected)", skipped.len())?;
        writeln!(
            f,
            "Estimated Time: {minutes} minutes ({percent}% time savings)"
        )?;
        writeln!(f, "\nExecution Plan:")?;
        for (at, layer) in self.layers.iter().enumerate() {
            write_layer(f, at + 1, layer)?;
        }
        let count = |units: &[&PlannedEvent]| units.iter().map(|unit| unit.resources).sum::<u64>();
        writeln!(f, "Total Estimated Time: {minutes} minutes")?;
        let (a, b) = (count(&active), count(&skipped));
        writeln!(f, "Total Resource Count: ~{a} resources ({b} skipped)")?;
        writeln!(f, "Time Saved: ~{saved} minutes ({percent}% reduction)")
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}

fn write_layer(f: &mut fmt::Formatter<'_>, number: usize, layer: &[PlannedEvent]) -> fmt::Result {
    let mode = if layer.len() > 1 {
        "Parallel"
    } else {
        "Sequential"
    };
    let after = match number {
        1 => "No Dependencies".to_owned(),
        2 => "Depends on Layer 1".to_owned(),
        n => format!("Depends on Layers 1-{}", n - 1),
    };
    let width = layer.iter().map(|unit| unit.unit.len()).max().unwrap_or(0);
    let mut lines = vec![format!("Layer {number} ({mode} - {after})")];
    for unit in layer {
        let mut line = format!("  - {:<width$} [Priority: {}] ", unit.unit, unit.priority);
        let reason = unit.reason.as_deref().unwrap_or_default();
        let _ = match unit.decision.as_str() {
            SKIP => write!(line, "[SKIPPED - No changes]"),
            DEPENDS => write!(
                line,
                "[DEPLOYING - {} min] if {reason} change",
                unit.minutes
            ),
            _ => write!(line, "[DEPLOYING - {} min] {reason}", unit.minutes),
        };
        lines.push(line);
    }
    let active = layer.iter().filter(|unit| !unit.is_skipped()).count();
    let minutes = told_minutes(layer);
    lines.push(format!(
        "  Parallelization: {active} active │ Layer time: ~{minutes} min"
    ));
    let inner = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
        .max(60);
    let rule = "─".repeat(inner + 2);
    writeln!(f, "┌{rule}┐")?;
    for line in lines {
        writeln!(f, "│ {line:<inner$} │")?;
    }
    writeln!(f, "└{rule}┘\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphUnit;

    fn graph() -> UnitGraph {
        let unit = |name: &str, priority, needs: &[&str]| GraphUnit {
            name: name.parse().unwrap(),
            priority,
            needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
        };
        UnitGraph::new([
            unit("dns", 10, &[]),
            unit("network", 20, &[]),
            unit("security", 30, &["network"]),
            unit("monitoring", 120, &["dns", "security"]),
        ])
        .unwrap()
    }

    fn plan(reasons: &[(&str, RunReason)]) -> RunPlan {
        let reasons = reasons
            .iter()
            .map(|(n, r)| (n.parse().unwrap(), r.clone()))
            .collect();
        let estimates = [
            ("dns", 2),
            ("network", 8),
            ("security", 6),
            ("monitoring", 5),
        ]
        .map(|(name, minutes)| {
            (
                name.parse().unwrap(),
                Estimate {
                    minutes,
                    longest: Some(minutes),
                    resources: 10,
                },
            )
        });
        RunPlan::new(
            PlanSubject::Directory("D1BRV40-A-shop".to_owned()),
            EnvironmentName::DEV,
            &graph(),
            &reasons,
            &BTreeMap::from(estimates),
        )
    }

    #[test]
    fn the_estimate_is_the_sum_of_the_layers_longest_active_units() {
        let all =
            ["dns", "network", "security", "monitoring"].map(|n| (n, RunReason::NeverDeployed));
        assert_eq!(plan(&all).minutes(), 8 + 6 + 5);
        assert_eq!(
            plan(&[("dns", RunReason::Forced)]).minutes(),
            2 + 5,
            "monitoring may follow dns"
        );
        assert_eq!(plan(&[]).minutes(), 0);
    }

    #[test]
    fn a_run_may_take_twice_the_time_that_its_units_may_take_one_after_the_other() {
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        let all =
            ["dns", "network", "security", "monitoring"].map(|n| (n, RunReason::NeverDeployed));
        assert_eq!(plan(&all).time_limit(4), minutes(2 * (8 + 6 + 5)));
        assert_eq!(plan(&all).time_limit(1), minutes(2 * (2 + 8 + 6 + 5)));
        assert_eq!(plan(&[]).time_limit(4), None);

        let many: Vec<ComponentName> = (0..64)
            .map(|number| format!("u{number}").parse().unwrap())
            .collect();
        let units = many.iter().map(|name| GraphUnit {
            name: name.clone(),
            priority: 0,
            needs: Default::default(),
        });
        let graph = UnitGraph::new(units).unwrap();
        let reasons = many.iter().map(|name| (name.clone(), RunReason::Forced));
        // Their last run had nothing to do and took seconds.
        let reasons = reasons.collect();
        let planned = |estimate: Estimate| {
            let quick = estimate.learnt(3, 10);
            let estimates = many.iter().map(|name| (name.clone(), quick)).collect();
            let id = PlanSubject::Rehearsal("D1".parse().unwrap());
            RunPlan::new(id, EnvironmentName::DEV, &graph, &reasons, &estimates)
        };
        let said = Estimate {
            longest: Some(5),
            ..Estimate::default()
        };
        assert_eq!(planned(said).minutes(), 1);
        assert_eq!(planned(said).time_limit(4), minutes(2 * 64 * 5 / 4));
        assert_eq!(planned(said).unit_limits().len(), 64);
        let unsaid = planned(Estimate::default());
        assert_eq!(unsaid.time_limit(4), None, "nobody said what is too long");
        assert!(unsaid.unit_limits().is_empty());
    }

    #[test]
    fn units_that_need_a_running_one_wait_for_its_outputs() {
        let plan = plan(&[("network", RunReason::LastRunFailed)]);
        let decision = |name: &str| {
            plan.units()
                .find(|u| u.name == name)
                .unwrap()
                .decision
                .clone()
        };
        assert_eq!(decision("dns"), UnitDecision::Skip);
        assert_eq!(
            decision("security"),
            UnitDecision::Depends {
                on: "network".parse().unwrap()
            }
        );
        assert_eq!(
            decision("monitoring"),
            UnitDecision::Depends {
                on: "security".parse().unwrap()
            }
        );
    }

    #[test]
    fn the_text_is_what_users_know() {
        insta::assert_snapshot!(plan(&[("network", RunReason::NeverDeployed)]).to_string());
    }

    #[test]
    fn a_plan_has_the_same_digest_wherever_and_whenever_it_is_made() {
        let plan = plan(&[("network", RunReason::NeverDeployed)]);
        assert_eq!(
            plan.digest(),
            "88297b2d5b2de6adfc103403e6f0b4f3a861b559e8351dfc09af7a2603318eca"
        );
        let mut learnt = plan.clone();
        learnt.layers[0][0].estimate = Estimate::default().learnt(3_600, 1);
        assert_eq!(learnt.digest(), plan.digest(), "estimates decide nothing");
    }

    #[test]
    fn plans_that_differ_in_anything_that_is_done_have_different_digests() {
        let plan = plan(&[("network", RunReason::NeverDeployed)]);
        let changes: [fn(&mut RunPlan); 7] = [
            |plan| plan.subject = PlanSubject::Directory("D1-A-other".to_owned()),
            |plan| plan.environment = EnvironmentName::PROD,
            |plan| plan.layers[0].swap(0, 1),
            |plan| {
                plan.layers.pop();
            },
            |plan| plan.layers[0][0].priority += 1,
            |plan| plan.layers[0][0].name = "other".parse().unwrap(),
            |plan| plan.layers[0][1].decision = UnitDecision::Run(RunReason::Forced),
        ];
        let mut digests = std::collections::BTreeSet::from([plan.digest()]);
        for change in changes {
            let mut changed = plan.clone();
            change(&mut changed);
            digests.insert(changed.digest());
        }
        assert_eq!(digests.len(), 8);
    }
}
