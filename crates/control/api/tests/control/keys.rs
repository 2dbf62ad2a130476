//! API keys: limited, shown once, revoked at once.

use axum::http::StatusCode;
use serde_json::json;

use crate::support::{installation, text};

#[tokio::test]
async fn a_key_does_what_its_scopes_and_its_account_allow_until_it_is_revoked() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let account = json!({"email": "robot", "service_account": true});
    let account = text(
        &nimbus
            .post(&format!("{base}/users"), &owner, account)
            .await
            .ok()["id"],
    );
    nimbus
        .assign(&owner, &acme, &account, "tenant_admin")
        .await
        .ok();
    let key = json!({"service_account_id": account, "name": "ci", "scopes": ["users:read"], "expires_in_days": 30});
    let made = nimbus.post(&format!("{base}/keys"), &owner, key).await.ok();
    let secret = text(&made["secret"]);
    assert!(secret.starts_with("nbk_"));

    let users = format!("{base}/users");
    nimbus.get(&users, &secret).await.ok();
    let beyond = nimbus
        .post(
            &users,
            &secret,
            json!({"email": "a@b.example", "password": "quiet tree stone 4"}),
        )
        .await;
    assert_eq!(
        beyond.status,
        StatusCode::FORBIDDEN,
        "its account may, the key may not"
    );
    let listed = nimbus.get(&format!("{base}/keys"), &owner).await;
    assert!(
        !listed.text.contains(&secret[10..40]) && !listed.text.contains("secret"),
        "{}",
        listed.text
    );
    assert!(listed.json()["items"][0]["last_used_at"].is_string());
    let forged = format!("{}AAAA", &secret[..secret.len() - 4]);
    assert_eq!(
        nimbus.get(&users, &forged).await.status,
        StatusCode::UNAUTHORIZED
    );

    let path = format!("{base}/keys/{}", text(&made["id"]));
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    assert_eq!(
        nimbus.get(&users, &secret).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn keys_belong_to_programs_and_name_real_permissions() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let person = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let path = format!("/api/v1/tenants/{acme}/keys");
    for key in [
        json!({"service_account_id": person, "name": "x", "scopes": ["users:read"]}),
        json!({"service_account_id": person, "name": "x", "scopes": []}),
        json!({"service_account_id": person, "name": "x", "scopes": ["no:such:key"]}),
    ] {
        assert_eq!(
            nimbus.post(&path, &owner, key).await.status,
            StatusCode::BAD_REQUEST
        );
    }
}
