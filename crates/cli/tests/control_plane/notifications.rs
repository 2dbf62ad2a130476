//! What somebody is told in person, read on the command line, by mail and by webhook of a server as it is started.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nimbus_control_testing::TestMailServer;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::ApiCaller;
use crate::remote::sign_in;
use crate::support::{PASSWORD, Site, wait_for};

const KIM: &str = "kim@operator.example";

/// A receiver of webhooks that takes everything: its port, and what it heard.
fn receiver() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut call = Vec::new();
            let mut part = [0; 4096];
            // The body ends with the object.
            while !call.ends_with(b"}") {
                match stream.read(&mut part) {
                    Ok(count) if count > 0 => call.extend_from_slice(&part[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 204 x\r\n\r\n");
            let _ = tell.send(String::from_utf8_lossy(&call).into_owned());
        }
    });
    (port, heard)
}

/// A server that may call receivers on these ports of this machine, and has a relay for mail.
fn sending(postgres: &std::path::Path, ports: &str, relay: &TestMailServer) -> Site {
    Site::new(postgres)
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_NETWORKS", "127.0.0.1/32")
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_PORTS", ports)
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_PLAIN", "true")
        .with("NIMBUS_SMTP_HOST", "127.0.0.1")
        .with("NIMBUS_SMTP_PORT", &relay.port.to_string())
        .with("NIMBUS_SMTP_USER", "nimbus")
        .with("NIMBUS_SMTP_PASSWORD", "hush hush")
        .with("NIMBUS_SMTP_ENCRYPTION", "none")
        .with("NIMBUS_SMTP_FROM", "Nimbus <nimbus@operator.example>")
}

/// Makes Kim, who decides about everything in dev.
fn kim_decides(caller: &ApiCaller) {
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
}

/// A run of a new deployment that waits for Kim.
fn waiting_run(caller: &ApiCaller, deployment: &str) -> Value {
    let body = json!({"id": deployment, "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    caller.post("/deployments", &body);
    // A destroy has no plan, and waits as it was asked for.
    let asked = json!({"environment": "dev", "rehearsal": true});
    let run = caller.post(&format!("/deployments/{deployment}/destroy"), &asked);
    assert!(run["approval"].is_string(), "{run}");
    run
}

/// Settings decide what leaves a server, and how long a receiver has to answer.
#[test]
fn mail_and_webhooks_leave_where_the_settings_let_them() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let (port, heard) = receiver();
    // Takes calls and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let relay = TestMailServer::start(false);
    let site = sending(&postgres, &format!("{port},{silent_port}"), &relay)
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_ENABLED", "false")
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_TIMEOUT", "1");
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    let me = caller.get("/auth/me");
    let hooks = format!("/tenants/{}/webhooks", me["tenant"]["id"].as_str().unwrap());
    let hook = |caller: &ApiCaller, name: &str, port: u16, kind: &str| {
        let url = format!("http://127.0.0.1:{port}/hook");
        caller.post(&hooks, &json!({"name": name, "url": url, "kinds": [kind]}))
    };
    hook(&caller, "pager", port, "approval_required");
    kim_decides(&caller);
    let first = waiting_run(&caller, "D1NOTE");
    wait_for("a mail", || !relay.mails().is_empty());
    assert_eq!(server.stop(), 0);
    assert!(heard.try_recv().is_err(), "webhooks are off");

    let site = site
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_ENABLED", "true")
        .with("NIMBUS_NOTIFICATIONS_EMAIL_ENABLED", "false");
    let server = site.up();
    let caller = ApiCaller::new(&server);
    let second = waiting_run(&caller, "D2NOTE");
    // What waited while they were off comes, too.
    for run in [&first, &second] {
        let call = heard.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(call.contains(run["approval"].as_str().unwrap()), "{call}");
    }
    let slow = hook(&caller, "slow", silent_port, "run_failed");
    let path = format!("{hooks}/{}/test", slow["id"].as_str().unwrap());
    let sent = caller.post(&path, &json!({}));
    let asked = Instant::now();
    let delivery = hooks.replace("webhooks", "deliveries");
    let delivery = format!("{delivery}/{}", sent["id"].as_str().unwrap());
    wait_for("the try to be noted", || {
        let problem = caller.get(&delivery)["tries"][0]["problem"].clone();
        problem
            .as_str()
            .is_some_and(|text| text.contains("in time"))
    });
    // Thirty seconds is what a receiver has unless something is set.
    assert!(
        asked.elapsed() < Duration::from_secs(25),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(server.stop(), 0);
    assert_eq!(relay.mails().len(), 1, "mail is off");
}

#[test]
fn somebody_lists_what_waits_for_them_and_notes_that_they_read_it() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let (port, heard) = receiver();
    let relay = TestMailServer::start(false);
    let site = sending(&postgres, &port.to_string(), &relay);
    let server = site.up();
    site.set_up(&server);
    let url = format!("http://127.0.0.1:{port}/hook");
    let own = |words: &[&str]| {
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain(["--profile", "default"])
            .collect();
        site.ask(&words)
    };
    let made = own(&[
        "webhook",
        "create",
        "pager",
        &url,
        "--kind",
        "approval_required",
    ]);
    assert!(
        made["data"]["secret"]
            .as_str()
            .unwrap()
            .starts_with("whsec_")
    );
    let caller = ApiCaller::new(&server);
    kim_decides(&caller);
    let run = waiting_run(&caller, "D1NOTE");

    // The server sends both by itself.
    let call = heard.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(call.contains("webhook-signature: v1,"), "{call}");
    assert!(call.contains(run["approval"].as_str().unwrap()), "{call}");
    wait_for("a mail", || !relay.mails().is_empty());
    let mail = &relay.mails()[0];
    assert_eq!(mail.to, KIM);
    assert_eq!(mail.proof.as_deref(), Some("\0nimbus\0hush hush"));
    wait_for("both to be noted", || {
        let sent = own(&["webhook", "deliveries", "--status", "delivered"]);
        sent["data"]["items"]
            .as_array()
            .is_some_and(|items| items.len() == 2)
    });
    let tested = own(&["webhook", "test", "pager"]);
    heard.recv_timeout(Duration::from_secs(60)).unwrap();
    let id = tested["data"]["id"].as_str().unwrap();
    wait_for("the test to be noted", || {
        let shown = own(&["webhook", "delivery", id]);
        shown["data"]["tries"][0]["status"] == 204
    });
    let again = own(&["webhook", "resend", id]);
    assert_eq!(again["data"]["status"], "pending");
    let call = heard.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(call.contains(id), "it has the same id: {call}");
    let rotated = own(&["webhook", "rotate", "pager"]);
    assert_ne!(rotated["data"]["secret"], made["data"]["secret"]);
    let off = own(&["webhook", "update", "pager", "--disable"]);
    assert_eq!(off["data"]["enabled"], false);
    assert_eq!(off["data"]["kinds"], json!(["approval_required"]));
    let listed = own(&["webhook", "list"]);
    assert!(
        listed["data"]["items"][0].get("secret").is_none(),
        "{listed}"
    );
    own(&["webhook", "delete", "pager"]);
    let refused = site.run_with(&["webhook", "test", "pager", "--profile", "default"], "");
    assert_ne!(refused.code, 0, "{}", refused.stdout);

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

    let chosen = as_kim(&[
        "notification",
        "preferences",
        "--set",
        "run_failed.email=digest",
        "--digest",
        "weekly",
        "--weekday",
        "5",
    ]);
    assert_eq!(
        chosen["data"]["digest"],
        json!({"period": "weekly", "hour": 7, "weekday": 5})
    );
    let shown = as_kim(&["notification", "preferences"]);
    assert_eq!(shown["data"], chosen["data"]);

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
