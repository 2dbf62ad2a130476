//! GraphQL subscriptions over graphql-transport-ws: who may, for how long, and that nothing is lost.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use nimbus_control_auth::operation::Need;
use nimbus_control_auth::role::{BUILT_IN, built_in};
use nimbus_control_graphql::field_operations;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::graphql_matrix::{KnownSchema, document};
use crate::live::{PATIENCE, Socket, Watched, plan, unit};
use crate::support::{ORIGIN, installation, text};

const PROTOCOL: (&str, &str) = ("sec-websocket-protocol", "graphql-transport-ws");

/// A socket on which the protocol has begun.
pub(crate) async fn open(watched: &Watched<'_>, token: &str) -> Socket {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), PROTOCOL];
    let mut socket = watched.open_at("/graphql", &headers).await.unwrap();
    say(&mut socket, json!({"type": "connection_init"})).await;
    assert_eq!(next(&mut socket).await.unwrap()["type"], "connection_ack");
    socket
}

pub(crate) async fn say(socket: &mut Socket, message: Value) {
    socket
        .send(Message::Text(message.to_string().into()))
        .await
        .unwrap();
}

pub(crate) async fn subscribe(socket: &mut Socket, id: &str, query: &str) {
    let message = json!({"type": "subscribe", "id": id, "payload": {"query": query}});
    say(socket, message).await;
}

/// The next message; `Err` is the number with which the socket was closed.
pub(crate) async fn next(socket: &mut Socket) -> Result<Value, u16> {
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        match message {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(close))) => {
                return Err(close.map_or(0, |close| close.code.into()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(0),
        }
    }
}

fn progress(watched: &Watched<'_>, more: &str) -> String {
    format!(
        "subscription {{ runProgress(tenantId: \"acme\", runId: \"{}\"{more}) {{ kind seq run {{ status deployment {{ id }} }} detail {{ units {{ name status }} }} events {{ seq kind }} }} }}",
        watched.run
    )
}

#[tokio::test]
async fn a_run_is_watched_to_its_end_and_gone_on_with_from_a_place() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    watched.append(&[plan(), unit("net", "running")]).await;
    let mut socket = open(&watched, &watched.owner).await;
    subscribe(&mut socket, "1", &progress(&watched, "")).await;
    let first = next(&mut socket).await.unwrap();
    let first = &first["payload"]["data"]["runProgress"];
    assert_eq!(
        (&first["kind"], &first["seq"]),
        (&json!("snapshot"), &json!(2)),
        "{first}"
    );
    assert_eq!(first["detail"]["units"][0]["status"], "running");
    assert_eq!(first["run"]["deployment"]["id"], "D1");
    watched.append(&[unit("net", "succeeded")]).await;
    let events = next(&mut socket).await.unwrap();
    let events = &events["payload"]["data"]["runProgress"]["events"];
    assert_eq!(*events, json!([{"seq": 3, "kind": "stack_completed"}]));
    // A second one on the same socket, from a place; and an ordinary question beside both.
    subscribe(&mut socket, "2", &progress(&watched, ", since: 1")).await;
    assert_eq!(
        next(&mut socket).await.unwrap()["payload"]["data"]["runProgress"]["kind"],
        "resumed"
    );
    let missed = next(&mut socket).await.unwrap();
    assert_eq!(missed["id"], "2");
    assert_eq!(missed["payload"]["data"]["runProgress"]["seq"], 3);
    subscribe(&mut socket, "3", "{ me { email } }").await;
    assert_eq!(
        next(&mut socket).await.unwrap()["payload"]["data"]["me"]["email"],
        "owner@operator.example"
    );
    assert_eq!(next(&mut socket).await.unwrap()["type"], "complete");
    watched.end().await;
    let mut completed = Vec::new();
    while completed.len() < 2 {
        let message = next(&mut socket).await.unwrap();
        if message["type"] == "complete" {
            completed.push(text(&message["id"]));
        }
    }
    completed.sort();
    assert_eq!(completed, ["1", "2"]);
}

#[tokio::test]
async fn changes_are_carried_out_over_a_socket_too() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let mut socket = open(&watched, &watched.owner).await;
    let make = "mutation { createGroup(tenantId: \"acme\", input: {name: \"live\"}) { name } }";
    subscribe(&mut socket, "m", make).await;
    let made = next(&mut socket).await.unwrap();
    assert_eq!(made["payload"]["data"]["createGroup"]["name"], "live");
    assert_eq!(next(&mut socket).await.unwrap()["type"], "complete");
    subscribe(&mut socket, "n", make).await;
    let again = next(&mut socket).await.unwrap();
    assert!(again["payload"]["errors"][0].is_object(), "{again}");
    // What is refused before it begins is recorded as well.
    assert_eq!(next(&mut socket).await.unwrap()["type"], "complete");
    subscribe(&mut socket, "o", "{ __schema { types { name } } }").await;
    let refused = next(&mut socket).await.unwrap();
    assert_eq!(
        refused["payload"]["errors"][0]["extensions"]["reference"],
        "NIM-0941"
    );
    let failed = nimbus.database.texts("SELECT new_value::text FROM nimbus_core.audit_logs WHERE action = 'graphql.watch' AND outcome = 'failed'").await;
    assert!(
        failed.iter().any(|one| one.contains("NIM-0941")),
        "{failed:?}"
    );
}

#[tokio::test]
async fn deployments_and_audit_trails_are_watched() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let mut socket = open(&watched, &watched.owner).await;
    subscribe(&mut socket, "d", "subscription { deploymentStatus(tenantId: \"acme\", deploymentId: \"D1\") { number status result } }").await;
    let status = async |socket: &mut Socket| {
        next(socket).await.unwrap()["payload"]["data"]["deploymentStatus"].clone()
    };
    assert_eq!(status(&mut socket).await["status"], "running");
    watched.end().await;
    assert_eq!(
        status(&mut socket).await,
        json!({"number": "R0001", "status": "ended", "result": "succeeded"})
    );
    say(&mut socket, json!({"type": "complete", "id": "d"})).await;

    let acme = watched.tenant;
    subscribe(&mut socket, "a", &format!("subscription {{ auditEvent(tenantId: \"{acme}\", after: 0) {{ sequence action user {{ id }} }} }}")).await;
    // What is recorded is told, in order and once; being watched is not recorded again and again.
    let mut actions = Vec::new();
    let mut last = 0;
    for number in 0..3 {
        let path = format!("/api/v1/tenants/{acme}/groups");
        nimbus
            .post(&path, &watched.owner, json!({"name": format!("g{number}")}))
            .await
            .ok();
    }
    while actions.iter().filter(|one| *one == "groups.create").count() < 3 {
        let told = next(&mut socket).await.unwrap();
        // The end of what is not watched any more may come late.
        if told["id"] != "a" {
            continue;
        }
        let entry = &told["payload"]["data"]["auditEvent"];
        let Some(sequence) = entry["sequence"].as_i64() else {
            panic!("{told}");
        };
        assert!(sequence > last, "{sequence} after {last}");
        last = sequence;
        actions.push(text(&entry["action"]));
    }
    let watching = actions.iter().filter(|one| *one == "audit.list").count();
    assert!(watching <= 1, "{actions:?}");
}

/// Without a place to begin at, a trail is told from when it is watched: nothing from before, and nothing is left out.
#[tokio::test]
async fn an_audit_trail_is_watched_from_now_on() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let acme = watched.tenant;
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let make = async |name: String| {
        let body = json!({"name": name});
        text(&nimbus.post(&groups, &watched.owner, body).await.ok()["id"])
    };
    let before = make("before".to_owned()).await;
    let mut socket = open(&watched, &watched.owner).await;
    let query = format!(
        "subscription {{ auditEvent(tenantId: \"{acme}\") {{ sequence action resourceId outcome }} }}"
    );
    subscribe(&mut socket, "a", &query).await;
    // Nobody is told that watching has begun, so things happen until one of them is heard of.
    let mut made = Vec::new();
    let first = loop {
        assert!(made.len() < 1000, "nothing is told of what happens");
        made.push(make(format!("g{}", made.len())).await);
        // The socket is read as long as it has something; making the next one lets the server have its turn.
        if let Some(Some(Ok(Message::Text(told)))) = socket.next().now_or_never() {
            break serde_json::from_str::<Value>(&told).unwrap();
        }
    };
    let last = make("last".to_owned()).await;
    let mut told = vec![first];
    while told.last().unwrap()["payload"]["data"]["auditEvent"]["resourceId"] != last.as_str() {
        told.push(next(&mut socket).await.unwrap());
    }
    let entries: Vec<_> = told
        .iter()
        .map(|one| &one["payload"]["data"]["auditEvent"])
        .collect();
    let sequences: Vec<_> = entries
        .iter()
        .map(|entry| entry["sequence"].as_u64().unwrap())
        .collect();
    let whole: Vec<_> = (sequences[0]..).take(sequences.len()).collect();
    assert_eq!(sequences, whole, "one after the other, none twice");
    let created: Vec<_> = entries
        .iter()
        .filter(|entry| entry["action"] == "groups.create")
        .map(|entry| text(&entry["resourceId"]))
        .collect();
    made.push(last);
    assert!(!created.contains(&before), "{created:?}");
    assert!(made.ends_with(&created), "{made:?} {created:?}");
}

/// S14 and S15: every subscription, every role, own and foreign.
#[tokio::test]
async fn only_who_may_watches() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let refused = |opened: Result<Socket, Error>| match opened {
        Err(Error::Http(response)) => response.status(),
        other => panic!("{other:?}"),
    };
    let bearer = format!("Bearer {}", watched.owner);
    assert_eq!(
        refused(watched.open_at("/graphql", &[PROTOCOL]).await),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        refused(
            watched
                .open_at("/graphql?access_token=x", &[PROTOCOL])
                .await
        ),
        StatusCode::UNAUTHORIZED
    );
    let other = [
        ("authorization", bearer.as_str()),
        ("sec-websocket-protocol", "graphql-ws"),
    ];
    assert_eq!(
        refused(watched.open_at("/graphql", &other).await),
        StatusCode::BAD_REQUEST
    );
    let evil = [
        ("cookie", "nimbus_session=x"),
        ("origin", "https://evil.example"),
        PROTOCOL,
    ];
    assert!(refused(watched.open_at("/graphql", &evil).await).is_client_error());
    assert!(ORIGIN.starts_with("https://nimbus"));

    let schema = KnownSchema::read();
    let foreign = nimbus.tenant(&watched.owner, "foreign").await;
    let live: Vec<_> = field_operations()
        .iter()
        .filter(|field| field.of == "Subscription")
        .collect();
    assert_eq!(live.len(), 9);
    // Whoever may watch these hears nothing until something happens.
    let silent = [
        "auditEvent",
        "resourceChanged",
        "stackStateChanged",
        "driftDetected",
        "eventReceived",
    ];
    for (role, _) in BUILT_IN {
        let email = format!("{}@acme.example", role.replace('_', "-"));
        nimbus
            .user(
                &watched.owner,
                &watched.tenant.to_string(),
                &email,
                Some(role),
            )
            .await;
        let token = nimbus.token("acme", &email).await;
        let role = built_in(role).unwrap();
        let mut socket = open(&watched, &token).await;
        for field in &live {
            let key = match field.operation.need {
                Need::Permission(key) => Some(key),
                // What one may hear is decided for each event.
                Need::SignIn => None,
                Need::Nothing => panic!("{}", field.name),
            };
            for (tenant, own) in [(foreign.clone(), false), (watched.tenant.to_string(), true)] {
                let query = document(&schema, **field, &tenant);
                let id = format!("{} {own}", field.name);
                subscribe(&mut socket, &id, &query).await;
                let allowed = own && key.is_none_or(|key| role.keys().contains(key));
                if allowed && silent.contains(&field.name) {
                    say(&mut socket, json!({"type": "complete", "id": id})).await;
                    continue;
                }
                // Of what is not there it is said that it is not, and of other people's as well.
                let code = loop {
                    let told = next(&mut socket).await.unwrap();
                    if told["id"] == id.as_str() && told["type"] != "complete" {
                        break text(&told["payload"]["errors"][0]["extensions"]["code"]);
                    }
                };
                let expected = if own && !allowed {
                    "FORBIDDEN"
                } else {
                    "NOT_FOUND"
                };
                assert_eq!(code, expected, "{} {query}", role.name);
            }
        }
    }
}

/// S15: a permission that is lost, and a session that ends, end what was being watched within five seconds.
#[tokio::test]
async fn whoever_may_no_longer_hears_no_more() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let tenant = watched.tenant.to_string();
    let (owner, nimbus) = (watched.owner.clone(), watched.nimbus);
    let user = nimbus.user(&owner, &tenant, "bob@acme.example", None).await;
    let assigned = nimbus.assign(&owner, &tenant, &user, "viewer").await.ok();
    let token = nimbus.token("acme", "bob@acme.example").await;
    let mut socket = open(&watched, &token).await;
    subscribe(&mut socket, "1", &progress(&watched, "")).await;
    assert_eq!(next(&mut socket).await.unwrap()["type"], "next");
    let path = format!(
        "/api/v1/tenants/{tenant}/role-assignments/{}",
        text(&assigned["id"])
    );
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    let begun = Instant::now();
    let last = loop {
        let told = next(&mut socket).await.unwrap();
        if !told["payload"]["errors"].is_null() {
            break told;
        }
    };
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        last["payload"]["errors"][0]["extensions"]["code"],
        "NOT_FOUND"
    );
    assert_eq!(next(&mut socket).await.unwrap()["type"], "complete");
    // What happens afterwards is not told, and neither is anything once the session ended.
    watched.append(&[plan()]).await;
    let path = format!("/api/v1/tenants/{tenant}/users/{user}/sessions");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    let begun = Instant::now();
    assert_eq!(next(&mut socket).await, Err(4401));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_socket_is_bounded_and_bad_messages_close_it() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    // More documents at once than one may.
    let mut socket = open(&watched, &watched.owner).await;
    let acme = watched.tenant;
    for number in 0..51 {
        let query = format!("subscription {{ auditEvent(tenantId: \"{acme}\") {{ action }} }}");
        subscribe(&mut socket, &format!("s{number}"), &query).await;
    }
    let refused = loop {
        let told = next(&mut socket).await.unwrap();
        if !told["payload"]["errors"].is_null() {
            break told;
        }
    };
    assert_eq!(
        refused["payload"]["errors"][0]["extensions"]["code"],
        "RATE_LIMITED"
    );
    drop(socket);
    // The limits of documents hold here too.
    let mut socket = open(&watched, &watched.owner).await;
    subscribe(
        &mut socket,
        "deep",
        &format!(
            "{{ viewer {{ tenant {} id {} }} }}",
            "{ parent ".repeat(10),
            "}".repeat(10)
        ),
    )
    .await;
    let told = next(&mut socket).await.unwrap();
    assert_eq!(
        told["payload"]["errors"][0]["extensions"]["reference"],
        "NIM-0940"
    );
    for wrong in ["nonsense", "{\"type\": \"nothing\"}", "[]"] {
        let mut socket = open(&watched, &watched.owner).await;
        socket.send(Message::Text(wrong.into())).await.unwrap();
        assert!(next(&mut socket).await.is_err(), "{wrong}");
    }
    let mut socket = open(&watched, &watched.owner).await;
    let _ = socket.send(Message::Text("x".repeat(300_000).into())).await;
    assert!(next(&mut socket).await.is_err());
}
