//! Accounts with clouds: given once, never shown, forgotten when they are deleted.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

const SECRET: &str = "wJalrXUtnFEMI-canary-of-the-cloud";

fn credentials(secret: &str) -> Value {
    json!({
        "provider": "aws",
        "environment": "prod",
        "credentials": {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": secret},
    })
}

async fn put(
    nimbus: &Installation,
    path: &str,
    token: &str,
    body: Value,
) -> crate::support::Answer {
    nimbus.call("PUT", path, Some(token), Some(body)).await
}

#[tokio::test]
async fn what_opens_an_account_is_kept_sealed_and_never_shown() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let list = format!("/api/v1/tenants/{acme}/cloud-accounts");
    let path = format!("{list}/main");
    let made = put(&nimbus, &path, &owner, credentials(SECRET)).await.ok();
    assert_eq!(
        (text(&made["provider"]), text(&made["environment"])),
        ("aws".into(), "prod".into())
    );
    put(&nimbus, &path, &owner, credentials(&format!("{SECRET}-2")))
        .await
        .ok();
    let listed = nimbus.get(&list, &owner).await;
    assert!(!listed.text.contains("canary"), "{}", listed.text);
    assert!(!listed.text.contains("AKIA"), "{}", listed.text);
    assert_eq!(listed.ok()["items"].as_array().unwrap().len(), 1);
    assert!(!nimbus.database.dump().await.contains("canary"));
    // One account for one place.
    let other = put(&nimbus, &format!("{list}/second"), &owner, credentials("x")).await;
    assert_eq!(other.status, StatusCode::CONFLICT, "{}", other.text);
    for wrong in [
        json!({"provider": "aws", "credentials": {"PATH": "/tmp"}}),
        json!({"provider": "aws", "credentials": {}}),
        json!({"provider": "moon", "credentials": {"A": "b"}}),
        // Each of these is a file of the server's or somebody's address, and not a key.
        json!({"provider": "gcp", "credentials": {"GOOGLE_CREDENTIALS": "/etc/passwd"}}),
        json!({"provider": "gcp", "credentials": {"GOOGLE_CREDENTIALS":
            "{\"type\": \"external_account\", \"credential_source\": {\"file\": \"/etc/passwd\"}}"}}),
        json!({"provider": "gcp", "credentials": {"GOOGLE_CREDENTIALS":
            "{\"type\": \"service_account\", \"token_uri\": \"http://127.0.0.1/\"}"}}),
        json!({"provider": "aws", "environment": "no such", "credentials": {"AWS_ACCESS_KEY_ID": "x"}}),
    ] {
        let answer = put(&nimbus, &path, &owner, wrong.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    let again = nimbus.call("DELETE", &path, Some(&owner), None).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    let kept = nimbus
        .database
        .texts("SELECT length(credentials)::text FROM nimbus_core.cloud_accounts")
        .await;
    assert_eq!(kept, ["0"], "it is forgotten at once");
}

#[tokio::test]
async fn a_real_run_needs_an_account_for_its_environment() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let body = json!({"id": "D1REAL", "organization": "o", "project": "p", "template": "minimal",
        "domain": "o.example", "accounts": {"dev": "111111111111"}});
    let path = format!("/api/v1/deployments?tenant={acme}");
    nimbus.post(&path, &owner, body).await.ok();
    let deploy = format!("/api/v1/deployments/D1REAL/deploy?tenant={acme}");
    let real = json!({"environment": "dev"});
    let refused = nimbus.post(&deploy, &owner, real.clone()).await;
    assert!(refused.text.contains("NIM-0880"), "{}", refused.text);
    // One of another environment is none.
    let accounts = format!("/api/v1/tenants/{acme}/cloud-accounts");
    let prod = format!("{accounts}/prod");
    put(&nimbus, &prod, &owner, credentials(SECRET)).await.ok();
    let refused = nimbus.post(&deploy, &owner, real.clone()).await;
    assert!(refused.text.contains("NIM-0880"), "{}", refused.text);
    let mut everywhere = credentials(SECRET);
    everywhere["environment"] = Value::Null;
    put(&nimbus, &format!("{accounts}/all"), &owner, everywhere)
        .await
        .ok();
    let queued = nimbus.post(&deploy, &owner, real).await.ok();
    assert_eq!(
        (&queued["rehearsal"], &queued["status"]),
        (&json!(false), &json!("queued"))
    );
}
