//! What somebody is told in person, read on the command line.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;

use crate::deployments::ApiCaller;
use crate::remote::sign_in;
use crate::support::{PASSWORD, Site};

const KIM: &str = "kim@operator.example";

#[test]
fn somebody_lists_what_waits_for_them_and_notes_that_they_read_it() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    let me = caller.get("/auth/me");
    let tenant = me["tenant"]["id"].as_str().unwrap();
    let kim = caller.post(
        &format!("/tenants/{tenant}/users"),
        &json!({"email": KIM, "display_name": "Kim", "password": PASSWORD}),
    );
    let policy = json!({"rehearsals": true, "steps": [{"name": "owners", "approvers": [{"user": kim["id"]}],
        "needs": "any", "timeout_seconds": 3600}]});
    let (status, put) = caller.ask("PUT", "/approval-policies/dev", "", &policy);
    assert_eq!(status, 200, "{put}");
    let deployment = json!({"id": "D1NOTE", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    caller.post("/deployments", &deployment);
    // A destroy has no plan, and waits as it was asked for.
    let asked = json!({"environment": "dev", "rehearsal": true});
    let run = caller.post("/deployments/D1NOTE/destroy", &asked);
    assert!(run["approval"].is_string(), "{run}");

    let address = server.report["address"].as_str().unwrap();
    sign_in(&site, address, "", KIM, "kim");
    let as_kim = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--profile", "kim"]).collect();
        site.ask(&words)
    };
    let listed = as_kim(&["notification", "list", "--unread"]);
    let one = &listed["data"]["items"][0];
    assert_eq!(one["kind"], "approval_required", "{listed}");
    assert_eq!(one["approval"], run["approval"]);
    let id = one["id"].as_str().unwrap();
    // Whoever asked has none of it, and cannot read Kim's.
    let own = site.ask(&["notification", "list", "--profile", "default"]);
    assert_eq!(own["data"]["items"], json!([]));
    for words in [
        &["notification", "read", id, "--profile", "default", "--json"][..],
        &["notification", "read", "--profile", "kim", "--json"][..],
        &[
            "notification",
            "read",
            id,
            "--all",
            "--profile",
            "kim",
            "--json",
        ][..],
    ] {
        let refused = site.run_with(words, "");
        assert_ne!(refused.code, 0, "{words:?}: {}", refused.stdout);
    }

    let read = as_kim(&["notification", "read", id]);
    assert!(read["data"]["read_at"].is_string(), "{read}");
    let unread = as_kim(&["notification", "list", "--unread"]);
    assert_eq!(unread["data"]["items"], json!([]));
    let all = as_kim(&["notification", "read", "--all"]);
    assert_eq!(all["data"], json!({"read": 0}));
    let shown = site.run_with(&["notification", "list", "--profile", "kim"], "");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("waits for your decision"),
        "{}",
        shown.stdout
    );
    assert_eq!(server.stop(), 0);
}
