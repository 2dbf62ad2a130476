//! One run at a time holds an environment; the next is refused with its name, or waits.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use nimbus_core::{EnvironmentName, ErrorCode};
use nimbus_runs::ports::LockHolder;
use nimbus_runs::{LockWait, take_environment};
use nimbus_runs_testing::{Crash, RecordedWorld};

const DEV: EnvironmentName = EnvironmentName::DEV;

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
