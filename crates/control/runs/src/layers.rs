//! That a layer of a plan begins and ends, told between the events of its units.
//!
//! The run core does not wait for layers, so it says nothing about them. Whoever watches wants to hear of them, in their
//! place and under a number of their own, and so they are recorded with everything else. They follow from the other
//! events alone: a worker that goes on with a run reads the record and knows what was told.

use std::collections::BTreeSet;

use nimbus_core::ComponentName;
use nimbus_orchestrator::RunEvent;
use serde_json::{Value, json};

/// The event's name, which the run core does not know.
const NAME: &str = "layer";

/// What was told about the layers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerWatch {
    layers: Vec<WatchedLayer>,
}

#[derive(Clone, Debug, Default)]
struct WatchedLayer {
    units: BTreeSet<ComponentName>,
    ended: BTreeSet<ComponentName>,
    started: bool,
    completed: bool,
}

/// Whether a recorded event is one of these.
pub(crate) fn is_layer(event: &Value) -> bool {
    event["event"] == NAME
}

impl LayerWatch {
    /// What has to be told before and after an event.
    pub(crate) fn around(&mut self, event: &RunEvent) -> (Option<Value>, Option<Value>) {
        match event {
            RunEvent::Plan { layers, .. } => {
                self.plan(layers.iter().map(|layer| {
                    let units = layer.iter().map(|planned| planned.unit.clone());
                    units.collect()
                }));
                (None, None)
            }
            RunEvent::Unit {
                at, unit, status, ..
            } => self.unit(at, unit, status),
            RunEvent::Run { .. }
            | RunEvent::Resource { .. }
            | RunEvent::Check { .. }
            | RunEvent::Diagnostic { .. } => (None, None),
        }
    }

    /// An attempt that goes on plans again; what was told of the same layer stays told.
    fn plan(&mut self, planned: impl Iterator<Item = BTreeSet<ComponentName>>) {
        let before = std::mem::take(&mut self.layers);
        self.layers = planned
            .map(|units| {
                let known = before.iter().find(|layer| layer.units == units).cloned();
                known.unwrap_or_else(|| WatchedLayer {
                    units,
                    ..WatchedLayer::default()
                })
            })
            .collect();
    }

    fn unit(
        &mut self,
        at: &str,
        unit: &ComponentName,
        status: &str,
    ) -> (Option<Value>, Option<Value>) {
        let found = self
            .layers
            .iter_mut()
            .enumerate()
            .find(|(_, layer)| layer.units.contains(unit));
        let Some((number, layer)) = found else {
            return (None, None);
        };
        let begins = matches!(status, "running" | "skipped" | "succeeded");
        let before = (begins && !layer.started).then(|| layer.tell(at, number, "started"));
        layer.started |= begins;
        let ends = matches!(status, "succeeded" | "skipped" | "failed" | "not_started");
        if ends {
            layer.ended.insert(unit.clone());
        }
        let over = layer.started && !layer.completed && layer.ended == layer.units;
        let after = over.then(|| layer.tell(at, number, "completed"));
        layer.completed |= over;
        (before, after)
    }
}

impl WatchedLayer {
    fn tell(&self, at: &str, number: usize, status: &str) -> Value {
        json!({"event": NAME, "at": at, "layer": number, "status": status, "units": self.units})
    }
}

#[cfg(test)]
mod tests {
    use nimbus_orchestrator::{PlannedEvent, UnitState};

    use super::*;

    fn plan() -> RunEvent {
        let planned = |unit: &str| PlannedEvent {
            unit: unit.parse().unwrap(),
            priority: 0,
            decision: "run".to_owned(),
            reason: None,
            minutes: Some(1),
            measured: false,
            rehearsed_seconds: None,
            resources: None,
            needs: Vec::new(),
        };
        RunEvent::Plan {
            at: "t".to_owned(),
            layers: vec![vec![planned("a"), planned("b")], vec![planned("c")]],
            minutes: 2,
        }
    }

    fn unit(name: &str, state: UnitState) -> RunEvent {
        RunEvent::unit("t".to_owned(), &name.parse().unwrap(), &state)
    }

    fn told(watch: &mut LayerWatch, events: &[RunEvent]) -> Vec<String> {
        let mut told = Vec::new();
        for event in events {
            let (before, after) = watch.around(event);
            let layer = |value: Value| format!("{} {}", value["layer"], value["status"]);
            told.extend(before.map(layer));
            if let RunEvent::Unit { unit, status, .. } = event {
                told.push(format!("{unit} {status}"));
            }
            told.extend(after.map(layer));
        }
        told
    }

    #[test]
    fn a_layer_begins_before_its_first_unit_and_ends_after_its_last() {
        let events = [
            plan(),
            unit("a", UnitState::Running),
            unit("b", UnitState::Skipped),
            unit("a", UnitState::Succeeded),
            unit("c", UnitState::Running),
            unit("c", UnitState::Succeeded),
        ];
        let expected = [
            "0 \"started\"",
            "a running",
            "b skipped",
            "a succeeded",
            "0 \"completed\"",
            "1 \"started\"",
            "c running",
            "c succeeded",
            "1 \"completed\"",
        ];
        assert_eq!(told(&mut LayerWatch::default(), &events), expected);
    }

    #[test]
    fn whoever_goes_on_tells_nothing_twice_and_a_layer_that_never_began_never_ends() {
        let mut first = LayerWatch::default();
        told(&mut first, &[plan(), unit("a", UnitState::Running)]);
        // The next worker has read the record, and plans again.
        let message = "m".to_owned();
        let events = [
            plan(),
            unit("a", UnitState::Running),
            unit("a", UnitState::Succeeded),
            unit("b", UnitState::Failed { message }),
            unit(
                "c",
                UnitState::NotStarted {
                    because: "b".to_owned(),
                },
            ),
        ];
        let expected = [
            "a running",
            "a succeeded",
            "b failed",
            "0 \"completed\"",
            "c not_started",
        ];
        assert_eq!(told(&mut first, &events), expected);
    }
}
