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
use nimbus_core::{ComponentName, EnvironmentName};
use nimbus_orchestrator::{
    GraphUnit, OnFailure, PlanSubject, Run, RunCommand, RunDirection, RunPlan, RunReason,
    RunResult, UnitGraph, UnitOutcome, UnitState,
};
use nimbus_runs::scheduler::{RunLimits, RunListener, UnitWorker, execute};

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
    let all: BTreeSet<ComponentName> = minutes.keys().cloned().collect();
    let one = BTreeSet::from(["monitoring".parse().unwrap()]);
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
    println!(
        "{{\"figure\":\"unheard_spans\",\"thousand_ms\":{:.6}}}",
        unheard_spans()
    );
}

/// Milliseconds for a thousand spans of a trace, with the subscriber of the command and nobody who
/// listens to it.
fn unheard_spans() -> f64 {
    const THOUSANDS: u32 = 1_000;
    let options = nimbus_telemetry::TelemetryOptions {
        level: tracing::level_filters::LevelFilter::WARN,
        format: nimbus_telemetry::LogLineFormat::Json,
        trace_id: nimbus_core::TraceId::random(),
        otlp_endpoint: None,
        writer: Box::new(std::io::sink()),
        trace: None,
    };
    let (subscriber, _guard) = nimbus_telemetry::subscriber(options).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let started = Instant::now();
        for number in 0..THOUSANDS * 1_000 {
            let span = tracing::info_span!(
                target: "nimbus_trace",
                "step",
                op = "create",
                number,
                outcome = tracing::field::Empty
            );
            std::hint::black_box(&span).record("outcome", "ok");
        }
        started.elapsed().as_secs_f64() * 1e3 / f64::from(THOUSANDS)
    })
}

/// Every unit needs three others of the rows before it.
fn wide(size: usize) -> UnitGraph {
    let name = |at: usize| format!("unit-{at:05}").parse::<ComponentName>().unwrap();
    let unit = |at: usize| {
        let needs = [1, 7, 31]
            .iter()
            .filter_map(|back| at.checked_sub(back * 20));
        GraphUnit {
            name: name(at),
            priority: 100,
            needs: needs.map(name).collect(),
        }
    };
    UnitGraph::new((0..size).map(unit)).unwrap()
}

fn plan(graph: &UnitGraph) -> RunPlan {
    let reasons: BTreeMap<ComponentName, RunReason> = graph
        .names()
        .step_by(10)
        .map(|name| (name.to_owned(), RunReason::NeverDeployed))
        .collect();
    RunPlan::new(
        PlanSubject::Directory("D1-acme-shop".to_owned()),
        EnvironmentName::DEV,
        graph,
        &reasons,
        &BTreeMap::new(),
    )
}

/// Drives the state machine over units of which none has changed.
fn no_op(graph: &UnitGraph) -> usize {
    let mut run = Run::new(
        graph.clone(),
        RunDirection::Forward,
        OnFailure::Automatic,
        16,
    );
    let mut open = run.begin();
    let mut ended = 0;
    while let Some(command) = open.pop() {
        if let RunCommand::Start(name) = command {
            ended += 1;
            open.extend(run.unit_ended(&name, UnitOutcome::Skipped));
            drop(run.take_news());
        }
    }
    ended
}

/// The shipped platform in the shape of its default template, with minutes as its templates guess.
fn platform() -> (UnitGraph, BTreeMap<ComponentName, u64>) {
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
    let graph = UnitGraph::new(units.iter().map(|(name, _, needs)| GraphUnit {
        name: name.parse().unwrap(),
        priority: 100,
        needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
    }));
    let minutes = units
        .iter()
        .map(|(name, minutes, _)| (name.parse().unwrap(), *minutes))
        .collect();
    (graph.unwrap(), minutes)
}

/// One graph for each layer: whoever runs them in turn waits for the slowest of each.
fn layers(graph: &UnitGraph) -> Vec<UnitGraph> {
    let unit = |name: &ComponentName| GraphUnit {
        name: name.clone(),
        priority: 100,
        needs: BTreeSet::new(),
    };
    let layer = |names: Vec<&ComponentName>| UnitGraph::new(names.into_iter().map(unit)).unwrap();
    graph.layers().into_iter().map(layer).collect()
}

/// Takes as long as a unit does, and no time for one that has not changed.
struct Sleeper {
    minutes: BTreeMap<ComponentName, u64>,
    changed: BTreeSet<ComponentName>,
}

#[async_trait]
impl UnitWorker for Sleeper {
    async fn start(&self, unit: &ComponentName) -> UnitOutcome {
        if !self.changed.contains(unit) {
            return UnitOutcome::Skipped;
        }
        tokio::time::sleep(MINUTE * self.minutes[unit] as u32).await;
        UnitOutcome::Succeeded
    }

    async fn roll_back(&self, _: &ComponentName) -> Result<(), String> {
        Ok(())
    }
}

struct SilentListener;

#[async_trait]
impl RunListener for SilentListener {
    async fn unit_changed(&self, _: &ComponentName, _: &UnitState) {}
}

/// The real executor over units that sleep.
async fn run(
    graph: &UnitGraph,
    minutes: &BTreeMap<ComponentName, u64>,
    parallel: usize,
    changed: &BTreeSet<ComponentName>,
) {
    let run = Run::new(
        graph.clone(),
        RunDirection::Forward,
        OnFailure::Hold,
        parallel,
    );
    let worker = Sleeper {
        minutes: minutes.clone(),
        changed: changed.clone(),
    };
    let report = execute(
        run,
        Arc::new(worker),
        &SilentListener,
        &RunLimits::default(),
    )
    .await;
    assert_eq!(report.result, RunResult::Succeeded);
}
