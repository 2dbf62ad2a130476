//! Figures of the planner and the state machine, without programs, files or clouds.
//!
//! `cargo xtask bench orchestrator` runs it in release mode. Times of plans are measured; times of
//! runs are virtual: each unit takes as long as the graph says, and the real state machine decides
//! what starts when.
#![allow(clippy::print_stdout, reason = "its output is the result")]
#![allow(clippy::unwrap_used, reason = "graphs are made here and are right")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Instant;

use nimbus_orchestrator::fingerprint::Reason;
use nimbus_orchestrator::graph::{Graph, Name, Unit};
use nimbus_orchestrator::plan::Plan;
use nimbus_orchestrator::run::{Command, Direction, OnFailure, Run, UnitOutcome};

fn main() {
    for size in [1_000, 5_000, 10_000] {
        let started = Instant::now();
        let graph = wide(size);
        let plan = plan(&graph);
        let planned = started.elapsed();
        let started = Instant::now();
        let ended = no_op(&graph);
        let ran = started.elapsed();
        println!(
            "{{\"units\":{size},\"layers\":{},\"plan_ms\":{:.3},\"no_op_decisions_ms\":{:.3},\"ended\":{ended}}}",
            plan.layers.len(),
            planned.as_secs_f64() * 1e3,
            ran.as_secs_f64() * 1e3,
        );
    }
    let (graph, minutes) = platform();
    let queue = |parallel| virtual_time(&graph, &minutes, parallel, &BTreeSet::new());
    let changed = BTreeSet::from(["monitoring".to_owned()]);
    let all_but_one: BTreeSet<Name> = minutes
        .keys()
        .filter(|name| !changed.contains(*name))
        .cloned()
        .collect();
    println!(
        "{{\"graph\":\"platform\",\"sequential_min\":{},\"barriers_min\":{},\"queue_min\":{},\"queue_4_min\":{},\"one_unit_changed_min\":{}}}",
        minutes.values().sum::<u64>(),
        barriers(&graph, &minutes),
        queue(usize::MAX),
        queue(4),
        virtual_time(&graph, &minutes, 4, &all_but_one),
    );
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

/// Each layer waits for the slowest of the one before it.
fn barriers(graph: &Graph, minutes: &BTreeMap<Name, u64>) -> u64 {
    let slowest = |layer: Vec<&str>| layer.into_iter().map(|name| minutes[name]).max();
    graph.layers().into_iter().filter_map(slowest).sum()
}

/// What a run takes when units take as long as given; `skipped` ones take nothing.
fn virtual_time(
    graph: &Graph,
    minutes: &BTreeMap<Name, u64>,
    parallel: usize,
    skipped: &BTreeSet<Name>,
) -> u64 {
    let mut run = Run::new(
        graph.clone(),
        Direction::Forward,
        OnFailure::Automatic,
        parallel,
    );
    let (mut now, mut running) = (0, BinaryHeap::new());
    let mut commands = run.begin();
    loop {
        for command in commands {
            if let Command::Start(name) = command {
                let time = if skipped.contains(&name) {
                    0
                } else {
                    minutes[&name]
                };
                running.push(Reverse((now + time, name)));
            }
        }
        let Some(Reverse((at, name))) = running.pop() else {
            return now;
        };
        now = at;
        let outcome = if skipped.contains(&name) {
            UnitOutcome::Skipped
        } else {
            UnitOutcome::Succeeded
        };
        commands = run.unit_ended(&name, outcome);
    }
}
