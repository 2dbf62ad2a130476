//! An approval from the command line of one person to the run of another, with a worker that carries it out.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, register, slow_down};
use crate::remote::sign_in;
use crate::support::{PASSWORD, Site, body_of};

const BEN: &str = "ben@operator.example";

/// Ben has to agree to whatever the owner rehearses in dev.
fn set_policy(caller: &ApiCaller) {
    let tenant = caller.get("/auth/me")["tenant"]["id"].clone();
    let tenant = tenant.as_str().unwrap();
    let ben = caller.post(
        &format!("/tenants/{tenant}/users"),
        &json!({"email": BEN, "display_name": "Ben", "password": PASSWORD}),
    );
    caller.post(
        &format!("/tenants/{tenant}/role-assignments"),
        &json!({"role": "tenant_admin", "user_id": ben["id"]}),
    );
    let policy = json!({"rehearsals": true, "steps": [{"name": "owners", "approvers": [{"user": ben["id"]}],
        "needs": "any", "timeout_seconds": 3600}]});
    let (status, put) = caller.ask("PUT", "/approval-policies/dev", "", &policy);
    assert_eq!(status, 200, "{put}");
    assert_eq!(body_of(&put)["environment"], "dev");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_run_waits_goes_on_when_somebody_approves_it_and_is_held_to_what_they_saw() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::of_programs(&postgres, &sdk);
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    register(&caller, "only", "", 1);
    let template = "name: one\ndescription: One stack\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {only: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": "D1WAIT", "organization": "o", "project": "p", "template": "one"});
    caller.post("/deployments", &wanted);
    set_policy(&caller);
    let url = text(&server.report["address"]);
    sign_in(&site, url, "", BEN, "ben");
    let as_ben = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--profile", "ben"]).collect();
        site.ask(&words)
    };
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let waiting = || {
        let (preview, events) =
            caller.finish(&caller.post("/deployments/D1WAIT/preview", &rehearse));
        assert_eq!(preview["result"], "succeeded", "{preview} {events:?}");
        let mut asked = rehearse.clone();
        asked["plan"] = preview["id"].clone();
        let run = caller.post("/deployments/D1WAIT/deploy", &asked);
        let approval = text(&run["approval"]).to_owned();
        (run, approval)
    };

    let (run, approval) = waiting();
    let listed = as_ben(&["approve", "list"]);
    assert_eq!(
        listed["data"]["items"][0]["id"],
        approval.as_str(),
        "{listed}"
    );
    let own = site.run_with(
        &[
            "approve",
            "grant",
            &approval,
            "--profile",
            "default",
            "--json",
        ],
        "",
    );
    assert_ne!(own.code, 0, "{}", own.stdout);
    assert!(
        format!("{}{}", own.stdout, own.stderr).contains("NIM-1022"),
        "{}{}",
        own.stdout,
        own.stderr
    );
    let granted = as_ben(&["approve", "grant", &approval, "--comment", "seen"]);
    assert_eq!(granted["data"]["status"], "approved", "{granted}");
    let (done, events) = caller.finish(&run);
    assert_eq!(done["result"], "succeeded", "{done} {events:?}");

    // F18: what the plan was made from moves after the request; the run is refused before its first change.
    let (run, approval) = waiting();
    slow_down(&caller, "only", 2, 2);
    as_ben(&["approve", "grant", &approval]);
    let (moved, events) = caller.finish(&run);
    assert_eq!(moved["problem"]["code"], "NIM-0601", "{moved}");
    assert!(
        !events.iter().any(|event| event["event"] == "resource"),
        "{events:?}"
    );

    let (run, approval) = waiting();
    let denied = as_ben(&["approve", "deny", &approval, "--reason", "not now"]);
    assert_eq!(denied["data"]["status"], "rejected", "{denied}");
    let (ended, _) = caller.finish(&run);
    assert_eq!(ended["problem"]["code"], "NIM-1026", "{ended}");
    let shown = as_ben(&["approve", "show", &approval]);
    assert_eq!(shown["data"]["decisions"][0]["comment"], "not now");
    let none = as_ben(&["approve", "list"]);
    assert_eq!(none["data"]["items"], json!([]));
    let all = as_ben(&["approve", "list", "--status", "all"]);
    assert_eq!(all["data"]["items"].as_array().unwrap().len(), 3, "{all}");
    assert_eq!(server.stop(), 0);
}

#[test]
fn somebody_is_asked_to_decide_in_anothers_place() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    site.set_up(&server);
    set_policy(&ApiCaller::new(&server));
    let wrong = site.run_with(
        &["approve", "delegate", BEN, "--until", "tomorrow", "--json"],
        "",
    );
    assert_ne!(wrong.code, 0, "{}", wrong.stdout);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let set = site.ask(&["approve", "delegate", BEN, "--until", &soon.to_string()]);
    assert!(set["data"]["delegate"].is_string(), "{set}");
    site.ask(&["approve", "delegate", BEN, "--remove"]);
    let again = site.run_with(&["approve", "delegate", BEN, "--remove", "--json"], "");
    assert_ne!(again.code, 0, "{}", again.stdout);
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_policy_is_set_from_a_file_and_a_wrong_chain_changes_nothing() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    site.set_up(&server);
    set_policy(&ApiCaller::new(&server));
    site.ask(&["group", "create", "reviewers"]);
    let set = |environment: &str, name: &str, chain: &str| {
        std::fs::write(site.folder.path().join(name), chain).unwrap();
        let words = ["approve", "policy", "set", environment, "--file", name];
        let words: Vec<&str> = words.into_iter().chain(["--json"]).collect();
        site.run_with(&words, "")
    };
    let chain = format!(
        "steps:\n  - name: team\n    approvers: [{{user: {BEN}}}]\n    needs: {{quorum: 1}}\n    \
         timeout_seconds: 60\n    escalate_to: [{{group: reviewers}}]\n"
    );
    let put = set("prod", "chain.yaml", &chain).ok();
    assert_eq!(put["data"]["environment"], "prod", "{put}");
    let step = &put["data"]["steps"][0];
    assert_eq!(step["needs"], json!({"quorum": 1}));
    assert!(step["approvers"][0]["user"].is_string(), "{put}");
    assert!(step["escalate_to"][0]["group"].is_string(), "{put}");
    let mut kept = put["data"].clone();
    for field in ["environment", "set_by", "set_at"] {
        kept.as_object_mut().unwrap().remove(field);
    }
    let everywhere = set("*", "chain.json", &kept.to_string()).ok();
    assert_eq!(everywhere["data"]["steps"], put["data"]["steps"]);

    let refused = |changed: &str, code: &str| {
        let output = set("prod", "wrong.yaml", changed);
        assert_ne!(output.code, 0, "{}", output.stdout);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains(code), "{changed}\n{said}");
    };
    refused("steps: [", "NIM-0005");
    refused(&chain.replace("needs:", "need:"), "NIM-0007");
    refused("steps: []", "NIM-0859");
    refused(&chain.replace("quorum: 1", "quorum: 2"), "NIM-0859");
    refused(&chain.replace(BEN, "nobody@operator.example"), "NIM-0856");
    let gone = site.run_with(
        &[
            "approve",
            "policy",
            "set",
            "prod",
            "--file",
            "none.yaml",
            "--json",
        ],
        "",
    );
    assert!(format!("{}{}", gone.stdout, gone.stderr).contains("NIM-0003"));

    let environments = || {
        let listed = site.ask(&["approve", "policy", "list"]);
        let items = listed["data"]["items"].as_array().unwrap();
        let mut found: Vec<String> = items
            .iter()
            .map(|item| text(&item["environment"]).to_owned())
            .collect();
        assert!(
            items
                .iter()
                .all(|item| item["environment"] == "dev" || item["steps"] == put["data"]["steps"]),
            "{listed}"
        );
        found.sort();
        found
    };
    assert_eq!(environments(), ["*", "dev", "prod"]);
    site.ask(&["approve", "policy", "remove", "prod"]);
    assert_eq!(environments(), ["*", "dev"]);
    let again = site.run_with(&["approve", "policy", "remove", "prod", "--json"], "");
    assert_ne!(again.code, 0, "{}", again.stdout);
    assert_eq!(server.stop(), 0);
}
