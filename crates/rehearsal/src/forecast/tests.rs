//! Forecasts over calls as the cloud sees them. Times are made, not measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_engine_ports::{EngineEvent, EventSink};

use super::observer::{CallKind, CallSeen};
use super::*;

struct Nobody;

impl EventSink for Nobody {
    fn emit(&self, _: EngineEvent) {}
}

/// A unit whose calls are given one by one; `at` counts milliseconds from its start.
struct Stage {
    observer: Observer,
    start: Instant,
}

impl Stage {
    fn new(units: &[(&str, u64, u64)]) -> Self {
        let stage = Self {
            observer: Observer::default(),
            start: Instant::now(),
        };
        for (unit, began, ended) in units {
            drop(stage.observer.listen(unit, Arc::new(Nobody)));
            let operation = (stage.at(*began), stage.at(*ended));
            let mut seen = stage.observer.seen();
            seen.units
                .get_mut(*unit)
                .unwrap()
                .operations
                .push(operation);
        }
        stage
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    fn resource(&self, unit: &str, name: &str, needs: &[&str]) {
        let mut seen = self.observer.seen();
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        let resources = &mut seen.units.get_mut(unit).unwrap().resources;
        resources.insert(name.to_owned(), needs);
    }

    /// A call that was not waited for: it takes so many seconds.
    fn call(&self, name: &str, kind: CallKind, at: u64, seconds: u64) {
        self.observer.call(CallSeen {
            urn: name.to_owned(),
            type_: "t".to_owned(),
            name: name.to_owned(),
            kind,
            began: self.at(at),
            ended: self.at(at + 1),
            takes: Duration::from_secs(seconds),
            simulated: Duration::from_secs(seconds),
        });
    }

    /// Whole seconds, and the names on the path.
    fn forecast(&self, unit: &str) -> (u64, String) {
        let forecast = self.observer.forecast(unit, 8).unwrap();
        (forecast.took.as_secs(), path(&forecast))
    }
}

fn path(forecast: &Forecast) -> String {
    let names: Vec<_> = forecast.path.iter().map(|leg| leg.name.as_str()).collect();
    names.join(" ")
}

#[test]
fn resources_come_after_what_they_need_also_through_what_did_not_change() {
    let stage = Stage::new(&[("u", 0, 100)]);
    stage.resource("u", "network", &[]);
    stage.resource("u", "component", &["network"]);
    stage.resource("u", "database", &["component"]);
    stage.resource("u", "beside", &[]);
    stage.call("network", CallKind::Make, 10, 60);
    stage.call("beside", CallKind::Make, 11, 100);
    stage.call("database", CallKind::Make, 20, 300);
    assert_eq!(stage.forecast("u"), (360, "network database".to_owned()));
}

#[test]
fn a_refresh_is_over_before_anything_changes() {
    let stage = Stage::new(&[("u", 0, 100)]);
    for name in ["a", "b"] {
        stage.resource("u", name, &[]);
    }
    stage.call("a", CallKind::Look, 10, 5);
    stage.call("b", CallKind::Look, 10, 7);
    stage.call("a", CallKind::Make, 20, 30);
    assert_eq!(stage.forecast("u"), (37, "b a".to_owned()));
}

#[test]
fn what_is_needed_is_deleted_last_and_everything_after_the_program() {
    let stage = Stage::new(&[("u", 0, 100)]);
    stage.resource("u", "vpc", &[]);
    stage.resource("u", "subnet", &["vpc"]);
    stage.resource("u", "other", &[]);
    stage.resource("u", "new", &[]);
    stage.call("new", CallKind::Make, 1, 50);
    stage.call("subnet", CallKind::Delete, 10, 20);
    stage.call("other", CallKind::Delete, 10, 30);
    stage.call("vpc", CallKind::Delete, 20, 1);
    // Deletions are groups: the second waits for all of the first.
    assert_eq!(stage.forecast("u"), (81, "new other vpc".to_owned()));
}

#[test]
fn a_replacement_that_cannot_be_beside_waits_for_the_deletion_and_for_nobody_else() {
    let stage = Stage::new(&[("u", 0, 100)]);
    stage.resource("u", "slow", &[]);
    stage.resource("u", "name", &[]);
    stage.resource("u", "user", &["name"]);
    stage.call("slow", CallKind::Make, 1, 40);
    stage.call("user", CallKind::Delete, 10, 2);
    stage.call("name", CallKind::Delete, 20, 3);
    stage.call("name", CallKind::Make, 30, 5);
    stage.call("user", CallKind::Make, 40, 70);
    let (seconds, path) = stage.forecast("u");
    assert_eq!((seconds, path.as_str()), (80, "user name name user"));
}

#[test]
fn units_come_after_each_other_also_through_those_that_did_not_run() {
    let stage = Stage::new(&[("network", 0, 10), ("database", 20, 30), ("docs", 5, 9)]);
    for (unit, at, seconds) in [("network", 3, 180), ("database", 23, 540), ("docs", 6, 60)] {
        stage.resource(unit, unit, &[]);
        stage.call(unit, CallKind::Make, at, seconds);
    }
    let order = |name, after: &[&'static str]| UnitOrder {
        name,
        after: after.to_vec(),
    };
    let order = [
        order("network", &[]),
        order("security", &["network"]),
        order("database", &["security"]),
        order("docs", &[]),
    ];
    let run = |at_once| {
        let run = stage.observer.forecast_run(stage.start, &order, at_once, 8);
        run.unwrap()
    };
    let told = run(4);
    assert_eq!(told.units["database"].took.as_secs(), 540);
    assert_eq!(path(&told.total), "network database");
    let alone = run(1);
    assert!(alone.total.took >= Duration::from_secs(180 + 540 + 60));
    assert!(told.total.took >= Duration::from_secs(720));
    assert!(told.total.took < Duration::from_secs(780));
    assert!(!told.units.contains_key("security"));
}

#[test]
fn without_simulated_time_nothing_is_foretold() {
    let stage = Stage::new(&[("u", 0, 10)]);
    stage.resource("u", "a", &[]);
    stage.call("a", CallKind::Make, 1, 0);
    assert_eq!(stage.observer.forecast("u", 8), None);
    assert_eq!(stage.observer.forecast("other", 8), None);
    let order = [UnitOrder {
        name: "u",
        after: Vec::new(),
    }];
    assert_eq!(stage.observer.forecast_run(stage.start, &order, 4, 8), None);
}
