//! Live events over Socket.IO, heard with the official client: by whoever may, once, in order, from any server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use nimbus_control_app::LiveRelay;
use nimbus_control_events::{NewEvent, kind};
use nimbus_control_store::StoreError;
use nimbus_control_testing::TestValkey;
use nimbus_control_valkey::ValkeyFanOut;
use nimbus_core::TenantId;
use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::socket_io::{Served, SocketIoClient};
use crate::support::{Installation, installation, text};

/// Publishes numbered events of a tenant, as a change of it would.
pub(crate) async fn publish(
    nimbus: &Installation,
    tenant: TenantId,
    numbers: std::ops::Range<i64>,
    size: usize,
) {
    let filler = "x".repeat(size);
    let event = |number: i64| {
        let data = json!({"number": number, "filler": filler});
        NewEvent::new(kind::TENANT_UPDATED, tenant, data)
    };
    let events: Vec<_> = numbers.map(event).collect();
    let done: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| tx.live_publish(&events).await)
        .await;
    done.unwrap();
}

pub(crate) fn number(event: &Value) -> Option<i64> {
    event["data"]["number"].as_i64()
}

/// Reads until the event with this number; the numbers that came, and nothing else that has one.
async fn numbers_until(client: &mut SocketIoClient, last: i64) -> Vec<i64> {
    let end = client
        .until(|said| said["on"] == "event" && number(&said["data"]) == Some(last))
        .await;
    let mut numbers: Vec<_> = client.heard().iter().filter_map(number).collect();
    numbers.extend(number(&end["data"]));
    numbers
}

/// A tenant with people, a server, and what passes events on.
pub(crate) struct Site {
    pub(crate) nimbus: Installation,
    pub(crate) owner: String,
    pub(crate) acme: TenantId,
    pub(crate) served: Served,
    _relay: LiveRelay,
}

impl Site {
    pub(crate) async fn new(nimbus: Installation) -> Self {
        let owner = nimbus.set_up().await;
        let acme = nimbus.tenant(&owner, "acme").await.parse().unwrap();
        let served = Served::new(nimbus.router.clone()).await;
        Self {
            _relay: nimbus.relay(),
            owner,
            acme,
            served,
            nimbus,
        }
    }

    pub(crate) async fn person(&self, name: &str, role: Option<&str>) -> (String, String) {
        let email = format!("{name}@acme.example");
        let tenant = self.acme.to_string();
        let id = self.nimbus.user(&self.owner, &tenant, &email, role).await;
        (id, self.nimbus.token("acme", &email).await)
    }
}

#[tokio::test]
async fn a_change_is_heard_in_the_rooms_of_its_tenant_its_person_and_its_resource() {
    let modules = tool_or_skip!(Tool::SocketIoClient);
    let site = Site::new(installation!()).await;
    let (viewer, token) = site.person("vi", Some("viewer")).await;
    let url = site.served.url();
    let (mut vi, ready) = SocketIoClient::connected(&modules, &url, json!({"token": token})).await;
    let own = [format!("tenant:{}", site.acme), format!("user:{viewer}")];
    assert_eq!(ready["rooms"], json!(own));
    // A change through the API, with the trace of its request.
    let path = format!("/api/v1/tenants/{}/users/{viewer}", site.acme);
    let change = json!({"display_name": "Violet"});
    let patched = site
        .nimbus
        .call("PATCH", &path, Some(&site.owner), Some(change))
        .await;
    let trace = patched.headers["x-trace-id"].to_str().unwrap().to_owned();
    assert_eq!(patched.status, StatusCode::OK);
    let event = vi.event("user.updated").await;
    assert_eq!(event["type"], "user.updated");
    assert_eq!(event["tenant_id"], site.acme.to_string());
    assert_eq!(event["trace_id"], trace);
    assert_eq!(event["data"]["resource_id"], viewer);
    assert_eq!(event["data"]["changes"]["display_name"], "Violet");
    assert!(event["timestamp"].as_str().unwrap().ends_with('Z'));
    // It was in two of the rooms and came once; the audit trail is not for viewers.
    let other = site.person("ann", Some("admin")).await;
    vi.event("user.created").await;
    let heard = vi.heard();
    assert!(
        !heard
            .iter()
            .any(|said| said["type"] == "user.updated" || said["type"] == "audit.recorded"),
        "{heard:?}"
    );
    let (mut ann, _) = SocketIoClient::connected(&modules, &url, json!({"token": other.1})).await;
    // Whoever leaves the tenant's room hears of the resource alone.
    assert_eq!(
        ann.ask("unsubscribe", json!({"room": own[0]})).await["ok"],
        true
    );
    let room = format!("resource:{viewer}");
    assert_eq!(
        ann.ask("subscribe", json!({"room": room})).await["ok"],
        true
    );
    let change = json!({"display_name": "Vera"});
    let third = site.person("joe", None).await;
    site.nimbus
        .call("PATCH", &path, Some(&site.owner), Some(change))
        .await
        .ok();
    assert_eq!(
        ann.event("user.updated").await["data"]["changes"]["display_name"],
        "Vera"
    );
    let heard = ann.heard();
    assert!(
        heard
            .iter()
            .all(|event| !event.to_string().contains(&third.0)),
        "{heard:?}"
    );
    // What is about a session is for its person alone.
    site.nimbus.token("acme", "vi@acme.example").await;
    assert_eq!(vi.event("session.started").await["type"], "session.started");
    publish(&site.nimbus, site.acme, 0..1, 1).await;
    numbers_until(&mut vi, 0).await;
    assert!(
        !ann.heard()
            .iter()
            .any(|event| event["type"] == "session.started")
    );
}

#[tokio::test]
async fn rooms_of_others_look_like_rooms_that_are_not_there() {
    let modules = tool_or_skip!(Tool::SocketIoClient);
    let site = Site::new(installation!()).await;
    let other = site.nimbus.tenant(&site.owner, "other").await;
    let email = "eve@other.example";
    let eve = site
        .nimbus
        .user(&site.owner, &other, email, Some("admin"))
        .await;
    let (viewer, _) = site.person("vi", Some("viewer")).await;
    let token = site.nimbus.token("other", email).await;
    let url = site.served.url();
    let auth = json!({"token": token});
    let (mut client, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let nowhere = uuid::Uuid::new_v4();
    let absent = client
        .ask("subscribe", json!({"room": format!("tenant:{nowhere}")}))
        .await;
    assert_eq!(absent["error"]["code"], "NIM-0856");
    for room in [
        json!({"room": format!("tenant:{}", site.acme)}),
        json!({"room": format!("user:{viewer}")}),
        json!({"room": format!("resource:{viewer}")}),
        json!({"room": format!("resource:{viewer}"), "tenant": site.acme.to_string()}),
        json!({"room": "resource:D1"}),
        json!({"room": "stack_instance:D1", "tenant": "acme"}),
        json!({"room": "stack_instance:D1/dev"}),
    ] {
        assert_eq!(
            client.ask("subscribe", room.clone()).await,
            absent,
            "{room}"
        );
    }
    for wrong in [
        json!({}),
        json!({"room": "everything"}),
        json!([1]),
        json!({"room": "resource:"}),
        json!({"room": "tenant:*"}),
        // None of these is an id, and none reaches the database.
        json!({"room": "resource:\u{0}"}),
        json!({"room": "stack_instance:D1\u{0}/dev"}),
        json!({"room": "resource:D1' OR 1"}),
        json!({"room": "resource:D1", "tenant": "acme\u{0}"}),
    ] {
        let answer = client.ask("subscribe", wrong.clone()).await;
        assert_eq!(answer["ok"], false, "{wrong}");
        assert!(
            !answer.to_string().contains("NIM-0809"),
            "{wrong}: {answer}"
        );
    }
    // Nothing of the other tenant was told meanwhile, and the own is.
    publish(&site.nimbus, site.acme, 0..5, 1).await;
    publish(&site.nimbus, other.parse().unwrap(), 10..11, 1).await;
    assert_eq!(numbers_until(&mut client, 10).await, [10]);
    // The operator is above both and hears either, where it asks to.
    let auth = json!({"token": site.owner});
    let (mut owner, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let room = json!({"room": format!("tenant:{}", site.acme)});
    assert_eq!(owner.ask("subscribe", room).await["ok"], true);
    publish(&site.nimbus, site.acme, 20..21, 1).await;
    assert_eq!(numbers_until(&mut owner, 20).await, [20]);
    assert!(!eve.is_empty());
    // Without a sign-in nobody is there at all.
    for auth in [json!({}), json!({"token": "garbage"})] {
        let mut nobody = SocketIoClient::new(&modules);
        nobody
            .order(json!({"op": "connect", "url": url, "auth": auth}))
            .await;
        let refused = nobody.until(|said| said["on"] == "connect_error").await;
        assert!(text(&refused["message"]).starts_with("NIM-08"), "{refused}");
    }
}

#[tokio::test]
async fn whoever_may_not_any_more_hears_nothing_after_five_seconds() {
    let modules = tool_or_skip!(Tool::SocketIoClient);
    let site = Site::new(installation!()).await;
    let (viewer, token) = site.person("vi", Some("viewer")).await;
    let url = site.served.url();
    let auth = json!({"token": token});
    let (mut signed_out, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let auth = json!({"token": site.nimbus.token("acme", "vi@acme.example").await});
    let (mut unassigned, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let began = Instant::now();
    site.nimbus
        .post("/api/v1/auth/logout", &token, json!({}))
        .await
        .ok();
    signed_out.until(|said| said["on"] == "disconnect").await;
    assert!(began.elapsed() < Duration::from_secs(5));
    // The role goes, and with it what it let them hear; what is about themselves stays.
    let list = format!("/api/v1/tenants/{}/role-assignments", site.acme);
    let assignments = site.nimbus.get(&list, &site.owner).await.ok();
    let began = Instant::now();
    for assignment in assignments["items"].as_array().unwrap() {
        if assignment["user_id"] == viewer.as_str() {
            let path = format!("{list}/{}", text(&assignment["id"]));
            site.nimbus
                .call("DELETE", &path, Some(&site.owner), None)
                .await
                .ok();
        }
    }
    let path = format!("/api/v1/tenants/{}/users/{viewer}", site.acme);
    let mut last = 0;
    // Until a round of events passes of which only their own is heard.
    loop {
        publish(&site.nimbus, site.acme, last..last + 1, 1).await;
        let change = json!({"display_name": format!("Vi {last}")});
        site.nimbus
            .call("PATCH", &path, Some(&site.owner), Some(change))
            .await
            .ok();
        unassigned.event("user.updated").await;
        if unassigned
            .heard()
            .iter()
            .filter_map(number)
            .next()
            .is_none()
        {
            break;
        }
        last += 1;
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_client_that_comes_back_loses_nothing_and_hears_nothing_twice() {
    let modules = tool_or_skip!(Tool::SocketIoClient);
    let site = Site::new(installation!()).await;
    let (_, token) = site.person("vi", Some("viewer")).await;
    let url = site.served.url();
    let auth = json!({"token": token});
    let (mut client, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let mut heard = Vec::new();
    for round in 0..5 {
        let first = round * 100;
        publish(&site.nimbus, site.acme, first..first + 50, 1).await;
        client.order(json!({"op": "break"})).await;
        publish(&site.nimbus, site.acme, first + 50..first + 100, 1).await;
        heard.extend(numbers_until(&mut client, first + 99).await);
    }
    assert_eq!(heard, (0..500).collect::<Vec<_>>());
    // It does not read for a while: what is sent is what fits, and the rest waits in the log.
    client.signal(Signal::SIGSTOP);
    for part in 0..15 {
        let first = 500 + part * 100;
        publish(&site.nimbus, site.acme, first..first + 100, 6000).await;
    }
    client.signal(Signal::SIGCONT);
    let rest = numbers_until(&mut client, 1999).await;
    assert_eq!(rest, (500..2000).collect::<Vec<_>>());
    // Too far behind is said, and then goes on from now.
    let ready = SocketIoClient::connected(&modules, &url, json!({"token": token}))
        .await
        .1;
    for part in 0..11 {
        let first = 4000 + part * 1000;
        publish(&site.nimbus, site.acme, first..first + 1000, 1).await;
    }
    // Its log is told to the end before.
    drop(client);
    relayed(&site.nimbus).await;
    let auth = json!({"token": token, "since": ready["cursor"]});
    let (mut late, _) = SocketIoClient::connected(&modules, &url, auth).await;
    let gap = late.event("gap").await;
    assert_eq!(gap["from"], ready["cursor"]);
    publish(&site.nimbus, site.acme, 20_000..20_001, 1).await;
    assert_eq!(numbers_until(&mut late, 20_000).await, [20_000]);
    // So is a place that is of no log.
    let other = format!("{}.3", uuid::Uuid::new_v4().simple());
    let auth = json!({"token": token, "since": other});
    let (mut strange, _) = SocketIoClient::connected(&modules, &url, auth).await;
    assert_eq!(strange.event("gap").await["from"], other);
}

#[tokio::test]
async fn two_servers_with_valkey_are_one_and_the_loss_of_either_loses_nothing() {
    let modules = tool_or_skip!(Tool::SocketIoClient);
    let mut valkey = TestValkey::start(&tool_or_skip!(Tool::Valkey));
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme: TenantId = nimbus.tenant(&owner, "acme").await.parse().unwrap();
    let second = nimbus.another_server("second").await;
    let way = || Arc::new(ValkeyFanOut::new(&valkey.url(), "test").unwrap());
    let (one, two) = (
        Served::new(nimbus.router.clone()).await,
        Served::new(second.router.clone()).await,
    );
    let relay = nimbus.app.start_live(way());
    let _other = second.app.start_live(way());
    let room = json!({"room": format!("tenant:{acme}")});
    let auth = json!({"token": owner});
    let (mut here, _) = SocketIoClient::connected(&modules, &one.url(), auth.clone()).await;
    let (mut there, _) = SocketIoClient::connected(&modules, &two.url(), auth).await;
    for client in [&mut here, &mut there] {
        assert_eq!(client.ask("subscribe", room.clone()).await["ok"], true);
    }
    let (mut first, mut other) = (Vec::new(), Vec::new());
    for (number, server) in [(0, &nimbus), (1, &second)] {
        publish(server, acme, number..number + 1, 1).await;
        first.extend(numbers_until(&mut here, number).await);
        other.extend(numbers_until(&mut there, number).await);
    }
    // Without Valkey everybody looks by themselves.
    valkey.kill();
    publish(&nimbus, acme, 2..3, 1).await;
    publish(&second, acme, 3..4, 1).await;
    first.extend(numbers_until(&mut here, 3).await);
    other.extend(numbers_until(&mut there, 3).await);
    // That it is away is found out beside.
    let told = async |heard: &str| {
        let line = format!("nimbus_live_fan_out{{way=\"valkey\"}} {heard}");
        let begun = Instant::now();
        while !second.database.store.metrics().text().contains(&line) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{line}");
            // tidy-allow(sleep): a metric is looked at until it says so
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    told("0").await;
    valkey.resume();
    publish(&second, acme, 4..5, 1).await;
    first.extend(numbers_until(&mut here, 4).await);
    // One server goes, and its clients come to the other with what they have.
    relay.stop().await;
    drop(one);
    publish(&second, acme, 5..8, 1).await;
    here.order(json!({"op": "move", "url": two.url()})).await;
    here.event("ready").await;
    let since =
        json!({"room": format!("tenant:{acme}"), "since": cursor_of(&nimbus, acme, 4).await});
    assert_eq!(here.ask("subscribe", since).await["ok"], true);
    publish(&second, acme, 8..9, 1).await;
    first.extend(numbers_until(&mut here, 8).await);
    other.extend(numbers_until(&mut there, 8).await);
    let all: Vec<i64> = (0..9).collect();
    assert_eq!((first, other), (all.clone(), all));
}

/// Waits until nothing is in the outbox.
async fn relayed(nimbus: &Installation) {
    let store = &nimbus.database.store;
    while store.live_waiting().await.unwrap().0 > 0 {
        // tidy-allow(sleep): nothing tells when an outbox is empty
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The cursor of the event of a number. Not counted from the end: others may still be on their way there.
async fn cursor_of(nimbus: &Installation, tenant: TenantId, number: i64) -> String {
    let read: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| {
            let mut from = tx.live_head().await?;
            from.seq = 0;
            tx.live_after(from, 10_000).await
        })
        .await;
    let events = read.unwrap();
    let found = events.iter().find(|event| event.data["number"] == number);
    found.unwrap().cursor.to_string()
}
