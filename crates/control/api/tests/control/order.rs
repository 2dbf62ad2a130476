//! In which order a request is asked about: who, how often, what they may, and only then what it would do.
//!
//! Each request here fails at two steps at once, and the answer tells which of them came first.

use axum::http::StatusCode;
use nimbus_control_api::{ApiLimits, ApiState, Limit, router};
use nimbus_control_app::operation::OPERATIONS;
use serde_json::{Value, json};

use crate::support::{Answer, ORIGIN, installation};

fn trace(answer: &Answer) -> String {
    answer.headers["x-trace-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_is_asked_who_how_often_what_they_may_and_then_what() {
    let mut nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "vi@acme.example", Some("viewer"))
        .await;
    nimbus
        .user(&owner, &acme, "ad@acme.example", Some("tenant_admin"))
        .await;
    let viewer = nimbus.token("acme", "vi@acme.example").await;
    let admin = nimbus.token("acme", "ad@acme.example").await;
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let taken = json!({"name": "on-call"});
    nimbus.post(&groups, &admin, taken.clone()).await.ok();

    // What they may, before what it would do: a name that is taken is not told to who may not make one.
    let refused = nimbus.post(&groups, &viewer, taken.clone()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let conflict = nimbus.post(&groups, &admin, taken.clone()).await;
    assert_eq!(conflict.status, StatusCode::CONFLICT, "{}", conflict.text);
    // Each answer has an id, and what was refused or failed is recorded under it before it is answered.
    let recorded = |entries: &Value, answer: &Answer| {
        let items = entries["items"].as_array().unwrap();
        let entry = items
            .iter()
            .find(|entry| entry["trace_id"] == trace(answer).as_str());
        entry.map(|entry| entry["outcome"].as_str().unwrap().to_owned())
    };
    let made = nimbus
        .post(&groups, &admin, json!({"name": "others"}))
        .await;
    let trail = format!("/api/v1/tenants/{acme}/audit?action=groups.create");
    let entries = nimbus.get(&trail, &owner).await.ok();
    assert_eq!(recorded(&entries, &refused).as_deref(), Some("denied"));
    assert_eq!(recorded(&entries, &conflict).as_deref(), Some("failed"));
    assert_eq!(recorded(&entries, &made).as_deref(), Some("done"));

    // How often, before what they may: over the tenant's limit nobody learns whether they might have.
    let many = Limit::per_second(1_000_000);
    let limits = ApiLimits::new(many, many, many).with_tenants(Limit::per_minute(2));
    let state = ApiState::new(nimbus.app.clone(), vec![ORIGIN.to_owned()], limits);
    nimbus.router = router(state);
    for _ in 0..2 {
        nimbus.get("/api/v1/auth/me", &admin).await.ok();
    }
    let limited = nimbus.post(&groups, &viewer, taken.clone()).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    // Who, before how often: a stranger is told so, and takes nothing from the tenant.
    let stranger = nimbus
        .call("POST", &groups, Some("nonsense"), Some(taken))
        .await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    let traces = [&refused, &conflict, &made, &limited, &stranger].map(trace);
    for (place, id) in traces.iter().enumerate() {
        assert!(!traces[..place].contains(id), "each has one of its own");
        assert_eq!(id.len(), 32);
    }
    assert_eq!(limited.json()["error"]["trace_id"], traces[3].as_str());
    assert_eq!(stranger.json()["error"]["trace_id"], traces[4].as_str());
}

/// There is no route without an operation, and none of those is outside of the versioned API: what the console and the
/// command line do, anybody can do.
#[test]
fn everything_is_done_through_the_versioned_api() {
    for operation in OPERATIONS {
        assert!(
            operation.path.starts_with("/api/v1/") || operation.path == "/graphql",
            "{} is at {}",
            operation.id,
            operation.path
        );
    }
}
