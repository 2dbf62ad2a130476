//! The workflow runtime of a server: there from the first start, in a schema that requests do not reach, and as it was after
//! a restart and after a kill of its database.

use std::time::Duration;

use nimbus_control_flows::{TokenCleanupWorkflow, platform_schedules};
use nimbus_control_server::{TemporalAddress, WorkflowEngine};
use nimbus_test_tools::{Tool, tool_or_skip};
use nimbus_workflows::{Control as _, FlowId, FlowState, NewFlow};
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime};
use serde_json::{Value, json};

use crate::support::{Running, call, folder, options, set_up};

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

#[tokio::test]
async fn workflows_and_their_steps_are_counted() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let runtime = beside(&server).await;
    clean_up(&runtime, "schedule:cleanup-expired-tokens:now").await;
    clean_up(&runtime, "by-hand").await;
    let wanted = [
        "nimbus_temporal_workflows_total{workflow_type=\"TokenCleanupWorkflow\",status=\"succeeded\"} 2",
        "nimbus_temporal_workflow_duration_seconds_count{workflow_type=\"TokenCleanupWorkflow\"} 2",
        "nimbus_temporal_activities_total{activity_type=\"remove_ended_sessions\",status=\"succeeded\"} 2",
        "nimbus_temporal_schedules_total{schedule_name=\"cleanup-expired-tokens\",status=\"succeeded\"} 1",
    ];
    let counted = async {
        loop {
            let text = server.get("/metrics").await.body;
            if wanted.iter().all(|line| text.contains(line)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await; // tidy-allow(sleep): nothing tells that it counted
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(60), counted).await;
    let text = server.get("/metrics").await.body;
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.contains("temporal"))
        .collect();
    assert!(counted.is_ok(), "{lines:#?}");
    runtime.close().await;
    server.stop().await;
}

/// Nobody answers at the runtime's address, so no workflow has a timer.
#[tokio::test]
async fn an_approval_has_its_deadline_while_the_runtime_is_away() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let mut options = options(folder.path(), &binaries);
    options.workflows.engine = WorkflowEngine::Temporal(TemporalAddress {
        address: "http://127.0.0.1:1".to_owned(),
        namespace: "default".to_owned(),
        queue: "nimbus".to_owned(),
        root: None,
        identity: None,
        api_key: None,
    });
    let server = Running::start(&options).await;
    let owner = set_up(&server).await;
    let ask = async |method: &str, path: &str, body: Value| {
        call(
            &server,
            method,
            &format!("/api/v1/{path}"),
            Some(&owner),
            &body,
        )
        .await
    };
    let me = ask("GET", "auth/me", Value::Null).await;
    let me = me["id"].as_str().or_else(|| me["user"]["id"].as_str());
    let me = me.expect("somebody").to_owned();
    let policy = json!({"steps": [{"name": "owners", "approvers": [{"user": me}], "needs": "any",
        "timeout_seconds": 1}], "rehearsals": true, "own_requests": true});
    let put = ask("PUT", "approval-policies/dev", policy).await;
    assert_eq!(put["environment"], "dev", "{put}");
    let deployment = json!({"id": "D1APR", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    ask("POST", "deployments", deployment).await;
    let body = json!({"environment": "dev", "rehearsal": true});
    let run = ask("POST", "deployments/D1APR/destroy", body).await;
    let approval = run["approval"].as_str().unwrap_or_default().to_owned();
    assert!(!approval.is_empty(), "{run}");
    let ended = async {
        while ask("GET", &format!("approvals/{approval}"), Value::Null).await["status"] != "expired"
        {
            tokio::time::sleep(Duration::from_millis(200)).await; // tidy-allow(sleep): nothing tells of rows
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(ended.is_ok(), "nobody looked at the deadline");
    server.stop().await;
}
