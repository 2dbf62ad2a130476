//! What a run's events come to: where every unit stands, what failed first, which resources were touched.
//!
//! Pure: events go in one by one, in order, and what a screen shows comes out. Whoever has folded up to an event can go
//! on from there.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use nimbus_control_wire::{
    FailureCause, PropertyRow, ResourceCounts, RunCheck, RunTotals, RunUnit, UnitResource,
};
use nimbus_orchestrator::{
    ChangedProperty, CheckStatus, DiagnosticLevel, PlannedEvent, ResourceStatus, RunEvent,
    RunStatus,
};

/// A run as far as its events were read.
#[derive(Debug, Default)]
pub(crate) struct RunFold {
    pub(crate) seq: i64,
    pub(crate) planned_minutes: u64,
    pub(crate) attempts: u32,
    pub(crate) undoing: bool,
    pub(crate) trigger: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) layers: Vec<Vec<String>>,
    pub(crate) cause: Option<FailureCause>,
    units: IndexMap<String, FoldedUnit>,
    checks: IndexMap<String, RunCheck>,
    warnings: u64,
    errors: u64,
}

#[derive(Debug, Default)]
struct FoldedUnit {
    row: RunUnit,
    /// A resource that is replaced has a step for each operation.
    steps: IndexMap<(String, String), UnitResource>,
    last_failed: Option<UnitResource>,
}

impl RunFold {
    pub(crate) fn apply(&mut self, seq: i64, event: &RunEvent) {
        self.seq = seq;
        match event {
            RunEvent::Run {
                at,
                status,
                message,
                trigger,
                ..
            } => {
                let trigger = trigger.and_then(|trigger| word_of(&trigger));
                self.run(at, *status, message.as_ref(), trigger);
            }
            RunEvent::Plan {
                layers, minutes, ..
            } => {
                self.planned_minutes = *minutes;
                self.plan(layers);
            }
            RunEvent::Unit {
                at,
                unit,
                status,
                message,
                reason,
                seconds,
                changes,
                attention,
                // What to do about them is said in the message too.
                open_creates: _,
            } => {
                let folded = self.unit_mut(unit.as_str());
                let row = &mut folded.row;
                row.status.clone_from(status);
                row.message.clone_from(message);
                row.attention = *attention;
                row.seconds = *seconds;
                if reason.is_some() {
                    row.reason.clone_from(reason);
                }
                if matches!(status.as_str(), "running" | "rolling_back") {
                    row.started_at = Some(at.clone());
                    row.ended_at = None;
                } else {
                    row.ended_at = Some(at.clone());
                    row.changes.clone_from(changes);
                }
                if status == "failed" {
                    let resource = folded.last_failed.clone();
                    self.note_cause(at, Some(unit.as_str()), message.as_ref(), resource);
                }
            }
            RunEvent::Resource { .. } => self.resource(event),
            RunEvent::Check {
                at,
                check,
                status,
                message,
                seconds,
            } => {
                if *status == CheckStatus::Failed {
                    self.note_cause(at, None, message.as_ref(), None);
                }
                if *status != CheckStatus::Output {
                    let row = RunCheck {
                        name: check.clone(),
                        status: status.word().to_owned(),
                        message: message.clone(),
                        seconds: *seconds,
                    };
                    self.checks.insert(check.clone(), row);
                }
            }
            RunEvent::Diagnostic { level, .. } => match level {
                DiagnosticLevel::Warning => self.warnings += 1,
                DiagnosticLevel::Error => self.errors += 1,
                DiagnosticLevel::Debug | DiagnosticLevel::Info => {}
            },
        }
    }

    fn run(
        &mut self,
        at: &str,
        status: RunStatus,
        message: Option<&String>,
        trigger: Option<String>,
    ) {
        match status {
            RunStatus::Started | RunStatus::Resumed => {
                self.attempts += 1;
                self.cause = None;
                self.checks.clear();
                // Whoever was at it is gone.
                for folded in self.units.values_mut() {
                    if folded.row.status == "running" {
                        folded.row.status = "waiting".to_owned();
                    }
                }
            }
            RunStatus::Late => self.trigger = trigger.or_else(|| self.trigger.take()),
            RunStatus::Undoing => {
                self.undoing = true;
                self.trigger = trigger.or_else(|| self.trigger.take());
                self.message = message.cloned();
            }
            RunStatus::Ended => {
                if let Some(message) = message {
                    self.message = Some(message.clone());
                    self.note_cause(at, None, Some(message), None);
                }
            }
        }
    }

    fn plan(&mut self, layers: &[Vec<PlannedEvent>]) {
        let name = |planned: &PlannedEvent| planned.unit.to_string();
        self.layers = layers
            .iter()
            .map(|layer| layer.iter().map(name).collect())
            .collect();
        for (number, layer) in layers.iter().enumerate() {
            for planned in layer {
                let row = &mut self.unit_mut(planned.unit.as_str()).row;
                row.layer = number;
                row.decision = Some(planned.decision.clone());
                row.planned_minutes = planned.minutes.unwrap_or_default();
                row.needs = planned.needs.iter().map(ToString::to_string).collect();
                if row.reason.is_none() {
                    row.reason.clone_from(&planned.reason);
                }
            }
        }
        let needs: Vec<(String, String)> = self
            .units
            .values()
            .flat_map(|folded| {
                let by = &folded.row.name;
                folded
                    .row
                    .needs
                    .iter()
                    .map(|need| (need.clone(), by.clone()))
            })
            .collect();
        for folded in self.units.values_mut() {
            folded.row.needed_by.clear();
        }
        for (need, by) in needs {
            if let Some(folded) = self.units.get_mut(&need) {
                folded.row.needed_by.push(by);
            }
        }
    }

    fn resource(&mut self, event: &RunEvent) {
        let RunEvent::Resource {
            at,
            unit,
            status,
            op,
            type_,
            name,
            urn,
            id,
            seconds,
            properties,
        } = event
        else {
            return;
        };
        let folded = self.unit_mut(unit.as_str());
        let step = folded
            .steps
            .entry((urn.clone(), op.clone()))
            .or_insert_with(|| UnitResource {
                urn: urn.clone(),
                type_: type_.clone(),
                name: name.clone(),
                op: op.clone(),
                status: String::new(),
                id: None,
                started_at: None,
                ended_at: None,
                seconds: None,
                properties: Vec::new(),
            });
        if !properties.is_empty() {
            step.properties = properties.iter().map(property_row).collect();
        }
        if id.is_some() {
            step.id.clone_from(id);
        }
        step.seconds = *seconds;
        let word = match status {
            ResourceStatus::Planned => "planned",
            ResourceStatus::Started => {
                step.started_at = Some(at.clone());
                step.ended_at = None;
                "started"
            }
            ResourceStatus::Done => {
                step.ended_at = Some(at.clone());
                "done"
            }
            ResourceStatus::Failed => {
                step.ended_at = Some(at.clone());
                "failed"
            }
        };
        word.clone_into(&mut step.status);
        if *status == ResourceStatus::Failed {
            folded.last_failed = Some(step.clone());
        }
    }

    fn note_cause(
        &mut self,
        at: &str,
        unit: Option<&str>,
        message: Option<&String>,
        resource: Option<UnitResource>,
    ) {
        if self.cause.is_none() {
            self.cause = Some(FailureCause {
                at: at.to_owned(),
                unit: unit.map(str::to_owned),
                message: message.cloned().unwrap_or_default(),
                resource,
            });
        }
    }

    fn unit_mut(&mut self, name: &str) -> &mut FoldedUnit {
        self.units
            .entry(name.to_owned())
            .or_insert_with(|| FoldedUnit {
                row: RunUnit {
                    name: name.to_owned(),
                    status: "waiting".to_owned(),
                    ..RunUnit::default()
                },
                ..FoldedUnit::default()
            })
    }

    /// Every unit with what its resources count to.
    pub(crate) fn units(&self) -> Vec<RunUnit> {
        self.units.values().map(FoldedUnit::counted).collect()
    }

    pub(crate) fn unit(&self, name: &str) -> Option<RunUnit> {
        self.units.get(name).map(FoldedUnit::counted)
    }

    /// Steps of a unit, in the order in which they were first seen.
    pub(crate) fn resources(&self, unit: &str) -> impl Iterator<Item = &UnitResource> {
        self.units
            .get(unit)
            .into_iter()
            .flat_map(|folded| folded.steps.values())
    }

    pub(crate) fn checks(&self) -> Vec<RunCheck> {
        self.checks.values().cloned().collect()
    }

    pub(crate) fn totals(units: &[RunUnit], fold: &Self) -> RunTotals {
        let mut totals = RunTotals {
            warnings: fold.warnings,
            errors: fold.errors,
            ..RunTotals::default()
        };
        for unit in units {
            *totals.units.entry(unit.status.clone()).or_default() += 1;
            let (sum, own) = (&mut totals.resources, &unit.resources);
            sum.total += own.total;
            sum.planned += own.planned;
            sum.started += own.started;
            sum.done += own.done;
            sum.failed += own.failed;
            for (op, count) in &own.by_op {
                *sum.by_op.entry(op.clone()).or_default() += count;
            }
        }
        totals
    }

    pub(crate) fn attention(&self) -> Vec<String> {
        let stuck = self.units.values().filter(|folded| folded.row.attention);
        stuck
            .map(|folded| {
                let message = folded.row.message.as_deref().unwrap_or_default();
                format!("{}: {message}", folded.row.name)
            })
            .collect()
    }
}

impl FoldedUnit {
    fn counted(&self) -> RunUnit {
        RunUnit {
            resources: counts(self.steps.values()),
            ..self.row.clone()
        }
    }
}

fn counts<'a>(steps: impl Iterator<Item = &'a UnitResource>) -> ResourceCounts {
    let mut counts = ResourceCounts::default();
    let mut by_op: BTreeMap<String, u64> = BTreeMap::new();
    for step in steps {
        counts.total += 1;
        match step.status.as_str() {
            "planned" => counts.planned += 1,
            "started" => counts.started += 1,
            "done" => counts.done += 1,
            _ => counts.failed += 1,
        }
        if matches!(step.status.as_str(), "planned" | "done") {
            *by_op.entry(step.op.clone()).or_default() += 1;
        }
    }
    counts.by_op = by_op;
    counts
}

fn word_of(value: &impl serde::Serialize) -> Option<String> {
    let value = serde_json::to_value(value).ok()?;
    value.as_str().map(str::to_owned)
}

fn property_row(changed: &ChangedProperty) -> PropertyRow {
    PropertyRow {
        path: changed.path.clone(),
        old: changed.old.clone(),
        new: changed.new.clone(),
        secret: changed.secret,
        unknown: changed.unknown,
        replaces: changed.replaces,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fold(events: &[serde_json::Value]) -> RunFold {
        let mut fold = RunFold::default();
        for (place, event) in events.iter().enumerate() {
            let event: RunEvent = serde_json::from_value(event.clone()).unwrap();
            fold.apply(i64::try_from(place).unwrap() + 1, &event);
        }
        fold
    }

    fn plan() -> serde_json::Value {
        let unit = |name: &str, needs: &[&str]| json!({"unit": name, "priority": 1, "decision": "run", "reason": "new", "minutes": 3, "needs": needs});
        json!({"event": "plan", "at": "t0", "minutes": 6,
            "layers": [[unit("net", &[])], [unit("db", &["net"])]]})
    }

    fn resource(unit: &str, name: &str, op: &str, status: &str) -> serde_json::Value {
        json!({"event": "resource", "at": "t1", "unit": unit, "status": status, "op": op,
            "type": "t", "name": name, "urn": format!("urn:{name}")})
    }

    #[test]
    fn units_know_each_other_and_count_their_resources() {
        let fold = fold(&[
            json!({"event": "run", "at": "t0", "run": "R0001", "status": "started"}),
            plan(),
            json!({"event": "unit", "at": "t1", "unit": "net", "status": "running"}),
            resource("net", "vpc", "create", "started"),
            resource("net", "vpc", "create", "done"),
            resource("net", "subnet", "create", "started"),
        ]);
        let units = fold.units();
        assert_eq!(units[0].needed_by, ["db"]);
        assert_eq!((units[1].layer, units[1].status.as_str()), (1, "waiting"));
        assert_eq!(units[0].started_at.as_deref(), Some("t1"));
        let counts = &units[0].resources;
        assert_eq!((counts.total, counts.done, counts.started), (2, 1, 1));
        assert_eq!(fold.resources("net").count(), 2);
        let totals = RunFold::totals(&units, &fold);
        assert_eq!(
            totals.units,
            [("running".to_owned(), 1), ("waiting".to_owned(), 1)].into()
        );
        assert_eq!(fold.seq, 6);
    }

    #[test]
    fn the_cause_is_what_failed_first_and_a_new_attempt_forgets_it() {
        let mut events = vec![
            plan(),
            json!({"event": "unit", "at": "t1", "unit": "net", "status": "running"}),
            resource("net", "vpc", "create", "failed"),
            json!({"event": "unit", "at": "t2", "unit": "net", "status": "failed", "message": "quota"}),
            json!({"event": "unit", "at": "t3", "unit": "db", "status": "not_started", "message": "net failed"}),
            json!({"event": "run", "at": "t4", "run": "R0001", "status": "ended", "result": "failed", "message": "1 failed"}),
        ];
        let cause = fold(&events).cause.unwrap();
        assert_eq!(
            (cause.unit.as_deref(), cause.message.as_str()),
            (Some("net"), "quota")
        );
        assert_eq!(cause.resource.unwrap().name, "vpc");
        events.push(json!({"event": "run", "at": "t5", "run": "R0001", "status": "resumed"}));
        assert!(fold(&events).cause.is_none());
    }

    #[test]
    fn what_a_step_changes_stays_with_it_when_it_ends() {
        let mut begins = resource("net", "vpc", "update", "started");
        begins["properties"] = json!([{"path": "cidr", "old": "1", "new": "2", "replaces": true}]);
        let fold = fold(&[plan(), begins, resource("net", "vpc", "update", "done")]);
        let step = fold.resources("net").next().unwrap();
        assert_eq!(step.status, "done");
        assert_eq!(step.properties.len(), 1);
        assert!(step.properties[0].replaces);
    }
}
