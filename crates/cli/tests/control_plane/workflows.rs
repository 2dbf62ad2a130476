//! Workflows and schedules of a server as it is started, on the command line, over a kill of the server.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::ApiCaller;
use crate::support::{Site, wait_for};

fn items(found: &Value) -> &[Value] {
    found["data"]["items"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn workflows_and_schedules_are_listed_paused_and_go_on_after_a_kill() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let mut site = Site::new(&postgres).with("NIMBUS_RATE_LIMITING_ENABLED", "false");
    let export = format!("file://{}", site.log("states").display());
    site.set("NIMBUS_STATE_EXPORT", &export);
    let mut server = site.up();
    site.set_up(&server);
    let own = |words: &[&str]| {
        let profile = ["--profile", "default", "--json"];
        let words: Vec<&str> = words.iter().copied().chain(profile).collect();
        site.run_with(&words, "")
    };
    // The runtime is opened beside the server, which answers before.
    wait_for("the schedules are there", || {
        let listed = own(&["schedule", "list"]);
        listed.code == 0 && items(&listed.ok()).len() == 5
    });
    let paused = own(&["schedule", "pause", "audit-log-archive"]).ok();
    assert_eq!(paused["data"]["paused"], true);
    assert!(paused["data"].get("next_at").is_none(), "{paused}");
    assert_ne!(own(&["schedule", "pause", "no-such-schedule"]).code, 0);

    let caller = ApiCaller::new(&server);
    let me = caller.get("/auth/me");
    let policy = json!({"rehearsals": true, "steps": [{"name": "owners", "approvers": [{"user": me["user"]["id"]}],
        "needs": "any", "timeout_seconds": 3600}]});
    let (status, put) = caller.ask("PUT", "/approval-policies/dev", "", &policy);
    assert_eq!(status, 200, "{put}");
    let deployment = json!({"id": "D1FLOW", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    caller.post("/deployments", &deployment);
    let asked = json!({"environment": "dev", "rehearsal": true});
    let run = caller.post("/deployments/D1FLOW/destroy", &asked);
    let chains = || {
        let list = [
            "workflow",
            "list",
            "--open",
            "--type",
            "ApprovalChainWorkflow",
        ];
        items(&own(&list).ok()).to_vec()
    };
    wait_for("the chain of the approval waits", || !chains().is_empty());
    let chain = chains()[0]["id"].as_str().unwrap().to_owned();
    let flow = chain.trim_end_matches("/approval");
    let shown = own(&["workflow", "show", flow]).ok();
    assert_eq!(shown["data"]["workflow_type"], "ComponentDestroyWorkflow");
    assert_eq!(shown["data"]["status"], "running");

    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let server = site.up();
    let caller = ApiCaller::new(&server);
    let get = |path: &str| {
        let (status, answer) = caller.ask("GET", path, "", &Value::Null);
        (status == 200).then_some(answer)
    };
    wait_for("the runtime is back", || get("/schedules").is_some());
    let schedules = caller.get("/schedules");
    let archive = &schedules["items"][0];
    assert_eq!(archive["name"], "audit-log-archive");
    assert_eq!(archive["paused"], true, "{schedules}");
    let resumed = caller.post("/schedules/audit-log-archive/resume", &json!({}));
    assert!(resumed["next_at"].is_string(), "{resumed}");
    assert_eq!(
        caller.get(&format!("/workflows/{flow}"))["status"],
        "running"
    );

    let id = run["id"].as_str().unwrap();
    caller.post(&format!("/runs/{id}/cancel"), &json!({}));
    wait_for("the workflow ends with its run", || {
        caller.get(&format!("/workflows/{flow}"))["status"] == "succeeded"
    });
    let ended = caller.get(&format!("/workflows/{flow}"));
    assert_eq!(ended["result"], json!({"result": "cancelled"}), "{ended}");
    assert_eq!(server.stop(), 0);
}
