//! From the first run on, and the form of errors.

use axum::http::StatusCode;
use serde_json::json;

use crate::support::{PASSWORD, installation, text};

#[tokio::test]
async fn from_the_first_run_to_a_verified_audit_trail() {
    let nimbus = installation!();
    let status = nimbus
        .call("GET", "/api/v1/setup/status", None, None)
        .await
        .ok();
    assert_eq!(status["completed"], false);
    nimbus.set_up().await;
    let status = nimbus
        .call("GET", "/api/v1/setup/status", None, None)
        .await
        .ok();
    assert_eq!(status["completed"], true);

    let owner = nimbus.token("", "Owner@Operator.Example").await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("tenant_admin"))
        .await;
    let jane = nimbus.token("acme", "jane@acme.example").await;

    let me = nimbus.get("/api/v1/auth/me", &jane).await.ok();
    assert_eq!(me["user"]["email"], "jane@acme.example");
    assert_eq!(me["tenant"]["slug"], "acme");
    assert_eq!(me["roles"], json!(["tenant_admin"]));
    assert!(
        me["permissions"]
            .as_array()
            .unwrap()
            .contains(&json!("users:read"))
    );
    assert!(me["user"]["last_login"].is_string());

    let users = nimbus
        .get(&format!("/api/v1/tenants/{acme}/users"), &jane)
        .await
        .ok();
    assert_eq!(users["items"].as_array().unwrap().len(), 1);
    let tenants = nimbus.get("/api/v1/tenants", &jane).await.ok();
    assert_eq!(
        tenants["items"].as_array().unwrap().len(),
        1,
        "only the own one"
    );
    let tenants = nimbus.get("/api/v1/tenants", &owner).await.ok();
    assert_eq!(tenants["items"].as_array().unwrap().len(), 2);

    let verdict = nimbus
        .get(&format!("/api/v1/tenants/{acme}/audit/verify"), &jane)
        .await
        .ok();
    assert_eq!(verdict["intact"], true, "{verdict}");
    let entries = nimbus
        .get(
            &format!("/api/v1/tenants/{acme}/audit?newest_first=true"),
            &jane,
        )
        .await
        .ok();
    let actions: Vec<_> = entries["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["action"]))
        .collect();
    for action in [
        "users.create",
        "roles.assign",
        "auth.login",
        "users.list",
        "audit.verify",
    ] {
        assert!(
            actions.contains(&action.to_owned()),
            "{action}: {actions:?}"
        );
    }
}

#[tokio::test]
async fn the_set_up_works_once_and_with_its_token_alone() {
    let nimbus = installation!();
    let body = |token: &str| json!({"token": token, "email": "a@b.example", "display_name": "A", "password": PASSWORD});
    let wrong = nimbus
        .call("POST", "/api/v1/setup/complete", None, Some(body("guess")))
        .await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    nimbus.set_up().await;
    let again = nimbus
        .call(
            "POST",
            "/api/v1/setup/complete",
            None,
            Some(body("the set-up token of the test")),
        )
        .await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn errors_have_one_form_and_tell_nothing_of_the_inside() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let path = format!("/api/v1/tenants/{}/users", nimbus.root);
    let answer = nimbus
        .post(
            &path,
            &owner,
            json!({"email": "not an address", "password": PASSWORD}),
        )
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "VALIDATION_ERROR");
    assert_eq!(error["details"][0]["field"], "email");
    assert_eq!(
        error["trace_id"],
        answer.headers["x-trace-id"].to_str().unwrap()
    );
    assert!(error["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(error["reference"], "NIM-0859");
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert!(answer.headers.contains_key("content-security-policy"));

    for (body, code) in [
        (
            json!({"email": "a@b.example", "password": PASSWORD, "tenant_id": "x"}),
            "VALIDATION_ERROR",
        ),
        (
            json!({"email": "a@b.example", "password": PASSWORD, "role": "provider_admin"}),
            "VALIDATION_ERROR",
        ),
        (json!([1, 2]), "VALIDATION_ERROR"),
        (
            json!({"email": "a@b.example", "password": "password1234"}),
            "VALIDATION_ERROR",
        ),
        (
            json!({"email": "owner@operator.example", "password": PASSWORD}),
            "ALREADY_EXISTS",
        ),
    ] {
        let answer = nimbus.post(&path, &owner, body).await;
        assert_eq!(answer.code(), code, "{}", answer.text);
        for word in ["nimbus_core", "INSERT", "SELECT", "sqlx", ".rs", "panicked"] {
            assert!(!answer.text.contains(word), "{}", answer.text);
        }
    }
    let endless = json!({"email": "x".repeat(2 << 20)});
    assert_eq!(
        nimbus.post(&path, &owner, endless).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
}
