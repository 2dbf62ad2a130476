//! The workflow runtime of a server: there from the first start, in a schema that requests do not reach, and as it was after
//! a restart and after a kill of its database.

use std::time::Duration;

use nimbus_control_flows::{TokenCleanupWorkflow, platform_schedules};
use nimbus_test_tools::{Tool, tool_or_skip};
use nimbus_workflows::{Control as _, FlowId, FlowState, NewFlow};
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime};

use crate::support::{Running, folder, options};

/// Looks at a server's workflows from beside it, once its runtime has made them.
async fn beside(server: &Running) -> EmbeddedRuntime {
    let looked = async {
        loop {
            let options = EmbeddedOptions::new(server.store.workflow_address());
            let opened = EmbeddedRuntime::open(options).await;
            if let Ok(runtime) = opened
                && let Ok(schedules) = runtime.schedules().await
                && schedules.len() == platform_schedules().len()
            {
                return runtime;
            }
            tokio::time::sleep(Duration::from_millis(100)).await; // tidy-allow(sleep): nothing tells that it is there
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(120), looked);
    found.await.expect("the runtime of the server is there")
}

async fn clean_up(runtime: &EmbeddedRuntime, name: &str) -> FlowState {
    let id = FlowId::new(name).unwrap();
    let new = NewFlow::of::<TokenCleanupWorkflow>(id.clone(), &()).unwrap();
    runtime.start(new).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(120), runtime.result(&id));
    ended.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_server_runs_workflows_and_what_was_paused_stays_so_over_a_restart() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let runtime = beside(&server).await;
    assert!(matches!(
        clean_up(&runtime, "by-hand-1").await,
        FlowState::Succeeded(_)
    ));
    let mut paused = platform_schedules().remove(0);
    paused.paused = true;
    runtime.put_schedule(&paused).await.unwrap();
    // The role of requests has no right on the schema, so what its tables lack is no weakness.
    let found = server.store.weaknesses().await.unwrap();
    assert!(!found.iter().any(|one| one.is_fatal()), "{found:?}");
    runtime.close().await;
    server.stop().await;

    // A start looks at the database first, with the tables of workflows in it.
    let server = Running::start(&options).await;
    let runtime = beside(&server).await;
    let schedules = runtime.schedules().await.unwrap();
    let kept = schedules.iter().find(|one| one.schedule == paused);
    assert!(kept.is_some(), "{schedules:?}");
    assert!(matches!(
        clean_up(&runtime, "by-hand-2").await,
        FlowState::Succeeded(_)
    ));
    runtime.close().await;
    server.stop().await;
}
