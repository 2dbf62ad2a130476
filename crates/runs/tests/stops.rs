//! Asked to stop at any write and gone on with, a run ends as if nobody had asked. Other than after a crash its
//! end is recorded, and units that were under way have failed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs_testing::Crash;

use crate::shared::interrupting::{
    POLICIES, changed_since_deployed, deployed_and_changed, drifted, faults_under, sealed_request,
    stopped_everywhere, with_faults,
};
use crate::shared::{request, start, world, world_with_checks};

#[tokio::test]
async fn a_first_deploy_ends_the_same_wherever_it_was_stopped() {
    for policy in POLICIES {
        for (what, faults) in faults_under(policy) {
            let world = world();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            stopped_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
        }
    }
}

#[tokio::test]
async fn an_update_ends_the_same_wherever_it_was_stopped() {
    let deployed = deployed_and_changed().await;
    for policy in POLICIES {
        let sealed = sealed_request(&deployed, policy).await;
        for (what, faults) in faults_under(policy) {
            let world = deployed.fork();
            with_faults(&world, &faults);
            let request = request(RunAction::Deploy, policy, None);
            stopped_everywhere(&world, &request, &format!("{policy:?}: {what}")).await;
            stopped_everywhere(&world, &sealed, &format!("sealed, {policy:?}: {what}")).await;
        }
    }
}

#[tokio::test]
async fn checks_say_the_same_wherever_a_run_was_stopped() {
    for checks in ["{smoke: {command: 'true'}}", "{smoke: {command: 'false'}}"] {
        let deployed = changed_since_deployed(world_with_checks(checks)).await;
        for policy in POLICIES {
            let request = request(RunAction::Deploy, policy, None);
            stopped_everywhere(&deployed, &request, &format!("{policy:?}: {checks}")).await;
        }
    }
}

#[tokio::test]
async fn whatever_else_a_run_does_ends_the_same_wherever_it_was_stopped() {
    let world = deployed_and_changed().await;
    let second = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, second, &Crash::never()).await.unwrap();
    let destroy = request(RunAction::Destroy, OnFailure::Hold, None);
    stopped_everywhere(&world, &destroy, "destroy").await;
    let rollback = request(RunAction::Rollback, OnFailure::Hold, Some(1));
    stopped_everywhere(&world, &rollback, "rollback").await;
    let refresh = request(RunAction::Refresh, OnFailure::Hold, None);
    stopped_everywhere(&drifted().await, &refresh, "refresh").await;
}
