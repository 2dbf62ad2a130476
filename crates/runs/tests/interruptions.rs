//! Interrupted at any write and gone on with, a run ends as if it had never been interrupted: over
//! every policy, every failure and every crash point.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_orchestrator::{
    CheckStatus, OnFailure, RollbackTrigger, RunAction, RunId, RunResult, progress_of,
};
use nimbus_runs::{EventBus, ResumeRequest, RunRequest, resume};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use tokio_util::sync::CancellationToken;

use crate::shared::{DEV, Ending, ending, go_on, request, start, world, world_with_checks};

/// Every write, or every fourth unless `NIMBUS_TEST_LONG` is set. Which ones differs from case to case,
/// so that even the short form crashes everywhere.
fn crash_points(writes: usize, what: &str) -> impl Iterator<Item = usize> {
    let every = if std::env::var_os("NIMBUS_TEST_LONG").is_some() {
        1
    } else {
        4
    };
    let first = what.bytes().map(usize::from).sum::<usize>() % every;
    (first..writes).step_by(every)
}

/// Interrupts a run at every write, goes on with it, and compares the ends.
async fn interrupted_everywhere(start_from: &RecordedWorld, request: &RunRequest, what: &str) {
    interrupted(start_from, request, what, false).await;
}

/// With `again`, whoever goes on is interrupted too, at every write of the second attempt.
async fn interrupted(start_from: &RecordedWorld, request: &RunRequest, what: &str, again: bool) {
    let whole = start_from.fork();
    let counted = Crash::never();
    start(&whole, request.clone(), &counted).await.unwrap();
    let expected = ending(&whole);
    let before = start_from.contents().runs.len();
    for number in crash_points(counted.writes(), what) {
        let world = start_from.fork();
        let crash = Crash::before_write(number);
        if start(&world, request.clone(), &crash).await.is_some() {
            // The writes after the end of the run are not the run's.
            continue;
        }
        let runs = world.contents().runs;
        let finished = if runs.len() == before {
            start(&world, request.clone(), &Crash::never()).await
        } else {
            let (run, (_, events)) = runs.last_key_value().unwrap();
            if progress_of(events).result.is_some() {
                continue;
            }
            if again {
                interrupted_again(&world, *run, &expected, &format!("{what}, {number}")).await;
            }
            go_on(&world, *run, &Crash::never()).await
        };
        assert!(finished.is_some());
        assert_eq!(
            ending(&world),
            expected,
            "{what}, crash before write {number}"
        );
    }
}

async fn interrupted_again(left: &RecordedWorld, run: RunId, expected: &Ending, what: &str) {
    let counted = Crash::never();
    go_on(&left.fork(), run, &counted).await.unwrap();
    for number in crash_points(counted.writes(), what) {
        let world = left.fork();
        let finished = go_on(&world, run, &Crash::before_write(number)).await;
        let events = world.contents().runs[&run].1.clone();
        if finished.is_some() || progress_of(&events).result.is_some() {
            continue;
        }
        go_on(&world, run, &Crash::never()).await.unwrap();
        assert_eq!(ending(&world), *expected, "{what}, then before {number}");
    }
}

const POLICIES: [OnFailure; 4] = [
    OnFailure::Automatic,
    OnFailure::Rollback,
    OnFailure::Hold,
    OnFailure::Continue,
];

fn faults() -> Vec<(String, BTreeMap<&'static str, UnitFault>)> {
    let mut all = vec![("nothing fails".to_owned(), BTreeMap::new())];
    for name in ["network", "app", "edge", "extra"] {
        for trigger in [
            None,
            Some(RollbackTrigger::Creation),
            Some(RollbackTrigger::ServiceLimit),
            Some(RollbackTrigger::StateCorruption),
        ] {
            for stuck in [None, Some("network"), Some("app")] {
                let usual = matches!(trigger, None | Some(RollbackTrigger::Creation));
                if !usual && (stuck.is_some() || name != "app") {
                    // Which trigger it was changes nothing but what is told.
                    continue;
                }
                let mut faults = BTreeMap::new();
                if let Some(stuck) = stuck {
                    let fault = UnitFault {
                        rollback: true,
                        ..UnitFault::default()
                    };
                    faults.insert(stuck, fault);
                }
                let fault = faults.entry(name).or_default();
                fault.deploy = true;
                fault.trigger = trigger;
                all.push((format!("{name} fails {trigger:?}, stuck {stuck:?}"), faults));
            }
        }
    }
    all
}

fn with_faults(world: &RecordedWorld, faults: &BTreeMap<&'static str, UnitFault>) {
    world.change(|contents| {
        for (name, fault) in faults {
            contents.faults.insert(name.parse().unwrap(), *fault);
        }
    });
}

#[tokio::test]
async fn a_first_deploy_ends_the_same_wherever_it_was_interrupted() {
    for policy in POLICIES {
        for (what, faults) in faults() {
            let world = world();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            interrupted_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
        }
    }
}

/// Whoever goes on looks at what the first attempt deployed as well, and undoes it when a check says so.
#[tokio::test]
async fn checks_say_the_same_wherever_a_run_was_interrupted() {
    for (checks, passes) in [
        ("{smoke: {command: 'true'}}", true),
        ("{smoke: {command: 'false'}}", false),
        ("{smoke: {command: 'false', needed: false}}", true),
    ] {
        for policy in POLICIES {
            for first in [true, false] {
                let world = match first {
                    true => world_with_checks(checks),
                    false => changed_since_deployed(world_with_checks(checks)).await,
                };
                let request = request(RunAction::Deploy, policy, None);
                let whole = world.fork();
                let finished = start(&whole, request.clone(), &Crash::never()).await;
                let what = format!("{policy:?}: {checks}, for the first time {first}");
                let succeeded = finished.unwrap().result == RunResult::Succeeded;
                assert_eq!(succeeded, passes, "{what}");
                let recorded = ending(&whole).checks;
                assert_eq!(recorded["resources"], CheckStatus::Passed, "{what}");
                // Whoever goes on is interrupted as well where most is at stake.
                let again = first && policy == OnFailure::Rollback && !passes;
                interrupted(&world, &request, &what, again).await;
            }
        }
    }
}

/// Deployed once, with another program since.
async fn deployed_and_changed() -> RecordedWorld {
    changed_since_deployed(world()).await
}

async fn changed_since_deployed(world: RecordedWorld) -> RecordedWorld {
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, first, &Crash::never()).await.unwrap();
    world.change(|contents| {
        for code in contents.programs.values_mut() {
            *code = "v2".to_owned();
        }
    });
    world
}

#[tokio::test]
async fn an_update_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        for (what, faults) in faults() {
            let world = deployed.fork();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            interrupted_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
        }
    }
}

#[tokio::test]
async fn a_destroy_and_a_rollback_end_the_same_wherever_they_were_interrupted() {
    let world = deployed_and_changed().await;
    let second = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, second, &Crash::never()).await.unwrap();
    let destroy = request(RunAction::Destroy, OnFailure::Hold, None);
    interrupted_everywhere(&world, &destroy, "destroy").await;
    let rollback = request(RunAction::Rollback, OnFailure::Hold, Some(1));
    interrupted_everywhere(&world, &rollback, "rollback").await;
}

/// What a failed run left is undone by a rollback that names no version: what succeeded in it, what is half
/// done, and what it made for the first time. And that ends the same wherever it was interrupted.
#[tokio::test]
async fn a_rollback_undoes_what_failed_runs_left_wherever_it_was_interrupted() {
    for policy in [OnFailure::Hold, OnFailure::Continue] {
        for name in ["network", "app", "edge", "extra"] {
            let fault = UnitFault {
                deploy: true,
                ..UnitFault::default()
            };
            for first in [true, false] {
                let world = match first {
                    true => world(),
                    false => deployed_and_changed().await,
                };
                let before = ending_resources(&world);
                with_faults(&world, &BTreeMap::from([(name, fault)]));
                for _ in 0..2 {
                    let failing = request(RunAction::Deploy, policy, None);
                    let failed = start(&world, failing, &Crash::never()).await.unwrap();
                    assert_eq!(failed.result, RunResult::Failed);
                }
                let what = format!("{policy:?}: {name} failed twice, for the first time {first}");
                let rollback = request(RunAction::Rollback, OnFailure::Hold, None);
                let undone = world.fork();
                let finished = start(&undone, rollback.clone(), &Crash::never()).await;
                let finished = finished.unwrap();
                assert_eq!(finished.result, RunResult::Succeeded, "{what}");
                let decided = finished.record.request.choices.to_version;
                assert_eq!(decided, Some(u32::from(!first)), "{what}");
                assert_eq!(ending_resources(&undone), before, "{what}");
                interrupted_everywhere(&world, &rollback, &what).await;
            }
        }
    }
}

fn ending_resources(world: &RecordedWorld) -> BTreeMap<String, BTreeMap<String, String>> {
    let contents = world.contents();
    let units = contents.units.iter();
    let there = units.filter(|(_, unit)| !unit.resources.is_empty());
    there
        .map(|(name, unit)| (name.to_string(), unit.resources.clone()))
        .collect()
}

#[tokio::test]
async fn whoever_goes_on_may_be_interrupted_too() {
    let deployed = deployed_and_changed().await;
    for policy in [OnFailure::Automatic, OnFailure::Rollback, OnFailure::Hold] {
        for (name, stuck) in [("app", None), ("edge", Some("network"))] {
            let mut faults = BTreeMap::from([(
                name,
                UnitFault {
                    deploy: true,
                    trigger: Some(RollbackTrigger::ServiceLimit),
                    ..UnitFault::default()
                },
            )]);
            if let Some(stuck) = stuck {
                let fault: &mut UnitFault = faults.entry(stuck).or_default();
                fault.rollback = true;
            }
            let world = deployed.fork();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            let what = format!("{policy:?}: {name} fails, stuck {stuck:?}");
            interrupted(&world, &request, &what, true).await;
        }
    }
}

#[tokio::test]
async fn a_destroy_that_fails_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for name in ["network", "app", "edge", "extra"] {
        let world = deployed.fork();
        let fault = UnitFault {
            destroy: true,
            ..UnitFault::default()
        };
        with_faults(&world, &BTreeMap::from([(name, fault)]));
        let destroy = request(RunAction::Destroy, OnFailure::Hold, None);
        interrupted(&world, &destroy, &format!("{name} stays"), true).await;
    }
}

/// Time stands still but for who waits for it.
#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        for name in ["network", "app", "edge", "extra"] {
            let world = deployed.fork();
            let fault = UnitFault {
                takes: Some(std::time::Duration::from_secs(1_000_000)),
                ..UnitFault::default()
            };
            with_faults(&world, &BTreeMap::from([(name, fault)]));
            let request = request(RunAction::Deploy, policy, None);
            let what = format!("{policy:?}: {name} takes too long");
            interrupted_everywhere(&world, &request, &what).await;
        }
    }
}

/// With several units at once it is a matter of time what has begun when one of them fails. How the run
/// ends is not, and neither is what is there after one that succeeded or was undone.
#[tokio::test]
async fn units_at_once_end_the_same_wherever_they_were_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        let alone = faults().into_iter().filter(|(_, faults)| faults.len() < 2);
        for (what, faults) in alone {
            let start_from = deployed.fork();
            with_faults(&start_from, &faults);
            let mut request = request(RunAction::Deploy, policy, None);
            request.choices.parallel = 3;
            let whole = start_from.fork();
            let counted = Crash::never();
            start(&whole, request.clone(), &counted).await.unwrap();
            let expected = ending(&whole);
            for number in crash_points(counted.writes(), &what) {
                let world = start_from.fork();
                let crash = Crash::before_write(number);
                if start(&world, request.clone(), &crash).await.is_some() {
                    continue;
                }
                let (run, (_, events)) = world.contents().runs.pop_last().unwrap();
                if run != RunId(2) || progress_of(&events).result.is_some() {
                    continue;
                }
                go_on(&world, run, &Crash::never()).await.unwrap();
                let ended = ending(&world);
                let what = format!("{policy:?}: {what}, crash before write {number}");
                assert_eq!(ended.result, expected.result, "{what}");
                assert_eq!(ended.trigger, expected.trigger, "{what}");
                if matches!(
                    ended.result,
                    Some(RunResult::Succeeded | RunResult::RolledBack)
                ) {
                    assert_eq!(ended.resources, expected.resources, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_manifest_that_moved_is_refused_and_says_what_moved() {
    let world = deployed_and_changed().await;
    let crash = Crash::before_write(20);
    let asked = request(RunAction::Deploy, OnFailure::Hold, None);
    assert!(start(&world, asked, &crash).await.is_none());
    let run = *world.contents().runs.last_key_value().unwrap().0;
    let edited = |from: &str, to: &str| {
        let edited = world.fork();
        edited.change(|contents| contents.manifest = contents.manifest.replace(from, to));
        edited
    };
    let resumption = ResumeRequest {
        run,
        forget_creates: false,
    };
    let refusal = async |world: RecordedWorld| {
        let ports = Arc::new(world.ports(&Crash::never()));
        resume(ports, resumption, "test", None).await.err()
    };
    for (from, to, said) in [
        ("size: 1", "size: 2", "configuration of network is another"),
        ("eu-west-1", "eu-west-2", "environment dev is another"),
        (
            "extra: {enabled: true}",
            "extra: {enabled: false}",
            "stack extra is gone",
        ),
    ] {
        let error = refusal(edited(from, to)).await.expect(said);
        assert_eq!(error.code(), nimbus_core::ErrorCode::PLAN_MOVED);
        assert!(error.message().contains(said), "{error}");
        assert!(error.help().unwrap().contains("nimbus deploy D1"));
    }
    // Nothing of the run was decided by these.
    assert!(
        refusal(edited("organization: o", "organization: other"))
            .await
            .is_none()
    );
    assert!(refusal(world.fork()).await.is_none());
}

#[tokio::test]
async fn a_sealed_run_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        let sealed = sealed_request(&deployed, policy).await;
        for (what, faults) in faults() {
            let world = deployed.fork();
            with_faults(&world, &faults);
            interrupted_everywhere(&world, &sealed, &format!("sealed, {policy:?}: {what}")).await;
        }
    }
}

/// A deploy of what a preview showed and nothing else.
async fn sealed_request(world: &RecordedWorld, policy: OnFailure) -> RunRequest {
    let bus = Arc::new(EventBus::default());
    let ports = Arc::new(world.ports(&Crash::never()));
    let preview = nimbus_runs::PreviewRequest {
        environment: DEV,
        rehearsal: false,
        components: None,
        parallel: 1,
    };
    let stop = CancellationToken::new();
    let previewed = nimbus_runs::preview(ports, &preview, bus, stop, |_| {}).await;
    let mut sealed = request(RunAction::Deploy, policy, None);
    sealed.choices.sealed_plan = previewed.unwrap().sealed;
    assert!(sealed.choices.sealed_plan.is_some());
    sealed
}

#[tokio::test]
async fn a_run_that_goes_on_is_held_to_its_sealed_plan() {
    let world = deployed_and_changed().await;
    let sealed = sealed_request(&world, OnFailure::Hold).await;
    let counted = Crash::never();
    start(&world.fork(), sealed.clone(), &counted)
        .await
        .unwrap();
    let mut refused = 0;
    for number in 0..counted.writes() {
        let world = world.fork();
        let crash = Crash::before_write(number);
        let finished = start(&world, sealed.clone(), &crash).await;
        let run = world.contents().runs.last_key_value().map(|(run, _)| *run);
        let (None, Some(run)) = (finished, run.filter(|run| *run == RunId(2))) else {
            continue;
        };
        // Somebody edits a program meanwhile.
        world.change(|contents| {
            contents
                .programs
                .insert("edge".parse().unwrap(), "v3".to_owned());
        });
        let ports = Arc::new(world.ports(&Crash::never()));
        let resumption = ResumeRequest {
            run,
            forget_creates: false,
        };
        let done = progress_of(&world.contents().runs[&run].1);
        let edge_done = done
            .earlier
            .units
            .iter()
            .any(|(name, state)| *name == "edge" && state.is_done());
        let planned = resume(ports, resumption, "test", None).await;
        let over = done.result.is_some();
        assert_eq!(planned.is_err(), !edge_done || over, "write {number}");
        refused += usize::from(!edge_done && !over);
    }
    assert!(refused > 10, "{refused}");
}
