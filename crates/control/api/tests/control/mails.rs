//! Notifications that leave the application by mail, as each person wants them: at once, in a digest, or not.

use std::time::Duration;

use axum::http::StatusCode;
use nimbus_control_app::{MailEncryption, MailRelay};
use nimbus_control_store::StoreError;
use nimbus_control_testing::TestMailServer;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::approvals::{Site, refused, site, step, user};
use crate::support::Installation;

const PREFERENCES: &str = "/api/v1/notifications/preferences";

async fn mailing(binaries: &std::path::Path, relay: &TestMailServer) -> Site {
    let nimbus = Installation::with(binaries, |settings, _| {
        settings.mail = Some(MailRelay {
            host: "127.0.0.1".to_owned(),
            port: relay.port,
            user: None,
            password: None,
            encryption: MailEncryption::None,
            authorities: None,
            from: "Nimbus <nimbus@operator.example>".to_owned(),
        });
    })
    .await;
    site(nimbus).await
}

async fn choose(site: &Site, token: &str, body: Value) -> crate::support::Answer {
    site.nimbus
        .call("PATCH", PREFERENCES, Some(token), Some(body))
        .await
}

async fn unread(site: &Site, token: &str) -> usize {
    let found = site.nimbus.get("/api/v1/notifications", token).await.ok();
    found["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn whoever_may_decide_gets_a_mail_as_they_want_it_and_a_refused_one_is_a_dead_letter() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let relay = TestMailServer::start(false);
    let site = mailing(&binaries, &relay).await;
    let approvers = [user(&site.ana), user(&site.ben)];
    site.needs(json!([step(&approvers, json!("any"))])).await;
    let off = json!({"set": [
        {"kind": "approval_required", "channel": "in_app", "mode": "off"},
        {"kind": "*", "channel": "email", "mode": "off"},
        {"kind": "approval_required", "channel": "email", "mode": "instant"}]});
    choose(&site, &site.ana.0, off).await.ok();
    let none = json!({"set": [{"kind": "*", "channel": "email", "mode": "off"}]});
    choose(&site, &site.ben.0, none).await.ok();

    site.waiting().await;
    assert_eq!(site.deliver().await, 1);
    let mails = relay.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].to, "ana@acme.example");
    assert_eq!(mails[0].from, "nimbus@operator.example");
    assert!(
        mails[0].text.contains("waits for your decision"),
        "{}",
        mails[0].text
    );
    assert_eq!(
        (
            unread(&site, &site.ana.0).await,
            unread(&site, &site.ben.0).await
        ),
        (0, 1)
    );

    // What a relay says about the address is final; everything else is tried again.
    let back = json!({"set": [{"kind": "*", "channel": "email", "mode": "default"}]});
    choose(&site, &site.ben.0, back).await.ok();
    relay.refuse_next("451 later");
    site.tell(&[&site.ben.1], "first").await;
    site.deliver().await;
    relay.refuse_next("550 no such user");
    site.later().await;
    assert_eq!(site.deliver().await, 1);
    assert_eq!(relay.mails().len(), 1);
    let path = format!("/api/v1/tenants/{}/deliveries", site.acme);
    let dead = format!("{path}?status=dead&channel=email");
    let dead = &site.nimbus.get(&dead, &site.ana.0).await.ok()["items"][0];
    assert_eq!(dead["user"], site.ben.1.as_str());
    let id = dead["id"].as_str().unwrap();
    let detail = site
        .nimbus
        .get(&format!("{path}/{id}"), &site.ana.0)
        .await
        .ok();
    assert_eq!(
        (&detail["tries"][0]["status"], &detail["tries"][1]["status"]),
        (&json!(550), &json!(451))
    );
    // What it says is Ben's.
    assert!(!detail.to_string().contains("network"), "{detail}");
    let again = format!("{path}/{id}/resend");
    site.nimbus.post(&again, &site.ana.0, json!({})).await.ok();
    assert_eq!(site.deliver().await, 1);
    let mails = relay.mails();
    assert_eq!((mails.len(), mails[1].to.as_str()), (2, "ben@acme.example"));
    assert!(
        mails[1]
            .text
            .contains(&format!("Message-ID: <{id}@operator.example>"))
    );

    // Nobody who is disabled is written to, and what was for somebody goes with them.
    site.tell(&[&site.ben.1], "second").await;
    let ben = format!("/api/v1/tenants/{}/users/{}", site.acme, site.ben.1);
    let disable = json!({"disabled": true});
    site.nimbus
        .call("PATCH", &ben, Some(&site.owner), Some(disable))
        .await
        .ok();
    assert_eq!(site.deliver().await, 1);
    assert_eq!(relay.mails().len(), 2);
    site.nimbus
        .call("DELETE", &ben, Some(&site.owner), None)
        .await
        .ok();
    let schema = site.own_schema().await;
    let left = format!(
        "SELECT id::text FROM {schema}.deliveries WHERE person = '{}'",
        site.ben.1
    );
    assert!(site.nimbus.database.texts(&left).await.is_empty());
}

#[tokio::test]
async fn a_digest_is_gathered_and_sent_once_whenever_a_server_dies() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let relay = TestMailServer::start(false);
    let site = mailing(&binaries, &relay).await;
    let chosen = json!({"set": [{"kind": "run_failed", "channel": "email", "mode": "digest"}],
        "digest": {"period": "weekly", "hour": 6, "weekday": 3}});
    let chosen = choose(&site, &site.ana.0, chosen).await.ok();
    assert_eq!(
        chosen["digest"],
        json!({"period": "weekly", "hour": 6, "weekday": 3})
    );
    assert!(chosen.get("digest_due_at").is_none(), "{chosen}");
    for title in ["first", "second"] {
        site.tell(&[&site.ana.1], title).await;
    }
    assert_eq!(site.deliver().await, 0);
    let waiting = site.nimbus.get(PREFERENCES, &site.ana.0).await.ok();
    let due: jiff::Timestamp = waiting["digest_due_at"].as_str().unwrap().parse().unwrap();
    let due = due.to_zoned(jiff::tz::TimeZone::UTC);
    assert_eq!(
        (due.hour(), due.weekday()),
        (6, jiff::civil::Weekday::Wednesday)
    );
    assert!(due.timestamp() > jiff::Timestamp::now());

    // A server that dies while it gathers leaves everything; one that dies before it sends leaves a delivery.
    site.later().await;
    let store = &site.nimbus.database.store;
    let died: Result<(), StoreError> = store
        .tenant_tx(site.acme, async |tx| {
            assert_eq!(tx.digests_gather().await?, 1);
            Err(StoreError::NotFound("server"))
        })
        .await;
    assert!(died.is_err());
    // The dead server's transaction is rolled back behind our back; until then its digests are passed over.
    let gather = async || -> usize {
        let gathered: Result<_, StoreError> = store
            .tenant_tx(site.acme, async |tx| tx.digests_gather().await)
            .await;
        gathered.unwrap()
    };
    let gathered = async {
        loop {
            match gather().await {
                0 => tokio::task::yield_now().await,
                some => return some,
            }
        }
    };
    let gathered = tokio::time::timeout(Duration::from_secs(30), gathered).await;
    assert_eq!(gathered.unwrap(), 1);
    site.tell(&[&site.ana.1], "third").await;
    site.nimbus.app.deliver_due().await.unwrap();
    let mails = relay.mails();
    assert_eq!(mails.len(), 1);
    let mail = &mails[0].text;
    assert!(
        mail.contains("first") && mail.contains("second") && !mail.contains("third"),
        "{mail}"
    );
    assert!(
        mail.contains("Your week in Nimbus: 2 notifications"),
        "{mail}"
    );
    site.later().await;
    assert_eq!(site.deliver().await, 0);
    assert_eq!(site.nimbus.app.gather_digests().await.unwrap(), 1);
    assert_eq!(site.nimbus.app.gather_digests().await.unwrap(), 0);
    assert_eq!(site.deliver().await, 1);
    assert_eq!(site.deliver().await, 0);
    let mails = relay.mails();
    assert!(mails.len() == 2 && mails[1].text.contains("third"));

    for wrong in [
        json!({"set": [{"kind": "nothing", "channel": "email", "mode": "off"}]}),
        json!({"set": [{"kind": "*", "channel": "sms", "mode": "off"}]}),
        json!({"set": [{"kind": "*", "channel": "in_app", "mode": "digest"}]}),
        json!({"digest": {"period": "hourly"}}),
        json!({"digest": {"period": "daily", "hour": 24}}),
        json!({"unknown": 1}),
    ] {
        let answer = choose(&site, &site.ana.0, wrong).await;
        refused(&answer, StatusCode::BAD_REQUEST, "NIM-0859");
    }
    let document = "mutation { setNotificationPreferences(input: {set: [{kind: \"*\", channel: \"email\", \
                    mode: \"off\"}], digest: {period: \"daily\"}}) { digestPeriod digestHour mail \
                    kinds { kind inApp email } } }";
    let set = site
        .nimbus
        .graphql(&site.ben.0, document, json!({}))
        .await
        .ok();
    let set = &set["data"]["setNotificationPreferences"];
    assert_eq!(
        (&set["digestHour"], &set["mail"]),
        (&json!(7), &json!(true))
    );
    let all = set["kinds"].as_array().unwrap().iter();
    assert!(
        all.clone()
            .all(|one| one["email"] == "off" && one["inApp"] == "instant")
    );
}
