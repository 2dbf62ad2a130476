//! Returning to a version: it names what there really was, and what did not come back as it was is said.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use nimbus_core::{ComponentName, UnitName};
use nimbus_orchestrator::{OnFailure, RunAction, RunResult, UnitState};
use nimbus_runs::FinishedRun;
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};

use crate::shared::{DEV, request, start, world};

fn component(name: &str) -> ComponentName {
    name.parse().unwrap()
}

async fn deploy(world: &RecordedWorld) -> FinishedRun {
    let request = request(RunAction::Deploy, OnFailure::Hold, None);
    start(world, request, &Crash::never()).await.unwrap()
}

async fn rollback(world: &RecordedWorld, version: Option<u32>) -> FinishedRun {
    let request = request(RunAction::Rollback, OnFailure::Hold, version);
    start(world, request, &Crash::never()).await.unwrap()
}

fn resize(world: &RecordedWorld, from: u32, to: u32) {
    let (from, to) = (format!("size: {from}"), format!("size: {to}"));
    world.change(|contents| contents.manifest = contents.manifest.replace(&from, &to));
}

fn fail(world: &RecordedWorld, name: &str, deploy: bool) {
    let fault = UnitFault {
        deploy,
        ..UnitFault::default()
    };
    world.change(|contents| contents.faults.insert(component(name), fault));
}

/// What a unit's second resource was made from.
fn made(world: &RecordedWorld, name: &str) -> String {
    let unit = UnitName::new(&"D1".parse().unwrap(), &component(name), DEV);
    world.read(|contents| contents.units[&unit].resources["second"].clone())
}

/// Whether `network` is part of the run that makes the version or not: what a failed run made of it is
/// what the version has.
#[tokio::test]
async fn a_version_names_what_a_failed_run_made_and_the_next_left_alone() {
    for partial in [false, true] {
        let world = world();
        deploy(&world).await;
        resize(&world, 1, 2);
        fail(&world, "app", true);
        assert_eq!(deploy(&world).await.result, RunResult::Failed);
        let second = made(&world, "network");
        assert!(second.contains("size=2"), "{second}");

        fail(&world, "app", false);
        let mut mended = request(RunAction::Deploy, OnFailure::Hold, None);
        if partial {
            mended.choices.components = Some(vec![component("app")]);
        }
        let mended = start(&world, mended, &Crash::never()).await.unwrap();
        assert_eq!(
            (mended.result, mended.version),
            (RunResult::Succeeded, Some(2))
        );
        if !partial {
            assert_eq!(mended.units["network"].state, UnitState::Skipped);
            assert_eq!(deploy(&world).await.version, None);
        }
        let app = made(&world, "app");

        resize(&world, 2, 3);
        assert_eq!(deploy(&world).await.version, Some(3));
        assert!(made(&world, "network").contains("size=3"));
        let back = rollback(&world, Some(2)).await;
        assert_eq!(back.result, RunResult::Succeeded);
        assert_eq!(made(&world, "network"), second);
        assert_eq!(made(&world, "app"), app);

        // What it is remembered as is what it is: with the manifest of then nothing runs.
        resize(&world, 3, 2);
        let again = deploy(&world).await;
        assert!(again.version.is_none() || partial, "{:?}", again.units);
        assert_eq!(rollback(&world, Some(1)).await.result, RunResult::Succeeded);
        assert!(made(&world, "network").contains("size=1"));
    }
}

/// The units that are run or restored, in order.
fn order(world: &RecordedWorld) -> Vec<String> {
    let name = |job: &nimbus_runs::UnitJob| job.unit.component.to_string();
    world.change(|contents| contents.jobs.drain(..).map(|job| name(&job)).collect())
}

/// A unit whose network came back under another id does not hold, nor does what builds on it: nobody says that
/// the environment is where it was, and the next deploy runs them all.
#[tokio::test]
async fn what_came_back_with_values_that_do_not_hold_needs_attention_and_runs_again() {
    let world = world();
    deploy(&world).await;
    resize(&world, 1, 2);
    deploy(&world).await;
    let stale = UnitFault {
        stale: true,
        ..UnitFault::default()
    };
    world.change(|contents| contents.faults.insert(component("network"), stale));
    order(&world);

    let back = rollback(&world, Some(1)).await;
    assert_eq!(
        (back.result, back.version),
        (RunResult::NeedsAttention, None)
    );
    assert_eq!(
        order(&world),
        ["network", "app", "edge"],
        "what is needed comes first"
    );
    let told = "network: second names what first was; app, edge built on it";
    assert_eq!(back.attention, [told]);
    let events = world.read(|contents| contents.runs[&back.record.run].1.clone());
    let told = events.iter().any(|event| match event {
        nimbus_orchestrator::RunEvent::Unit {
            unit, attention, ..
        } => *attention && unit.as_str() == "network",
        _ => false,
    });
    assert!(told, "{events:?}");

    // With the manifest of then nothing differs but what does not hold.
    resize(&world, 2, 1);
    let again = deploy(&world).await;
    assert_eq!(again.result, RunResult::Succeeded);
    for name in ["network", "app", "edge"] {
        let unit = &again.units[name];
        assert_eq!(unit.state, UnitState::Succeeded, "{name}");
        assert_eq!(unit.reason.as_deref(), Some("it has drifted"), "{name}");
    }
    assert_eq!(again.units["extra"].state, UnitState::Skipped);
    assert_eq!(deploy(&world).await.version, None, "it holds again");
}

/// The same of a run that undoes itself: all is undone, and it is said that it does not hold.
#[tokio::test]
async fn an_undo_that_leaves_values_that_do_not_hold_says_so() {
    let world = world();
    deploy(&world).await;
    resize(&world, 1, 2);
    let stale = UnitFault {
        stale: true,
        ..UnitFault::default()
    };
    world.change(|contents| contents.faults.insert(component("network"), stale));
    fail(&world, "app", true);
    let undone = request(RunAction::Deploy, OnFailure::Rollback, None);
    let undone = start(&world, undone, &Crash::never()).await.unwrap();
    assert_eq!(undone.result, RunResult::NeedsAttention);
    assert_eq!(undone.units["network"].state, UnitState::RolledBack);
    assert_eq!(undone.attention.len(), 1, "{:?}", undone.attention);

    fail(&world, "app", false);
    resize(&world, 2, 1);
    let again = deploy(&world).await;
    for name in ["network", "app", "edge"] {
        assert_eq!(again.units[name].state, UnitState::Succeeded, "{name}");
    }
}
