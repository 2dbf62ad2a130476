//! GraphQL subscriptions to what happens in a tenant: each tells its part of the log, once, to whoever may hear it.

use nimbus_control_events::{NewEvent, kind};
use nimbus_control_store::{EnvironmentKey, StoreError};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::graphql_live::{next, open, say, subscribe};
use crate::live::{Socket, Watched, unit};
use crate::support::{Installation, installation, text};

/// Where a tenant's log ends now.
pub(crate) async fn head(nimbus: &Installation, tenant: TenantId) -> String {
    let head: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| tx.live_head().await)
        .await;
    head.unwrap().to_string()
}

async fn publish(nimbus: &Installation, tenant: TenantId, events: &[NewEvent]) {
    let done: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| tx.live_publish(events).await)
        .await;
    done.unwrap();
}

/// The next thing that a subscription tells.
pub(crate) async fn told(socket: &mut Socket, id: &str, field: &str) -> Value {
    loop {
        let message = next(socket).await.unwrap();
        if message["id"] == id {
            assert_eq!(message["type"], "next", "{message}");
            assert!(message["payload"]["errors"].is_null(), "{message}");
            return message["payload"]["data"][field].clone();
        }
    }
}

/// The error with which a subscription ends.
async fn refused(socket: &mut Socket, id: &str) -> Value {
    loop {
        let message = next(socket).await.unwrap();
        let error = &message["payload"]["errors"][0];
        if message["id"] == id && !error.is_null() {
            return error["extensions"].clone();
        }
    }
}

#[tokio::test]
async fn changes_of_resources_are_watched_and_gone_on_with() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let acme = watched.tenant;
    let begin = head(&nimbus, acme).await;
    let mut socket = open(&watched, &watched.owner).await;
    let query = |more: &str| {
        format!(
            "subscription {{ resourceChanged(tenantId: \"{acme}\"{more}) \
             {{ type tenantId resourceId resourceType changes traceId cursor }} }}"
        )
    };
    let since = format!(", since: \"{begin}\"");
    subscribe(&mut socket, "all", &query(&since)).await;
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        let body = json!({"name": name});
        let made = nimbus.post(&groups, &watched.owner, body).await.ok();
        ids.push(text(&made["id"]));
    }
    // In order, each once, and nothing of the trail or of runs between them.
    let mut first = Vec::new();
    while first.len() < 3 {
        let event = told(&mut socket, "all", "resourceChanged").await;
        assert_ne!(event["type"], "audit.recorded");
        assert_ne!(event["type"], "run.status_changed");
        if event["type"] == "group.created" {
            first.push(event);
        }
    }
    let told_ids: Vec<_> = first.iter().map(|one| text(&one["resourceId"])).collect();
    assert_eq!(told_ids, ids);
    assert_eq!(first[0]["tenantId"], acme.to_string());
    assert_eq!(first[0]["resourceType"], "groups");
    assert_eq!(first[0]["changes"]["name"], "one");
    assert!(!first[0]["traceId"].is_null());
    // Whoever comes back with a place hears what follows it and nothing before.
    let since = format!(", since: \"{}\"", text(&first[1]["cursor"]));
    subscribe(&mut socket, "later", &query(&since)).await;
    let later = told(&mut socket, "later", "resourceChanged").await;
    assert_eq!(later, first[2]);
    // What is about one thing alone.
    let one = format!(", resourceId: \"D1\", since: \"{begin}\"");
    subscribe(&mut socket, "one", &query(&one)).await;
    let event = NewEvent::new(kind::DEPLOYMENT_UPDATED, "D1", json!({"resource_id": "D1"}));
    publish(&nimbus, acme, &[event]).await;
    let of_one = told(&mut socket, "one", "resourceChanged").await;
    assert_eq!(of_one["type"], "deployment.updated");
    assert_eq!(of_one["changes"], json!({}));
}

#[tokio::test]
async fn a_place_that_is_none_ends_what_is_watched_and_says_so() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let acme = watched.tenant;
    let mut socket = open(&watched, &watched.owner).await;
    for (id, arguments, reference) in [
        ("form", "since: \"yesterday\"".to_owned(), "NIM-0859"),
        (
            "foreign",
            format!("since: \"{}.1\"", Uuid::new_v4().simple()),
            "NIM-0953",
        ),
        ("types", "types: [\"everything\"]".to_owned(), "NIM-0859"),
        ("none", "types: []".to_owned(), "NIM-0859"),
    ] {
        let query =
            format!("subscription {{ eventReceived(tenantId: \"{acme}\", {arguments}) {{ id }} }}");
        subscribe(&mut socket, id, &query).await;
        let error = refused(&mut socket, id).await;
        assert_eq!(error["reference"], reference, "{error}");
    }
    let absent = [
        format!(
            "subscription {{ resourceChanged(tenantId: \"{acme}\", resourceId: \"D0NONE\") {{ id }} }}"
        ),
        format!(
            "subscription {{ stackStateChanged(tenantId: \"{acme}\", stackInstance: \"x' OR 1\") {{ id }} }}"
        ),
    ];
    for query in absent {
        subscribe(&mut socket, &query, &query).await;
        let error = refused(&mut socket, &query).await;
        assert_eq!(error["code"], "NOT_FOUND", "{query}");
    }
}

#[tokio::test]
async fn states_drift_and_events_of_a_type_are_watched() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let acme = watched.tenant;
    let since = head(&nimbus, acme).await;
    let mut socket = open(&watched, &watched.owner).await;
    let states = format!(
        "subscription {{ stackStateChanged(tenantId: \"{acme}\", stackInstance: \"D1/dev\", since: \"{since}\") \
         {{ type resourceId deployment environment run status }} }}"
    );
    subscribe(&mut socket, "states", &states).await;
    watched.append(&[unit("net", "running")]).await;
    watched.end().await;
    let mut heard = Vec::new();
    loop {
        let event = told(&mut socket, "states", "stackStateChanged").await;
        assert_eq!(
            (&event["deployment"], &event["environment"], &event["run"]),
            (&json!("D1"), &json!("dev"), &json!(watched.run)),
            "{event}"
        );
        let ended = event["status"] == "ended";
        heard.push((text(&event["type"]), text(&event["status"])));
        if ended {
            break;
        }
    }
    let unit_runs = ("unit.status_changed".to_owned(), "running".to_owned());
    assert!(heard.contains(&unit_runs), "{heard:?}");
    assert_eq!(heard.last().unwrap().0, "run.status_changed");

    let drift = format!(
        "subscription {{ driftDetected(tenantId: \"{acme}\", since: \"{since}\") \
         {{ deployment environment unit run rehearsal }} }}"
    );
    subscribe(&mut socket, "drift", &drift).await;
    let of = EnvironmentKey {
        deployment: "D1".to_owned(),
        environment: "dev".to_owned(),
        rehearsal: true,
    };
    let published: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(acme, async |tx| {
            tx.live_publish_drift(&of, "network", 7).await
        })
        .await;
    published.unwrap();
    assert_eq!(
        told(&mut socket, "drift", "driftDetected").await,
        json!({"deployment": "D1", "environment": "dev", "unit": "network", "run": "R0007", "rehearsal": true})
    );

    let named = format!(
        "subscription {{ eventReceived(tenantId: \"{acme}\", types: [\"drift.detected\"], since: \"{since}\") \
         {{ type data }} }}"
    );
    subscribe(&mut socket, "named", &named).await;
    let event = told(&mut socket, "named", "eventReceived").await;
    assert_eq!(event["type"], "drift.detected");
    assert_eq!(event["data"]["resource_id"], "network");
    say(&mut socket, json!({"type": "complete", "id": "named"})).await;
}

/// S15: what one may hear is decided for each event, and what is of a person is theirs.
#[tokio::test]
async fn what_is_asked_of_a_person_is_theirs_alone() {
    let nimbus = installation!();
    let watched = Watched::new(&nimbus).await;
    let (acme, owner) = (watched.tenant, watched.owner.clone());
    let tenant = acme.to_string();
    let bob = nimbus.user(&owner, &tenant, "bob@acme.example", None).await;
    let ann = nimbus
        .user(&owner, &tenant, "ann@acme.example", Some("viewer"))
        .await;
    let since = head(&nimbus, acme).await;
    let token = nimbus.token("acme", "bob@acme.example").await;
    let mut socket = open(&watched, &token).await;
    let person = |id: &str| id.parse::<Uuid>().ok();
    let asks = |of: &str, title: &str| {
        let data = json!({"resource_id": title, "title": title, "text": "look"});
        let approval = NewEvent::new(kind::APPROVAL_REQUIRED, title, data.clone());
        let notification = NewEvent::new(kind::NOTIFICATION_NEW, title, data);
        [
            approval.of_person(person(of)),
            notification.of_person(person(of)),
        ]
    };
    publish(&nimbus, acme, &asks(&ann, "for-ann")).await;
    publish(&nimbus, acme, &asks(&bob, "for-bob")).await;
    for (field, asked) in [
        ("approvalRequired", "requestId"),
        ("notificationReceived", "title"),
    ] {
        let query = |of: &str| {
            format!(
                "subscription {{ {field}(userId: \"{of}\", since: \"{since}\") {{ {asked} data cursor }} }}"
            )
        };
        subscribe(&mut socket, field, &query(&bob)).await;
        let event = told(&mut socket, field, field).await;
        assert_eq!(event[asked], "for-bob");
        assert_eq!(event["data"]["text"], "look");
        let id = format!("{field} of ann");
        subscribe(&mut socket, &id, &query(&ann)).await;
        assert_eq!(refused(&mut socket, &id).await["code"], "NOT_FOUND");
    }
    // Somebody without a role hears of the whole tenant what is about themselves, and none of what others did.
    let all = format!(
        "subscription {{ eventReceived(tenantId: \"{acme}\", since: \"{since}\") {{ type data }} }}"
    );
    subscribe(&mut socket, "all", &all).await;
    loop {
        let heard = told(&mut socket, "all", "eventReceived").await;
        assert!(!heard.to_string().contains("for-ann"), "{heard}");
        if heard["type"] == "approval.required" {
            assert_eq!(heard["data"]["title"], "for-bob", "{heard}");
            break;
        }
    }
}
