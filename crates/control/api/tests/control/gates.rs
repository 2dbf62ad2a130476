//! Gates over the API: who vouches for what, and who goes past one.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

const DEPLOYMENT: &str = "/api/v1/deployments/D1GATE";

/// A tenant with a deployment of three environments.
async fn gated(nimbus: &Installation) -> (String, String) {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let body = json!({"id": "D1GATE", "organization": "o", "project": "p", "template": "default",
        "domain": "a.example", "accounts": {"dev": "111111111111", "prod": "222222222222"}});
    let path = format!("/api/v1/deployments?tenant={acme}");
    nimbus.post(&path, &owner, body).await.ok();
    (owner, acme)
}

/// How an item of an environment stands: whether it is done, and who says so.
fn standing(gates: &Value, environment: &str, item: &str) -> (bool, String) {
    let find = |list: &Value, key: &str, name: &str| {
        let found = list["items"].as_array().unwrap().iter();
        let mut found = found.filter(|one| one[key] == name);
        found
            .next()
            .unwrap_or_else(|| panic!("{name}: {list}"))
            .clone()
    };
    let gate = find(gates, "environment", environment);
    let item = find(&gate, "item", item);
    (item["done"].as_bool().unwrap(), text(&item["note"]))
}

#[tokio::test]
async fn an_item_is_vouched_for_in_the_name_of_who_may_and_in_its_own_gate() {
    let nimbus = installation!();
    let (owner, acme) = gated(&nimbus).await;
    let gates = async |rehearsal: bool| {
        let path = format!("{DEPLOYMENT}/gates?tenant={acme}&rehearsal={rehearsal}");
        nimbus.get(&path, &owner).await.ok()
    };
    let sign = async |token: &str, environment: &str, item: &str, body: Value| {
        let path = format!("{DEPLOYMENT}/environments/{environment}/gate/{item}?tenant={acme}");
        nimbus.call("PUT", &path, Some(token), Some(body)).await
    };
    let before = gates(true).await;
    let open = (false, "no successful run is the last one".to_owned());
    assert_eq!(standing(&before, "dev", "deploy"), open);
    assert!(!standing(&before, "dev", "smoke-tests").0, "{before}");

    let user = nimbus.user(&owner, &acme, "dev@acme.example", None).await;
    nimbus.assign(&owner, &acme, &user, "developer").await.ok();
    let developer = nimbus.token("acme", "dev@acme.example").await;
    let done = json!({"note": "the page is there", "rehearsal": true});
    let signed = sign(&developer, "dev", "smoke-tests", done.clone()).await;
    assert_eq!(signed.status, StatusCode::OK, "{}", signed.text);
    let (is_done, note) = standing(&gates(true).await, "dev", "smoke-tests");
    assert!(is_done, "{note}");
    assert!(note.contains("dev@acme.example"), "{note}");
    assert!(note.contains("the page is there"), "{note}");
    let real = gates(false).await;
    assert!(
        !standing(&real, "dev", "smoke-tests").0,
        "another gate: {real}"
    );
    let trail = "SELECT new_value::text FROM nimbus_core.audit_logs WHERE action = 'gates.sign'";
    let recorded = nimbus.database.texts(trail).await;
    let told = recorded.iter().any(|one| one.contains("the page is there"));
    assert!(told, "{recorded:?}");

    // What the runs say themselves, and what the gate does not ask for, is nobody's to say.
    for item in ["deploy", "load-tests", "nothing"] {
        let refused = sign(&owner, "dev", item, done.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let field = refused.json()["error"]["details"][0]["field"].clone();
        assert_eq!(field, "item", "{}", refused.text);
    }
    let long = json!({"note": "x".repeat(3_000)});
    let refused = sign(&owner, "dev", "smoke-tests", long).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    let unknown = sign(&owner, "moon", "smoke-tests", done.clone()).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{}", unknown.text);
    let elsewhere = sign(&developer, "prod", "window", done).await;
    assert_eq!(
        elsewhere.status,
        StatusCode::FORBIDDEN,
        "{}",
        elsewhere.text
    );
}

#[tokio::test]
async fn a_gate_is_skipped_with_a_reason_by_who_could_have_passed_it() {
    let nimbus = installation!();
    let (owner, acme) = gated(&nimbus).await;
    let role = json!({"name": "releases", "grants": [{
        "permissions": ["deployment:definition:read", "stack:instance:deploy"],
        "environments": ["prod"],
    }]});
    let roles = format!("/api/v1/tenants/{acme}/roles");
    nimbus.post(&roles, &owner, role).await.ok();
    let user = nimbus.user(&owner, &acme, "rel@acme.example", None).await;
    nimbus.assign(&owner, &acme, &user, "releases").await.ok();
    let releases = nimbus.token("acme", "rel@acme.example").await;
    let start = async |token: &str, verb: &str, reason: Value| {
        let path = format!("{DEPLOYMENT}/{verb}?tenant={acme}");
        let body = json!({"environment": "prod", "rehearsal": true, "skip_gate": reason});
        nimbus.post(&path, token, body).await
    };
    let refused = start(&releases, "deploy", json!("it burns")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(
        refused.text.contains("the gate of stage"),
        "{}",
        refused.text
    );
    let queued = start(&releases, "deploy", Value::Null).await;
    assert_eq!(queued.status, StatusCode::ACCEPTED, "{}", queued.text);

    let skipped = start(&owner, "deploy", json!("it burns")).await;
    assert_eq!(skipped.status, StatusCode::ACCEPTED, "{}", skipped.text);
    assert_eq!(skipped.json()["skip_gate"], "it burns", "{}", skipped.text);
    for (verb, reason) in [("destroy", "it burns"), ("deploy", " ")] {
        let refused = start(&owner, verb, json!(reason)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let field = refused.json()["error"]["details"][0]["field"].clone();
        assert_eq!(field, "skip_gate", "{}", refused.text);
    }
}
