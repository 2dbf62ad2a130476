//! Figures of the planner and the state machine, without programs, files or clouds.
//!
//! `cargo xtask bench orchestrator` runs it in release mode. Units sleep instead of working, ten
//! milliseconds for a minute; the real executor decides what starts when.
#![allow(clippy::print_stdout, reason = "its output is the result")]
#![allow(clippy::unwrap_used, reason = "graphs are made here and are right")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_orchestrator::execute::{Limits, RunSink, Worker, execute};
use nimbus_orchestrator::fingerprint::Reason;
use nimbus_orchestrator::graph::{Graph, Name, Unit};
use nimbus_orchestrator::plan::Plan;
use nimbus_orchestrator::run::{
    Command, Direction, OnFailure, Run, RunResult, UnitOutcome, UnitState,
};

/// A minute of a unit in the executor.
const MINUTE: Duration = Duration::from_millis(10);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for size in [1_000, 5_000, 10_000] {
        let started = Instant::now();
        let graph = wide(size);
        let plan = plan(&graph);
        let planned = started.elapsed();
        let started = Instant::now();
        let ended = no_op(&graph);
        let ran = started.elapsed();
        assert_eq!((plan.units().count(), ended), (size, size));
        println!(
            "{{\"figure\":\"planned\",\"units\":{size},\"plan_ms\":{:.3},\"no_op_decisions_ms\":{:.3}}}",
            planned.as_secs_f64() * 1e3,
            ran.as_secs_f64() * 1e3,
        );
    }
    let (graph, minutes) = platform();
    let all: BTreeSet<Name> = minutes.keys().cloned().collect();
    let one = BTreeSet::from(["monitoring".to_owned()]);
    let whole = std::slice::from_ref(&graph);
    for (way, graphs, parallel, changed) in [
        ("one after the other", whole, 1, &all),
        ("layers as walls", &layers(&graph), 16, &all),
        ("ready queue, 4 at once", whole, 4, &all),
        ("ready queue, 16 at once", whole, 16, &all),
        ("one unit changed", whole, 16, &one),
    ] {
        let started = Instant::now();
        for graph in graphs {
            run(graph, &minutes, parallel, changed).await;
        }
        let ms = started.elapsed().as_secs_f64() * 1e3;
        println!("{{\"figure\":\"order\",\"way\":\"{way}\",\"ms\":{ms:.1}}}");
    }
}

/// Every unit needs three others of the rows before it.
fn wide(size: usize) -> Graph {
    let name = |at: usize| format!("unit-{at:05}");
    let unit = |at: usize| {
        let needs = [1, 7, 31]
            .iter()
            .filter_map(|back| at.checked_sub(back * 20));
        Unit {
            name: name(at),
            priority: 100,
            needs: needs.map(name).collect(),
        }
    };
    Graph::new((0..size).map(unit)).unwrap()
}

fn plan(graph: &Graph) -> Plan {
    let reasons: BTreeMap<Name, Reason> = graph
        .names()
        .step_by(10)
        .map(|name| (name.to_owned(), Reason::NeverDeployed))
        .collect();
    Plan::new("D1", "dev", graph, &reasons, &BTreeMap::new())
}

/// Drives the state machine over units of which none has changed.
fn no_op(graph: &Graph) -> usize {
    let mut run = Run::new(graph.clone(), Direction::Forward, OnFailure::Automatic, 16);
    let mut open = run.begin();
    let mut ended = 0;
    while let Some(command) = open.pop() {
        if let Command::Start(name) = command {
            ended += 1;
            open.extend(run.unit_ended(&name, UnitOutcome::Skipped));
            drop(run.take_news());
        }
    }
    ended
}

/// The shipped platform in the shape of its default template, with minutes as its templates guess.
fn platform() -> (Graph, BTreeMap<Name, u64>) {
    let units: &[(&str, u64, &[&str])] = &[
        ("dns", 2, &[]),
        ("network", 8, &[]),
        ("security", 6, &["network"]),
        ("secrets", 3, &["security"]),
        ("authentication", 5, &["security"]),
        ("storage", 4, &["security"]),
        ("database-rds", 15, &["network", "security", "secrets"]),
        ("containers-images", 4, &["security"]),
        (
            "containers-apps",
            10,
            &["network", "security", "containers-images"],
        ),
        ("services-ecr", 2, &[]),
        ("services-ecs", 9, &["network", "security", "services-ecr"]),
        ("services-eks", 18, &["network", "security"]),
        ("services-api", 6, &["authentication", "services-ecs"]),
        ("compute-ec2", 7, &["network", "security"]),
        ("compute-lambda", 5, &["network", "security"]),
        (
            "monitoring",
            5,
            &["services-ecs", "compute-ec2", "database-rds"],
        ),
    ];
    let graph = Graph::new(units.iter().map(|(name, _, needs)| Unit {
        name: (*name).to_owned(),
        priority: 100,
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    }));
    let minutes = units
        .iter()
        .map(|(name, minutes, _)| ((*name).to_owned(), *minutes))
        .collect();
    (graph.unwrap(), minutes)
}

/// One graph for each layer: whoever runs them in turn waits for the slowest of each.
fn layers(graph: &Graph) -> Vec<Graph> {
    let unit = |name: &str| Unit {
        name: name.to_owned(),
        priority: 100,
        needs: BTreeSet::new(),
    };
    let layer = |names: Vec<&str>| Graph::new(names.into_iter().map(unit)).unwrap();
    graph.layers().into_iter().map(layer).collect()
}

/// Takes as long as a unit does, and no time for one that has not changed.
struct Sleeper {
    minutes: BTreeMap<Name, u64>,
    changed: BTreeSet<Name>,
}

#[async_trait]
impl Worker for Sleeper {
    async fn start(&self, unit: &str) -> UnitOutcome {
        if !self.changed.contains(unit) {
            return UnitOutcome::Skipped;
        }
        tokio::time::sleep(MINUTE * self.minutes[unit] as u32).await;
        UnitOutcome::Succeeded
    }

    async fn roll_back(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

struct Nobody;

impl RunSink for Nobody {
    fn unit_changed(&self, _: &str, _: &UnitState) {}
}

/// The real executor over units that sleep.
async fn run(
    graph: &Graph,
    minutes: &BTreeMap<Name, u64>,
    parallel: usize,
    changed: &BTreeSet<Name>,
) {
    let run = Run::new(graph.clone(), Direction::Forward, OnFailure::Hold, parallel);
    let worker = Sleeper {
        minutes: minutes.clone(),
        changed: changed.clone(),
    };
    let report = execute(run, Arc::new(worker), &Nobody, &Limits::default()).await;
    assert_eq!(report.result, RunResult::Succeeded);
}
