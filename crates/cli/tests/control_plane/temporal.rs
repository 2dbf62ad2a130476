//! A server whose workflows are on Temporal, and Temporal is away: people sign in and look, runs are queued and carried out,
//! and when it is back each run has one workflow, which ends as the run did.

use nimbus_control_testing::TestTemporal;
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::ApiCaller;
use crate::support::{Site, wait_for};

fn flows(caller: &ApiCaller) -> Option<Vec<Value>> {
    let path = "/workflows?type=ComponentDestroyWorkflow&limit=200";
    let (status, answer) = caller.ask("GET", path, "", &Value::Null);
    if status != 200 {
        return None;
    }
    let found = crate::support::body_of(&answer);
    found["items"].as_array().cloned()
}

fn destroy(caller: &ApiCaller) -> String {
    let asked = json!({"environment": "dev", "rehearsal": true});
    let run = caller.post("/deployments/D1AWAY/destroy", &asked);
    run["id"].as_str().unwrap().to_owned()
}

fn ended(caller: &ApiCaller, run: &str) {
    wait_for("the run is over", || {
        caller.get(&format!("/runs/{run}"))["status"] == "ended"
    });
    let run = caller.get(&format!("/runs/{run}"));
    assert_eq!(run["result"], "succeeded", "{run}");
}

#[test]
fn without_temporal_people_work_on_and_no_run_is_lost_or_doubled() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let mut temporal = TestTemporal::start(&tool_or_skip!(Tool::Temporal));
    let site = Site::new(&postgres)
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
        .with("NIMBUS_WORKFLOWS_ENGINE", "temporal")
        .with("NIMBUS_TEMPORAL_HOST", "127.0.0.1")
        .with("NIMBUS_TEMPORAL_PORT", &temporal.port().to_string())
        .with("NIMBUS_TEMPORAL_NAMESPACE", "default");
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    let deployment = json!({"id": "D1AWAY", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    caller.post("/deployments", &deployment);
    let mut runs = vec![destroy(&caller)];
    ended(&caller, &runs[0]);
    wait_for("the first run had its workflow", || {
        flows(&caller).is_some_and(|flows| flows.iter().any(|flow| flow["status"] == "succeeded"))
    });

    temporal.kill();
    // Signing in and looking need no workflows.
    let caller = ApiCaller::new(&server);
    assert_eq!(caller.get("/runs")["items"].as_array().unwrap().len(), 1);
    for _ in 0..short_or_long(2, 20) {
        let run = destroy(&caller);
        ended(&caller, &run);
        runs.push(run);
    }
    // A server that is started without it starts, and knows what it owes.
    assert_eq!(server.stop(), 0);
    let server = site.up();
    let caller = ApiCaller::new(&server);
    let run = destroy(&caller);
    ended(&caller, &run);
    runs.push(run);
    let (status, answer) = caller.ask("GET", "/workflows", "", &Value::Null);
    assert_eq!(status, 503, "{answer}");

    temporal.resume();
    wait_for("Temporal is found again", || flows(&caller).is_some());
    // This one is known to its workflow from the beginning; those of before have theirs, or need none.
    let last = destroy(&caller);
    ended(&caller, &last);
    runs.push(last.clone());
    wait_for("the last run has its workflow", || {
        flows(&caller).is_some_and(|flows| {
            let of_last = |flow: &&Value| flow["id"].as_str().unwrap().contains(&last);
            let found = flows.iter().find(of_last);
            found.is_some_and(|flow| flow["status"] == "succeeded")
        })
    });
    let flows = flows(&caller).unwrap();
    for run in &runs {
        let of_run = |flow: &&Value| flow["id"].as_str().unwrap().contains(run.as_str());
        let found: Vec<_> = flows.iter().filter(of_run).collect();
        assert!(found.len() <= 1, "{found:?}");
        let open = |flow: &&&Value| flow["status"] != "succeeded";
        assert!(!found.iter().any(|flow| open(&flow)), "{found:?}");
    }
    // Every run was carried out once.
    let recorded = caller.get("/runs?limit=200");
    assert_eq!(recorded["items"].as_array().unwrap().len(), runs.len());
    assert_eq!(server.stop(), 0);
}
