//! A day of an administrator on the command line.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::{PASSWORD, Site};

fn items(list: &Value) -> &Vec<Value> {
    list["data"]["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{list}"))
}

/// Pools, names and images of a tenant.
fn resolvers(site: &Site) {
    let ask = |line: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--tenant", "acme"]).collect();
        site.ask(&words)
    };
    ask("ipam create corp 10.0.0.0/16");
    ask("ipam create hosts 10.0.0.0/24 --parent corp --addresses");
    ask("ipam reserve corp 10.0.1.0/24");
    let shown = ask("ipam show corp");
    assert_eq!(shown["data"]["usage"]["free"], "65024", "{shown}");
    assert_eq!(items(&ask("ipam list")).len(), 2);
    ask("resolver configure ipam --set pool=corp --set prefix_length=24");
    ask("resolver configure ipam --set address_pool=hosts");
    ask("naming pattern {env}-{type}-{seq:03d} --environment prod");
    let set = ask("resolver config");
    let ipam = serde_json::json!({"pool": "corp", "prefix_length": 24, "address_pool": "hosts"});
    assert_eq!(items(&set)[0]["config"], ipam, "what is not named stays");
    assert_eq!(items(&set)[1]["environment"], "prod");
    ask("image set aws debian 12 ami-1 --deprecated --replaced-by 13");
    assert_eq!(items(&ask("image list"))[0]["replaced_by"], "13");
    assert_eq!(items(&ask("resolver list")).len(), 4);
    assert!(items(&ask("ipam leases --pool corp")).is_empty());
}

#[test]
fn tenants_people_roles_keys_and_the_trail_are_administered() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    site.set_up(&server);
    site.ask(&["tenant", "create", "acme", "--name", "Acme Inc."]);
    site.ask(&[
        "tenant",
        "set",
        "scan_schedule",
        "nightly",
        "--tenant",
        "acme",
    ]);
    site.ask(&["tenant", "quota", "deployments=5", "--tenant", "acme"]);
    site.ask(&["tenant", "create", "team", "--tenant", "acme"]);
    let effective = site
        .ask(&["tenant", "effective", "--tenant", "team"])
        .to_string();
    assert!(effective.contains("nightly"), "{effective}");

    let create = [
        "user",
        "create",
        "jane@acme.example",
        "--tenant",
        "acme",
        "--password-stdin",
        "--json",
    ];
    site.run_with(&create, &format!("{PASSWORD}\n")).ok();
    site.ask(&["group", "create", "ops", "--tenant", "acme"]);
    site.ask(&["group", "rename", "ops", "operations", "--tenant", "acme"]);
    site.ask(&[
        "group",
        "add",
        "operations",
        "jane@acme.example",
        "--tenant",
        "acme",
    ]);
    let members = site.ask(&["group", "members", "operations", "--tenant", "acme"]);
    assert_eq!(items(&members)[0]["email"], "jane@acme.example");
    site.ask(&["role", "create", "reader", "cmdb:read", "--tenant", "acme"]);
    site.ask(&[
        "role",
        "update",
        "reader",
        "cmdb:read",
        "users:read",
        "--tenant",
        "acme",
    ]);
    site.ask(&[
        "role",
        "assign",
        "reader",
        "--group",
        "operations",
        "--tenant",
        "acme",
        "--hours",
        "08:00-18:00",
        "--ip",
        "10.0.0.0/8",
    ]);
    let explain = |at: &str| {
        let question = [
            "role",
            "explain",
            "jane@acme.example",
            "users:read",
            "--tenant",
            "acme",
            "--ip",
            "10.1.1.1",
            "--at",
            at,
        ];
        site.ask(&question).to_string()
    };
    let noon = explain("2026-06-01T12:00:00Z");
    assert!(
        noon.contains("through group operations") && noon.contains("true"),
        "{noon}"
    );
    let night = explain("2026-06-01T23:00:00Z");
    assert!(night.contains("condition is not met"), "{night}");

    resolvers(&site);
    site.ask(&[
        "user",
        "create-service",
        "robot",
        "--role",
        "viewer",
        "--tenant",
        "acme",
    ]);
    let key = site.ask(&[
        "key",
        "create",
        "robot",
        "ci",
        "users:read",
        "--expires",
        "30",
        "--tenant",
        "acme",
    ]);
    let secret = key["data"]["secret"]
        .as_str()
        .unwrap_or_else(|| panic!("{key}"))
        .to_owned();
    let mut command = site.command(&["user", "list", "--json"]);
    let by_key = command
        .env("NIMBUS_SERVER", server.report["address"].as_str().unwrap())
        .env("NIMBUS_TOKEN", &secret)
        .output()
        .unwrap();
    assert!(
        by_key.status.success(),
        "{}",
        String::from_utf8_lossy(&by_key.stderr)
    );
    let keys = site.ask(&["key", "list", "--tenant", "acme"]);
    assert!(items(&keys)[0]["last_used_at"].is_string(), "{keys}");

    let backup = site.log("nimbus.backup").display().to_string();
    let data = site.data().display().to_string();
    site.ask(&["backup", "--data-dir", &data, "--output", &backup]);

    site.ask(&["tenant", "delete", "--confirm", "acme", "--tenant", "acme"]);
    assert!(!site.ask(&["tenant", "list"]).to_string().contains("acme"));
    assert_eq!(items(&site.ask(&["tenant", "deleted"]))[0]["slug"], "acme");
    site.ask(&["tenant", "restore", "acme"]);
    assert!(site.ask(&["tenant", "list"]).to_string().contains("team"));

    let csv = site.run_with(
        &[
            "audit",
            "export",
            "--format",
            "csv",
            "--tenant",
            "acme",
            "--action",
            "users.create",
        ],
        "",
    );
    assert_eq!(csv.stdout.lines().count(), 3, "{}", csv.stdout);
    let intact = site
        .ask(&["audit", "verify", "--tenant", "acme"])
        .to_string();
    assert!(intact.contains("\"intact\":true"), "{intact}");
    assert_eq!(server.stop(), 0);

    // The drill: everything is gone but the backup and the keys.
    std::fs::rename(site.data(), site.log("lost")).unwrap();
    site.ask(&["restore", &backup, "--data-dir", &data]);
    std::fs::rename(site.log("lost").join("keys"), site.data().join("keys")).unwrap();
    let server = site.up();
    let address = server.report["address"].as_str().unwrap();
    let login = ["login", "--server", address, "--password-stdin", "--json"];
    site.run_with(&login, &format!("{PASSWORD}\n")).ok();
    let users = site.ask(&["user", "list", "--tenant", "acme"]).to_string();
    assert!(users.contains("jane@acme.example"), "{users}");
    assert_eq!(server.stop(), 0);
}
