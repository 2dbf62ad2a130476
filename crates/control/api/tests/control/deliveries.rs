//! Notifications that leave the application by webhook: signed, tried again, dead letters, and nothing inwards.

use std::time::Duration;

use axum::http::StatusCode;
use nimbus_control_store::{
    AttemptEnd, DeliveryChannels, DeliveryEnd, NewNotification, NotifiedPeople, StoreError,
};
use nimbus_outbound::AddressRules;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use uuid::Uuid;

use crate::approvals::{Site, refused, site, step, user};
use crate::support::{Installation, text};
use crate::webhook_receiver::{HeardCall, Reply, WebhookReceiver};

/// A site whose server calls these receivers, although they are on this machine.
async fn calling(binaries: &std::path::Path, receivers: &[&WebhookReceiver]) -> Site {
    let ports = receivers.iter().map(|receiver| receiver.port).collect();
    let nimbus = Box::pin(Installation::with(binaries, |settings, _| {
        settings.webhooks.rules = AddressRules {
            allowed: vec!["127.0.0.1/32".parse().unwrap()],
            plain: true,
            ports,
        };
        settings.webhooks.timeout = Duration::from_secs(3);
    }))
    .await;
    let site = Box::pin(site(nimbus)).await;
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    site
}

impl Site {
    fn hooks(&self, rest: &str) -> String {
        format!("/api/v1/tenants/{}/webhooks{rest}", self.acme)
    }

    fn sent(&self, rest: &str) -> String {
        format!("/api/v1/tenants/{}/deliveries{rest}", self.acme)
    }

    async fn hook(&self, name: &str, receiver: &WebhookReceiver, kinds: &[&str]) -> Value {
        let body = json!({"name": name, "url": receiver.url(), "kinds": kinds});
        self.nimbus
            .post(&self.hooks(""), &self.ana.0, body)
            .await
            .ok()
    }

    async fn deliveries(&self, query: &str) -> Vec<Value> {
        let path = self.sent(query);
        let found = self.nimbus.get(&path, &self.ana.0).await.ok();
        found["items"].as_array().unwrap().clone()
    }

    async fn detail(&self, id: &str) -> Value {
        let path = self.sent(&format!("/{id}"));
        self.nimbus.get(&path, &self.ana.0).await.ok()
    }

    /// Tells people, and webhooks, something as a use case would.
    pub(crate) async fn tell(&self, to: &[&str], title: &str) {
        let new = NewNotification {
            kind: "run_failed",
            title: title.to_owned(),
            body: "the network was gone".to_owned(),
            approval: None,
            run: None,
            deployment: None,
            environment: None,
        };
        let to = NotifiedPeople {
            users: to.iter().map(|id| id.parse().unwrap()).collect(),
            ..NotifiedPeople::default()
        };
        let store = &self.nimbus.database.store;
        let told: Result<_, StoreError> = store
            .tenant_tx(self.acme, async |tx| tx.notify(&new, &to).await)
            .await;
        told.unwrap();
    }

    pub(crate) async fn own_schema(&self) -> String {
        let query = format!(
            "SELECT schema_name FROM nimbus_core.tenants WHERE id = '{}'",
            self.acme
        );
        self.nimbus.database.texts(&query).await.concat()
    }

    /// Lets the time come at which everything that waits is due.
    pub(crate) async fn later(&self) {
        let schema = self.own_schema().await;
        let statements = format!(
            "UPDATE {schema}.deliveries SET due_at = now() WHERE status = 'pending';
             UPDATE {schema}.notification_digests SET due_at = now() WHERE due_at IS NOT NULL;
             UPDATE nimbus_core.delivery_turns SET due_at = now();"
        );
        self.nimbus.database.run_as_administrator(&statements).await;
    }

    pub(crate) async fn deliver(&self) -> usize {
        self.nimbus.app.deliver_due().await.unwrap()
    }
}

fn verified(call: &HeardCall, secret: &Value) -> bool {
    let webhook = Webhook::new(&text(secret)).unwrap();
    webhook.verify(&call.body, &call.headers).is_ok()
}

#[tokio::test]
async fn an_approval_is_a_signed_call_that_its_receiver_verifies() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (receiver, other) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let site = calling(&binaries, &[&receiver, &other]).await;
    let made = site.hook("pager", &receiver, &["approval_required"]).await;
    site.hook("failures", &other, &["run_failed"]).await;
    let secret = made["secret"].clone();
    assert!(text(&secret).starts_with("whsec_"));

    let (run, approval) = site.waiting().await;
    assert_eq!(site.deliver().await, 1);
    assert_eq!(site.deliver().await, 0);
    let heard = receiver.heard();
    assert_eq!((heard.len(), other.heard().len()), (1, 0));
    let call = &heard[0];
    assert!(verified(call, &secret));
    let mut changed = call.clone();
    changed.body[10] ^= 1;
    assert!(!verified(&changed, &secret));
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(body["type"], "approval_required");
    assert_eq!(body["data"]["approval"], approval.as_str());
    assert_eq!(body["data"]["run"], run.as_str());
    assert_eq!(body["data"]["tenant_id"], site.acme.to_string());
    assert!(text(&body["timestamp"]).ends_with('Z'));

    let sent = &site.deliveries("?status=delivered").await[0];
    assert_eq!(text(&sent["id"]), call.header("webhook-id"));
    let detail = site.detail(&text(&sent["id"])).await;
    assert_eq!(detail["attempts"], 1);
    assert_eq!(detail["tries"][0]["status"], 200);
    assert!(detail["tries"][0]["ended_at"].is_string(), "{detail}");

    // A new secret signs beside the one before it, and neither is shown or kept readably.
    let id = text(&made["id"]);
    let rotate = site.hooks(&format!("/{id}/rotate"));
    let rotated = site.nimbus.post(&rotate, &site.ana.0, json!({})).await.ok();
    assert_ne!(rotated["secret"], secret);
    let test = site.hooks(&format!("/{id}/test"));
    site.nimbus.post(&test, &site.ana.0, json!({})).await.ok();
    assert_eq!(site.deliver().await, 1);
    let call = &receiver.heard()[1];
    assert!(verified(call, &secret) && verified(call, &rotated["secret"]));
    let listed = site.nimbus.get(&site.hooks(""), &site.ana.0).await.ok();
    let dump = site.nimbus.database.dump().await;
    for shown in [&secret, &rotated["secret"]] {
        let bare = text(shown)["whsec_".len()..].to_owned();
        assert!(!listed.to_string().contains(&bare) && !dump.contains(&bare));
    }
    // After the day of both only the new one signs.
    let schema = site.own_schema().await;
    let over = format!(
        "UPDATE {schema}.webhooks SET previous_until = now() - interval '1 second'
         WHERE previous_until IS NOT NULL"
    );
    site.nimbus.database.run_as_administrator(&over).await;
    site.nimbus.post(&test, &site.ana.0, json!({})).await.ok();
    site.deliver().await;
    let call = &receiver.heard()[2];
    assert!(!verified(call, &secret) && verified(call, &rotated["secret"]));

    let actions = site
        .nimbus
        .database
        .texts(
            "SELECT action FROM nimbus_core.audit_logs WHERE action LIKE 'webhooks.%' AND priority <> 'low'
             ORDER BY sequence",
        )
        .await;
    let names = ["create", "create", "rotate", "test", "test"];
    assert_eq!(actions, names.map(|name| format!("webhooks.{name}")));
}

#[tokio::test]
async fn a_receiver_that_fails_is_tried_again_and_ends_as_a_dead_letter_that_can_be_sent_again() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (receiver, inside) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let site = calling(&binaries, &[&receiver, &inside]).await;
    let made = site.hook("pager", &receiver, &[]).await;
    receiver.reply([
        Reply::Status(500),
        Reply::Redirect(inside.url()),
        Reply::Silent,
        Reply::Redirect("http://169.254.169.254/latest/".to_owned()),
    ]);
    receiver.reply(std::iter::repeat_n(Reply::Status(503), 6));
    site.waiting().await;
    let mut id = String::new();
    for number in 1..=10 {
        assert_eq!(site.deliver().await, 1, "{number}");
        // Not before its time.
        assert_eq!(site.deliver().await, 0, "{number}");
        let delivery = &site.deliveries("").await[0];
        id = text(&delivery["id"]);
        let status = if number < 10 { "pending" } else { "dead" };
        assert_eq!(delivery["status"], status, "{delivery}");
        assert_eq!(delivery["attempts"], number);
        assert_eq!(delivery["next_attempt_at"].is_string(), number < 10);
        let again = site.sent(&format!("/{id}/resend"));
        if number == 1 {
            let early = site.nimbus.post(&again, &site.ana.0, json!({})).await;
            refused(&early, StatusCode::CONFLICT, "NIM-0961");
        }
        site.later().await;
    }
    assert!(inside.heard().is_empty(), "a redirect was followed");
    let tries = site.detail(&id).await["tries"].as_array().unwrap().clone();
    let statuses: Vec<_> = tries
        .iter()
        .rev()
        .map(|one| one["status"].clone())
        .collect();
    assert_eq!(
        statuses[..4],
        [json!(500), json!(302), Value::Null, json!(302)]
    );
    assert!(text(&tries[7]["problem"]).contains("in time"), "{tries:?}");
    assert_eq!(site.deliveries("?status=dead").await.len(), 1);

    // Sent again it has the same id; an answer that never ends is an answer.
    receiver.reply([Reply::Endless]);
    let again = site.hooks(&format!("/{}/resend", text(&made["id"])));
    let resent = site.nimbus.post(&again, &site.ana.0, json!({})).await.ok();
    assert_eq!(resent, json!({"resent": 1}));
    assert_eq!(site.deliver().await, 1);
    let ids: Vec<_> = receiver
        .heard()
        .iter()
        .map(|call| call.header("webhook-id"))
        .collect();
    assert!(
        ids.len() == 11 && ids.iter().all(|one| *one == id),
        "{ids:?}"
    );
    assert_eq!(site.detail(&id).await["status"], "delivered");

    // A receiver that is gone for good is not called any more, and nothing is written for it.
    receiver.reply([Reply::Status(410)]);
    site.tell(&[], "second").await;
    assert_eq!(site.deliver().await, 1);
    let hook = &site.nimbus.get(&site.hooks(""), &site.ana.0).await.ok()["items"][0];
    assert_eq!(hook["enabled"], false);
    assert!(text(&hook["disabled_reason"]).contains("410"), "{hook}");
    let before = site.deliveries("").await.len();
    site.tell(&[], "third").await;
    assert_eq!(site.deliveries("").await.len(), before);
    let dead = text(&site.deliveries("?status=dead").await[0]["id"]);
    let again = site.sent(&format!("/{dead}/resend"));
    let off = site.nimbus.post(&again, &site.ana.0, json!({})).await;
    refused(&off, StatusCode::CONFLICT, "NIM-0962");
    let path = site.hooks(&format!("/{}", text(&hook["id"])));
    let on = json!({"name": "pager", "url": receiver.url()});
    let on = site
        .nimbus
        .call("PUT", &path, Some(&site.ana.0), Some(on))
        .await
        .ok();
    assert!(on.get("disabled_reason").is_none(), "{on}");
    site.nimbus.post(&again, &site.ana.0, json!({})).await.ok();
    assert_eq!(site.deliver().await, 1);

    // What was not delivered to one that is deleted has nowhere to go.
    receiver.reply([Reply::Status(500)]);
    site.tell(&[], "fourth").await;
    site.deliver().await;
    site.nimbus
        .call("DELETE", &path, Some(&site.ana.0), None)
        .await
        .ok();
    let dropped = text(&site.deliveries("?status=dropped").await[0]["id"]);
    let again = site.sent(&format!("/{dropped}/resend"));
    let gone = site.nimbus.post(&again, &site.ana.0, json!({})).await;
    refused(&gone, StatusCode::CONFLICT, "NIM-0962");
    site.later().await;
    assert_eq!(site.deliver().await, 0);
}

#[tokio::test]
async fn a_delivery_outlives_the_worker_that_had_it_and_is_no_other_tenants() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let receiver = WebhookReceiver::start().await;
    let site = calling(&binaries, &[&receiver]).await;
    site.hook("pager", &receiver, &[]).await;
    site.waiting().await;
    let store = &site.nimbus.database.store;
    let channels = DeliveryChannels {
        webhook: true,
        email: false,
    };
    let lease = Uuid::new_v4();
    let taken: Result<_, StoreError> = store
        .tenant_tx(site.acme, async |tx| {
            tx.deliveries_take(channels, lease, 60.0, 10).await
        })
        .await;
    let taken = taken.unwrap().remove(0);
    // While it is held nobody else sends it; then somebody does.
    assert_eq!(site.deliver().await, 0);
    site.later().await;
    assert_eq!(site.deliver().await, 1);
    let ended = AttemptEnd {
        end: DeliveryEnd::Dead,
        status: None,
        problem: Some("late".to_owned()),
    };
    let late: Result<_, StoreError> = store
        .tenant_tx(site.acme, async |tx| {
            tx.delivery_end(&taken, lease, &ended).await
        })
        .await;
    assert!(!late.unwrap(), "its lease is over");
    let detail = site.detail(&taken.id.to_string()).await;
    assert_eq!(detail["status"], "delivered");
    assert_eq!(detail["tries"][1]["problem"], "late");

    // Somebody of another tenant finds none of it, and calls only what may be called.
    let beta = site.nimbus.tenant(&site.owner, "beta").await;
    let admin = Some("tenant_admin");
    site.nimbus
        .user(&site.owner, &beta, "mal@beta.example", admin)
        .await;
    let mal = site.nimbus.token("beta", "mal@beta.example").await;
    for path in [
        site.hooks(""),
        site.sent(""),
        site.sent(&format!("/{}", taken.id)),
    ] {
        let found = site.nimbus.get(&path, &mal).await;
        assert_eq!(found.status, StatusCode::NOT_FOUND, "{path}");
    }
    let own = format!("/api/v1/tenants/{beta}/webhooks");
    let inner = receiver.port;
    for (url, status, code) in [
        ("nowhere".to_owned(), 400, "NIM-0859"),
        ("ftp://hooks.example/".to_owned(), 403, "NIM-0942"),
        ("https://10.0.0.1/".to_owned(), 403, "NIM-0942"),
        ("http://169.254.169.254/".to_owned(), 403, "NIM-0942"),
        (format!("http://127.0.0.2:{inner}/"), 403, "NIM-0942"),
        ("https://u:p@hooks.example/".to_owned(), 403, "NIM-0942"),
        (
            format!("https://hooks.example/{}", "x".repeat(2000)),
            400,
            "NIM-0859",
        ),
    ] {
        let answer = site
            .nimbus
            .post(&own, &mal, json!({"name": "x", "url": url}))
            .await;
        refused(&answer, StatusCode::from_u16(status).unwrap(), code);
    }
    let kind = json!({"name": "x", "url": "https://hooks.example/", "kinds": ["nothing"]});
    let answer = site.nimbus.post(&own, &mal, kind).await;
    refused(&answer, StatusCode::BAD_REQUEST, "NIM-0859");
    for number in 0..32 {
        let body = json!({"name": format!("h{number}"), "url": "https://hooks.example/"});
        site.nimbus.post(&own, &mal, body).await.ok();
    }
    let more = json!({"name": "more", "url": "https://hooks.example/"});
    let answer = site.nimbus.post(&own, &mal, more).await;
    assert!(answer.text.contains("NIM-0960"), "{}", answer.text);
}
