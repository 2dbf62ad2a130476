//! What a run that goes on is held to besides its plan: the account that its environment is in.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::sync::Arc;

use nimbus_core::ErrorCode;
use nimbus_orchestrator::{OnFailure, RunAction, RunId, RunResult};
use nimbus_runs::{ResumeRequest, resume};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};

use crate::shared::{go_on, request, start, world};

fn in_account(world: &RecordedWorld, account: &str) {
    world.change(|contents| contents.account = Some(account.to_owned()));
}

async fn refusal(world: &RecordedWorld, run: RunId) -> Option<ErrorCode> {
    let resumption = ResumeRequest {
        run,
        forget_creates: false,
    };
    let ports = Arc::new(world.ports(&Crash::never()));
    let planned = resume(ports, resumption, "test", None).await;
    planned.err().map(|error| error.code())
}

#[tokio::test]
async fn nobody_goes_on_with_credentials_of_another_account() {
    let broken = UnitFault {
        deploy: true,
        destroy: true,
        ..UnitFault::default()
    };
    for action in [RunAction::Deploy, RunAction::Destroy] {
        let world = world();
        in_account(&world, "111111111111");
        let app = || "app".parse().unwrap();
        if action == RunAction::Destroy {
            let deploy = request(RunAction::Deploy, OnFailure::Hold, None);
            start(&world, deploy, &Crash::never()).await.unwrap();
        }
        world.change(|contents| contents.faults.insert(app(), broken));
        let held = request(action, OnFailure::Hold, None);
        let failed = start(&world, held, &Crash::never()).await.unwrap();
        assert_eq!(failed.result, RunResult::Failed, "{action:?}");
        world.change(|contents| contents.faults.remove(&app()));
        let (run, before) = (failed.record.run, world.contents().units);

        in_account(&world, "222222222222");
        let refused = refusal(&world, run).await;
        assert_eq!(refused, Some(ErrorCode::ACCOUNT_OTHER), "{action:?}");
        assert_eq!(world.contents().units, before, "{action:?}");

        in_account(&world, "111111111111");
        let finished = go_on(&world, run, &Crash::never()).await.unwrap();
        assert_eq!(finished.result, RunResult::Succeeded, "{action:?}");
    }
}

/// A simulated cloud has no account that anybody could be wrong about.
#[tokio::test]
async fn a_rehearsal_goes_on_with_any_credentials() {
    let world = world();
    in_account(&world, "222222222222");
    let mut rehearsed = request(RunAction::Deploy, OnFailure::Hold, None);
    rehearsed.rehearsal = true;
    let crash = Crash::before_write(12);
    assert!(start(&world, rehearsed, &crash).await.is_none());
    let finished = go_on(&world, RunId(1), &Crash::never()).await.unwrap();
    assert_eq!(finished.result, RunResult::Succeeded);
}
