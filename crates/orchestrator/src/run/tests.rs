//! Runs that are told what happened, and what they do next.

mod resumed;

use nimbus_core::EnvironmentName;
use proptest::prelude::*;

use super::*;
use crate::graph::{GraphUnit, work_of};
use crate::plan::{PlanSubject, RunPlan};

fn name(text: &str) -> ComponentName {
    text.parse().unwrap()
}

fn graph(units: &[(&str, &[&str])]) -> UnitGraph {
    UnitGraph::new(units.iter().map(|(unit, needs)| GraphUnit {
        name: name(unit),
        priority: 0,
        needs: needs.iter().map(|need| name(need)).collect(),
    }))
    .unwrap()
}

fn diamond() -> UnitGraph {
    graph(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &["a"]),
        ("d", &["b", "c"]),
        ("x", &[]),
    ])
}

fn run(on_failure: OnFailure, parallel: usize) -> Run {
    Run::new(diamond(), RunDirection::Forward, on_failure, parallel)
}

fn start(names: &[&str]) -> Vec<RunCommand> {
    names
        .iter()
        .map(|unit| RunCommand::Start(name(unit)))
        .collect()
}

fn failed() -> UnitOutcome {
    UnitOutcome::Failed {
        message: "no".to_owned(),
        trigger: None,
    }
}

#[test]
fn a_unit_starts_as_soon_as_what_it_needs_is_done() {
    let mut run = run(OnFailure::Hold, 10);
    assert_eq!(run.begin(), start(&["a", "x"]));
    assert_eq!(
        run.unit_ended(&name("a"), UnitOutcome::Succeeded),
        start(&["b", "c"]),
        "x still runs"
    );
    assert_eq!(run.unit_ended(&name("b"), UnitOutcome::Skipped), []);
    assert_eq!(
        run.unit_ended(&name("c"), UnitOutcome::Succeeded),
        start(&["d"])
    );
    assert_eq!(run.unit_ended(&name("x"), UnitOutcome::Succeeded), []);
    assert_eq!(
        run.unit_ended(&name("d"), UnitOutcome::Succeeded),
        [RunCommand::Finish(RunResult::Succeeded)]
    );
}

#[test]
fn no_more_than_the_limit_run_at_once() {
    let mut run = run(OnFailure::Hold, 1);
    assert_eq!(run.begin(), start(&["a"]));
    assert_eq!(
        run.unit_ended(&name("a"), UnitOutcome::Succeeded),
        start(&["b"])
    );
}

#[test]
fn destroying_walks_the_other_way() {
    let mut run = Run::new(diamond(), RunDirection::Reverse, OnFailure::Hold, 10);
    assert_eq!(run.begin(), start(&["d", "x"]));
    assert_eq!(
        run.unit_ended(&name("d"), UnitOutcome::Succeeded),
        start(&["b", "c"])
    );
}

#[test]
fn after_a_failure_running_units_finish_and_then_all_changed_ones_are_rolled_back() {
    let mut run = run(OnFailure::Rollback, 10);
    run.begin();
    run.unit_ended(&name("a"), UnitOutcome::Succeeded);
    assert_eq!(run.unit_ended(&name("b"), failed()), []);
    assert_eq!(
        run.units()["d"],
        UnitState::NotStarted {
            because: "b failed".to_owned()
        }
    );
    run.unit_ended(&name("x"), UnitOutcome::Skipped);
    let mut undone = run.unit_ended(&name("c"), UnitOutcome::Succeeded);
    let mut order = Vec::new();
    while let [RunCommand::RollBack(name)] = undone.as_slice() {
        order.push(name.clone());
        undone = run.rolled_back(&order[order.len() - 1], Ok(()));
    }
    assert_eq!(order, ["c", "b", "a"], "x changed nothing");
    assert_eq!(undone, [RunCommand::Finish(RunResult::RolledBack)]);
}

#[test]
fn a_rollback_that_fails_stops_at_what_it_needs() {
    let mut run = run(OnFailure::Rollback, 10);
    run.begin();
    run.unit_ended(&name("x"), UnitOutcome::Succeeded);
    run.unit_ended(&name("a"), UnitOutcome::Succeeded);
    run.unit_ended(&name("c"), UnitOutcome::Succeeded);
    assert_eq!(
        run.unit_ended(&name("b"), failed()),
        [RunCommand::RollBack(name("b"))]
    );
    assert_eq!(
        run.rolled_back(&name("b"), Err("gone".to_owned())),
        [RunCommand::RollBack(name("c"))]
    );
    let next = run.rolled_back(&name("c"), Ok(()));
    assert_eq!(
        next,
        [RunCommand::RollBack(name("x"))],
        "a is still used by b"
    );
    assert_eq!(
        run.rolled_back(&name("x"), Ok(())),
        [RunCommand::Finish(RunResult::NeedsAttention)]
    );
}

#[test]
fn continue_runs_what_does_not_depend_on_the_failure() {
    let mut run = run(OnFailure::Continue, 1);
    run.begin();
    run.unit_ended(&name("a"), UnitOutcome::Succeeded);
    assert_eq!(run.unit_ended(&name("b"), failed()), start(&["c"]));
    assert_eq!(
        run.unit_ended(&name("c"), UnitOutcome::Succeeded),
        start(&["x"])
    );
    assert_eq!(
        run.unit_ended(&name("x"), UnitOutcome::Succeeded),
        [RunCommand::Finish(RunResult::Failed)]
    );
}

#[test]
fn hold_stops_and_undoes_nothing() {
    let mut run = run(OnFailure::Hold, 1);
    run.begin();
    assert_eq!(
        run.unit_ended(&name("a"), failed()),
        [RunCommand::Finish(RunResult::Failed)]
    );
}

#[test]
fn cancelling_starts_nothing_more_and_undoes_nothing() {
    let mut run = run(OnFailure::Rollback, 1);
    run.begin();
    assert_eq!(run.cancel(), []);
    assert_eq!(
        run.unit_ended(&name("a"), UnitOutcome::Succeeded),
        [RunCommand::Finish(RunResult::Interrupted)]
    );
}

#[test]
fn a_report_that_comes_twice_counts_once() {
    let mut run = run(OnFailure::Hold, 10);
    run.begin();
    run.unit_ended(&name("a"), UnitOutcome::Succeeded);
    assert_eq!(run.unit_ended(&name("a"), failed()), []);
    assert_eq!(run.units()["a"], UnitState::Succeeded);
    assert_eq!(run.unit_ended(&name("nobody"), failed()), []);
}

#[test]
fn an_empty_run_is_over_at_once() {
    let mut run = Run::new(graph(&[]), RunDirection::Forward, OnFailure::Rollback, 4);
    assert_eq!(run.begin(), [RunCommand::Finish(RunResult::Succeeded)]);
}

fn triggered(trigger: RollbackTrigger) -> UnitOutcome {
    UnitOutcome::Failed {
        message: "no".to_owned(),
        trigger: Some(trigger),
    }
}

#[test]
fn each_trigger_undoes_the_run_and_other_failures_hold_it() {
    let triggers = [
        RollbackTrigger::Creation,
        RollbackTrigger::ServiceLimit,
        RollbackTrigger::StateCorruption,
    ];
    for trigger in triggers {
        let mut run = run(OnFailure::Automatic, 1);
        run.begin();
        assert_eq!(
            run.unit_ended(&name("a"), triggered(trigger)),
            [RunCommand::RollBack(name("a"))]
        );
        assert_eq!(run.trigger(), Some(trigger));
    }
    let mut held = run(OnFailure::Automatic, 1);
    held.begin();
    assert_eq!(
        held.unit_ended(&name("a"), failed()),
        [RunCommand::Finish(RunResult::Failed)]
    );
    let mut told = run(OnFailure::Hold, 1);
    told.begin();
    assert_eq!(
        told.unit_ended(&name("a"), triggered(RollbackTrigger::Creation)),
        [RunCommand::Finish(RunResult::Failed)],
        "whoever says hold is obeyed"
    );
}

#[test]
fn a_run_that_takes_too_long_starts_nothing_more_and_is_undone() {
    let mut run = run(OnFailure::Automatic, 1);
    run.begin();
    assert_eq!(run.overtime(), [], "what runs is finished");
    assert_eq!(
        run.unit_ended(&name("a"), UnitOutcome::Succeeded),
        [RunCommand::RollBack(name("a"))]
    );
    assert_eq!(
        run.rolled_back(&name("a"), Ok(())),
        [RunCommand::Finish(RunResult::RolledBack)]
    );
    assert_eq!(run.trigger(), Some(RollbackTrigger::Overtime));
}

#[test]
fn a_run_that_is_late_with_its_last_unit_is_not_undone() {
    let mut run = Run::new(
        graph(&[("a", &[])]),
        RunDirection::Forward,
        OnFailure::Automatic,
        1,
    );
    run.begin();
    run.overtime();
    assert_eq!(
        run.unit_ended(&name("a"), UnitOutcome::Succeeded),
        [RunCommand::Finish(RunResult::Succeeded)],
        "everything is there; undoing it would help nobody"
    );
}

proptest! {
    /// Random graphs, outcomes and cancellations: every run ends, no unit starts twice or too
    /// early, and the limit holds.
    #[test]
    fn every_run_ends_and_no_unit_starts_early_or_twice(
        edges in proptest::collection::vec((0..12_usize, 0..12_usize), 0..30),
        outcomes in proptest::collection::vec(0..8_u8, 64),
        parallel in 1..5_usize,
        policy in 0..4_u8,
    ) {
        let names: Vec<ComponentName> = (0..12).map(|i| name(&format!("u{i:02}"))).collect();
        let mut needs = vec![BTreeSet::new(); 12];
        for (a, b) in edges {
            if a != b {
                needs[a.max(b)].insert(names[a.min(b)].clone());
            }
        }
        let graph = UnitGraph::new(names.iter().zip(&needs).map(|(name, needs)| GraphUnit {
            name: name.clone(), priority: 0, needs: needs.clone(),
        })).unwrap();
        let on_failure = [OnFailure::Rollback, OnFailure::Hold, OnFailure::Continue, OnFailure::Automatic][usize::from(policy)];
        let mut run = Run::new(graph, RunDirection::Forward, on_failure, parallel);
        let mut open = run.begin();
        let mut started = BTreeSet::new();
        let mut done = BTreeSet::new();
        let mut running: Vec<ComponentName> = Vec::new();
        for outcome in outcomes.iter().cycle().take(500) {
            for command in std::mem::take(&mut open) {
                match command {
                    RunCommand::Start(name) => {
                        prop_assert!(started.insert(name.clone()), "{} twice", name);
                        let at = names.iter().position(|n| *n == name).unwrap();
                        prop_assert!(needs[at].iter().all(|need| done.contains(need)));
                        running.push(name);
                        prop_assert!(running.len() <= parallel);
                    }
                    RunCommand::RollBack(name) => {
                        prop_assert!(running.is_empty());
                        let result = if *outcome == 0 { Err("no".to_owned()) } else { Ok(()) };
                        open.extend(run.rolled_back(&name, result));
                    }
                    RunCommand::Check => prop_assert!(false, "nobody asked for checks"),
                    RunCommand::Finish(_) => prop_assert!(running.is_empty()),
                }
            }
            if !open.is_empty() {
                continue;
            }
            if running.is_empty() {
                break;
            }
            let name = running.remove(0);
            open = match outcome {
                0 => run.unit_ended(&name, failed()),
                1 => { done.insert(name.clone()); run.unit_ended(&name, UnitOutcome::Skipped) }
                2 if started.len() > 6 => { running.insert(0, name); run.cancel() }
                _ => { done.insert(name.clone()); run.unit_ended(&name, UnitOutcome::Succeeded) }
            };
        }
        prop_assert!(run.result().is_some(), "{:?}", run.units());
    }
}

/// Every unit needs three others of the rows before it.
fn wide(size: usize) -> UnitGraph {
    let name = |at: usize| name(&format!("u{at:05}"));
    let needs = |at: usize| {
        [20, 140, 620]
            .map(|back| at.checked_sub(back))
            .into_iter()
            .flatten()
    };
    let unit = |at: usize| GraphUnit {
        name: name(at),
        priority: 0,
        needs: needs(at).map(name).collect(),
    };
    UnitGraph::new((0..size).map(unit)).unwrap()
}

/// Counts what is looked at, so that a slow machine cannot make it fail and a fast one cannot hide
/// a loop over everything.
#[test]
fn the_work_of_planning_and_running_grows_with_the_graph_and_no_faster() {
    let none = BTreeMap::new();
    let subject = PlanSubject::Rehearsal("D1".parse().unwrap());
    let planned = |size| {
        work_of(|| {
            let graph = wide(size);
            let plan = RunPlan::new(
                subject.clone(),
                EnvironmentName::DEV,
                &graph,
                &none,
                &BTreeMap::new(),
            );
            assert_eq!(plan.units().count(), size);
        })
    };
    let ran = |size, parallel| {
        let mut run = Run::new(wide(size), RunDirection::Forward, OnFailure::Hold, parallel);
        work_of(|| {
            let mut open = run.begin();
            while let Some(command) = open.pop() {
                if let RunCommand::Start(name) = command {
                    open.extend(run.unit_ended(&name, UnitOutcome::Succeeded));
                }
            }
            assert_eq!(run.result(), Some(RunResult::Succeeded));
        })
    };
    let per_unit = |work: usize, size: usize| work as f64 / size as f64;
    for (small, large) in [
        (planned(1_000), planned(10_000)),
        (ran(1_000, 1), ran(10_000, 1)),
        (ran(1_000, 64), ran(10_000, 64)),
    ] {
        let (small, large) = (per_unit(small, 1_000), per_unit(large, 10_000));
        // The first rows have fewer needs, so a larger graph has a few more edges for each unit.
        assert!(
            large < small * 1.5,
            "{small} for each of 1,000, {large} for each of 10,000"
        );
    }
}

fn deployed(on_failure: OnFailure) -> Run {
    let graph = graph(&[("a", &[]), ("b", &["a"])]);
    let mut run = Run::new(graph, RunDirection::Forward, on_failure, 4).checking(true);
    run.begin();
    run.unit_ended(&name("a"), UnitOutcome::Succeeded);
    assert_eq!(
        run.unit_ended(&name("b"), UnitOutcome::Skipped),
        [RunCommand::Check],
        "checks come after the last unit"
    );
    run
}

#[test]
fn a_run_counts_as_successful_when_its_checks_have_passed() {
    let mut run = deployed(OnFailure::Automatic);
    assert_eq!(run.result(), None);
    assert_eq!(
        run.checked(true),
        [RunCommand::Finish(RunResult::Succeeded)]
    );
    assert_eq!(
        run.checked(false),
        [],
        "a report that arrives twice counts once"
    );
}

#[test]
fn failed_checks_undo_a_run_only_when_it_was_told_so() {
    for held in [OnFailure::Automatic, OnFailure::Hold, OnFailure::Continue] {
        let failed = deployed(held).checked(false);
        assert_eq!(failed, [RunCommand::Finish(RunResult::Failed)]);
    }
    let mut run = deployed(OnFailure::Rollback);
    assert_eq!(run.checked(false), [RunCommand::RollBack(name("a"))]);
    assert_eq!(
        run.rolled_back(&name("a"), Ok(())),
        [RunCommand::Finish(RunResult::RolledBack)]
    );
}

#[test]
fn a_run_that_failed_or_was_stopped_is_not_checked() {
    let graph = graph(&[("a", &[]), ("b", &["a"])]);
    let mut run = Run::new(graph, RunDirection::Forward, OnFailure::Hold, 4).checking(true);
    run.begin();
    assert_eq!(
        run.unit_ended(&name("a"), failed()),
        [RunCommand::Finish(RunResult::Failed)]
    );
    let mut run = deployed(OnFailure::Rollback);
    assert_eq!(run.cancel(), []);
    assert_eq!(
        run.checked(false),
        [RunCommand::Finish(RunResult::Interrupted)]
    );
}
