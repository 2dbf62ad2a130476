//! Interrupted at any write and gone on with, a run ends as if it had never been interrupted: over
//! every policy, every failure and every crash point.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{ComponentName, ErrorCode};
use nimbus_orchestrator::{
    CheckStatus, OnFailure, RollbackTrigger, RunAction, RunId, RunResult, progress_of,
};
use nimbus_runs::{ResumeRequest, RunSession, resume};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};

use crate::shared::interrupting::{
    LeftRun, POLICIES, changed_since_deployed, deployed_and_changed, drifted, ending_resources,
    every_crash, faults_under, interrupted, interrupted_everywhere, sealed_for, sealed_request,
    with_faults,
};
use crate::shared::{ending, go_on, request, start, world, world_with_checks};

/// What is recorded or deployed, without what engines were asked for.
fn recorded(world: &RecordedWorld) -> String {
    world.read(|contents| {
        format!(
            "{:?} {:?} {:?} {:?} {:?}",
            contents.runs, contents.memories, contents.versions, contents.units, contents.kept
        )
    })
}

/// What the others rest on: a process that ends at a write leaves what there was before it, so a run need not be
/// started anew for every write at which it is interrupted.
#[tokio::test]
async fn a_process_that_ends_at_a_write_leaves_what_there_was_before_it() {
    let start_from = deployed_and_changed().await;
    let fault = UnitFault {
        deploy: true,
        ..UnitFault::default()
    };
    with_faults(&start_from, &BTreeMap::from([("edge", fault)]));
    let request = request(RunAction::Deploy, OnFailure::Rollback, None);
    let (worlds, _) = every_crash(&start_from, &request).await;
    let mut ended = 0;
    for (number, kept) in worlds.iter().enumerate() {
        let world = start_from.fork();
        let crash = Crash::before_write(number);
        if start(&world, request.clone(), &crash).await.is_none() {
            ended += 1;
            assert_eq!(recorded(&world), recorded(kept), "write {number}");
        }
    }
    assert!(ended > 20, "{ended} of {} writes", worlds.len());
}

#[tokio::test]
async fn a_first_deploy_ends_the_same_wherever_it_was_interrupted() {
    for policy in POLICIES {
        for (what, faults) in faults_under(policy) {
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

#[tokio::test]
async fn an_update_ends_the_same_wherever_it_was_interrupted() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        for (what, faults) in faults_under(policy) {
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
        let alone = faults_under(policy).into_iter();
        for (what, faults) in alone.filter(|(_, faults)| faults.len() < 2) {
            let start_from = deployed.fork();
            with_faults(&start_from, &faults);
            let mut request = request(RunAction::Deploy, policy, None);
            request.choices.parallel = 3;
            let (worlds, expected) = every_crash(&start_from, &request).await;
            for (number, world) in worlds.iter().enumerate() {
                let LeftRun::UnderWay(run) = LeftRun::of(world, 1) else {
                    continue;
                };
                go_on(world, run, &Crash::never()).await.unwrap();
                let ended = ending(world);
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
        assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
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
        for (what, faults) in faults_under(policy) {
            let world = deployed.fork();
            with_faults(&world, &faults);
            interrupted_everywhere(&world, &sealed, &format!("sealed, {policy:?}: {what}")).await;
        }
    }
}

/// Nothing is deployed yet, so a plan knows of no unit what those before it will tell.
#[tokio::test]
async fn a_first_sealed_run_ends_the_same_wherever_it_was_interrupted() {
    for policy in POLICIES {
        let sealed = sealed_request(&world(), policy).await;
        for (what, faults) in faults_under(policy) {
            let world = world();
            with_faults(&world, &faults);
            let what = format!("sealed for the first time, {policy:?}: {what}");
            interrupted_everywhere(&world, &sealed, &what).await;
        }
    }
}

/// Units that would be skipped are deployed by force.
#[tokio::test]
async fn forced_units_end_the_same_wherever_they_were_interrupted() {
    let deployed = world();
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&deployed, first, &Crash::never()).await.unwrap();
    for policy in POLICIES {
        for (what, faults) in faults_under(policy) {
            let mut forced = request(RunAction::Deploy, policy, None);
            forced.choices.force = true;
            let world = deployed.fork();
            with_faults(&world, &faults);
            interrupted_everywhere(&world, &forced, &format!("forced, {policy:?}: {what}")).await;
        }
    }
}

/// Units that nobody chose are left alone.
#[tokio::test]
async fn chosen_units_end_the_same_wherever_they_were_interrupted() {
    let changed = deployed_and_changed().await;
    let chosen: [ComponentName; 2] = ["network", "app"].map(|name| name.parse().unwrap());
    for policy in POLICIES {
        for (what, faults) in faults_under(policy) {
            let mut some = request(RunAction::Deploy, policy, None);
            some.choices.components = Some(chosen.to_vec());
            let world = changed.fork();
            with_faults(&world, &faults);
            interrupted_everywhere(&world, &some, &format!("chosen, {policy:?}: {what}")).await;
        }
    }
    let deployed = world();
    let first = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&deployed, first, &Crash::never()).await.unwrap();
    let mut destroy = request(RunAction::Destroy, OnFailure::Hold, None);
    destroy.choices.components = Some(vec!["edge".parse().unwrap()]);
    interrupted_everywhere(&deployed, &destroy, "chosen, destroy").await;
}

#[tokio::test]
async fn a_refresh_ends_the_same_wherever_it_was_interrupted() {
    let world = drifted().await;
    let refresh = request(RunAction::Refresh, OnFailure::Hold, None);
    let whole = world.fork();
    let finished = start(&whole, refresh.clone(), &Crash::never()).await;
    assert_eq!(finished.unwrap().result, RunResult::Succeeded);
    let seen = ending_resources(&whole);
    assert_eq!(seen["D1-network-dev"]["first"], "changed by hand");
    assert!(!seen["D1-app-dev"].contains_key("second"), "{seen:?}");
    interrupted(&world, &refresh, "refresh", true).await;
}

/// A plan of one unit is for that unit: a deploy of it is held to the plan, a deploy of everything is refused.
#[tokio::test]
async fn a_plan_of_chosen_units_is_held_against_them_alone() {
    let world = deployed_and_changed().await;
    let chosen = Some(vec!["edge".parse().unwrap()]);
    let sealed = sealed_for(&world, OnFailure::Hold, chosen).await;
    let done = start(&world.fork(), sealed.clone(), &Crash::never()).await;
    assert_eq!(done.map(|done| done.result), Some(RunResult::Succeeded));

    let mut everything = sealed.clone();
    everything.choices.components = None;
    let open = async |world: &RecordedWorld, asked| {
        let ports = Arc::new(world.ports(&Crash::never()));
        let session = RunSession::open(ports, asked, "test", None).await.unwrap();
        session.plan().await.map(drop)
    };
    let error = open(&world, everything).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED, "{error}");
    let edited = world.fork();
    edited.change(|contents| {
        let name = "edge".parse().unwrap();
        contents.programs.insert(name, "v3".to_owned());
    });
    let error = open(&edited, sealed).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED, "{error}");
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
