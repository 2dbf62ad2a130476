//! One run at a time holds an environment; the next is refused with its name, or waits.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{ComponentName, ErrorCode};
use nimbus_orchestrator::{OnFailure, RunAction, RunResult};
use nimbus_runs::ports::LockHolder;
use nimbus_runs::{EventBus, LockWait, RunSession, take_environment};
use nimbus_runs_testing::{Crash, RecordedWorld};
use tokio_util::sync::CancellationToken;

use crate::shared::{DEV, ending, request, world};

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_refusal_and_counts_down() {
    let ports = RecordedWorld::default().ports(&Crash::never());
    let locks = ports.locks.as_ref();
    let _first = take_environment(locks, DEV, "nimbus deploy D1", None)
        .await
        .unwrap();
    let refused = take_environment(locks, DEV, "nimbus deploy D1", None).await;
    let error = refused.err().unwrap();
    assert_eq!(error.code(), ErrorCode::ENVIRONMENT_LOCKED);
    assert!(
        error.message().starts_with("State locked by ann"),
        "{error}"
    );
    let mut countdown = Vec::new();
    let mut told = |_: &LockHolder, left: Duration| countdown.push(left.as_secs());
    let wait = LockWait {
        limit: Duration::from_secs(3),
        waiting: &mut told,
    };
    let refused = take_environment(locks, DEV, "x", Some(wait)).await;
    assert_eq!(refused.err().unwrap().code(), ErrorCode::ENVIRONMENT_LOCKED);
    assert_eq!(countdown, [3, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_gets_it_when_it_is_free_and_is_told_meanwhile() {
    let ports = RecordedWorld::default().ports(&Crash::never());
    let locks = ports.locks.as_ref();
    let mut first = Some(take_environment(locks, DEV, "x", None).await.unwrap());
    let mut times = 0;
    let mut told = |_: &LockHolder, _: Duration| {
        times += 1;
        first.take();
    };
    let wait = LockWait {
        limit: Duration::from_secs(60),
        waiting: &mut told,
    };
    let second = take_environment(locks, DEV, "y", Some(wait)).await;
    assert!(second.is_ok());
    assert_eq!(times, 1);
}

/// Whoever had the environment may have changed the manifest, and ended only then.
#[tokio::test(start_paused = true)]
async fn what_is_planned_and_done_is_the_manifest_under_the_lock() {
    let world = world();
    let ports = Arc::new(world.ports(&Crash::never()));
    let other = take_environment(ports.locks.as_ref(), DEV, "other", None).await;
    let mut other = Some(other.unwrap());
    let mut changed = |_: &LockHolder, _: Duration| {
        world.change(|contents| {
            contents.manifest = contents.manifest.replace("size: 1", "size: 2");
        });
        other.take();
    };
    let wait = LockWait {
        limit: Duration::from_secs(60),
        waiting: &mut changed,
    };
    let asked = request(RunAction::Deploy, OnFailure::Hold, None);
    let session = RunSession::open(ports, asked, "test", Some(wait)).await;
    let session = session.unwrap();
    let network: ComponentName = "network".parse().unwrap();
    let entry = session.manifest().stacks.get(&network).unwrap();
    assert_eq!(entry.config[&DEV]["size"], 2);

    let planned = session.plan().await.unwrap();
    let bus = Arc::new(EventBus::default());
    let finished = planned.carry_out(bus, CancellationToken::new()).await;
    let finished = finished.unwrap();
    assert_eq!(finished.result, RunResult::Succeeded);
    let made = &ending(&world).resources["D1-network-dev"]["first"];
    assert!(made.contains("size=2"), "{made}");
    // And it is the one that whoever goes on with the run is held to.
    let recorded = &finished.record.request.manifest;
    let again = request(RunAction::Deploy, OnFailure::Hold, None);
    let again = shared::start(&world, again, &Crash::never()).await.unwrap();
    assert_eq!(again.record.request.manifest, *recorded);
}
