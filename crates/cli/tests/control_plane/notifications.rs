//! What somebody is told in person, read on the command line, by mail and by webhook of a server as it is started.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nimbus_control_testing::TestMailServer;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;

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

#[test]
fn somebody_lists_what_waits_for_them_and_notes_that_they_read_it() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let (port, heard) = receiver();
    let relay = TestMailServer::start(false);
    let site = Site::new(&postgres)
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_NETWORKS", "127.0.0.1/32")
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_PORTS", &port.to_string())
        .with("NIMBUS_NOTIFICATIONS_WEBHOOKS_PLAIN", "true")
        .with("NIMBUS_SMTP_HOST", "127.0.0.1")
        .with("NIMBUS_SMTP_PORT", &relay.port.to_string())
        .with("NIMBUS_SMTP_USER", "nimbus")
        .with("NIMBUS_SMTP_PASSWORD", "hush hush")
        .with("NIMBUS_SMTP_ENCRYPTION", "none")
        .with("NIMBUS_SMTP_FROM", "Nimbus <nimbus@operator.example>");
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
