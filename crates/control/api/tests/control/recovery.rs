//! Nobody can sign in any more: whoever has the machine makes an administrator, and that is on record.

use axum::http::StatusCode;
use nimbus_control_app::RecoverInput;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

const OWNER: &str = "owner@operator.example";
const NEW_PASSWORD: &str = "quiet tree stone 4";

async fn recover(nimbus: &Installation, email: &str) -> bool {
    let wanted = RecoverInput {
        email: email.to_owned(),
        password: NEW_PASSWORD.to_owned(),
        by: "root (sudo by ada)".to_owned(),
    };
    let recovered = nimbus.app.recover_administrator(wanted).await.unwrap();
    recovered.created
}

/// Signs in with the new password and does what only an administrator of the installation may.
async fn administers(nimbus: &Installation, email: &str, slug: &str) -> String {
    let login = json!({"email": email, "password": NEW_PASSWORD});
    let answer = nimbus
        .call("POST", "/api/v1/auth/login", None, Some(login))
        .await
        .ok();
    let token = text(&answer["access_token"]);
    nimbus.tenant(&token, slug).await;
    token
}

async fn entries(nimbus: &Installation, token: &str) -> Vec<Value> {
    let path = format!(
        "/api/v1/tenants/{}/audit?action=installation.recover",
        nimbus.root
    );
    let found = nimbus.get(&path, token).await.ok();
    found["items"].as_array().unwrap().clone()
}

/// However the last administrator was lost behind the product's back, it comes back.
#[tokio::test]
async fn a_lost_administrator_comes_back_and_it_is_on_record() {
    let nimbus = installation!();
    let before = nimbus.set_up().await;
    let losses = [
        (
            "disabled",
            "UPDATE nimbus_core.users SET disabled_at = now()",
        ),
        (
            "ended",
            "UPDATE nimbus_core.role_assignments SET expires_at = now() - interval '1 day'",
        ),
        (
            "limited",
            "UPDATE nimbus_core.role_assignments SET conditions = '{\"ip\": [\"192.0.2.0/24\"]}'",
        ),
        (
            "narrowed",
            "UPDATE nimbus_core.role_assignments SET reach = 'own'",
        ),
        ("taken", "DELETE FROM nimbus_core.role_assignments"),
        (
            "forgotten",
            "UPDATE nimbus_core.users SET password_hash = NULL",
        ),
    ];
    let mut token = before.clone();
    for (number, (loss, statement)) in losses.iter().enumerate() {
        nimbus.database.run_as_administrator(statement).await;
        assert!(!recover(&nimbus, OWNER).await, "{loss}: it is no new one");
        let stolen = nimbus.get("/api/v1/auth/me", &token).await.status;
        assert_eq!(stolen, StatusCode::UNAUTHORIZED, "{loss}: signed out");
        token = administers(&nimbus, OWNER, &format!("after-{loss}")).await;
        let entries = entries(&nimbus, &token).await;
        assert_eq!(entries.len(), number + 1, "{loss}");
        let entry = &entries[number];
        assert_eq!(entry["priority"], "critical", "{entry}");
        assert_eq!(entry["new_value"]["by"], "root (sudo by ada)", "{entry}");
        assert!(!entry.to_string().contains(NEW_PASSWORD));
    }
    // The account itself is gone.
    nimbus
        .database
        .run_as_administrator("UPDATE nimbus_core.users SET deleted_at = now()")
        .await;
    assert!(recover(&nimbus, "new@operator.example").await, "a new one");
    let token = administers(&nimbus, "new@operator.example", "after-all").await;
    let verify = format!("/api/v1/tenants/{}/audit/verify", nimbus.root);
    let verdict = nimbus.get(&verify, &token).await.ok();
    assert_eq!(verdict["intact"], true, "{verdict}");
}

#[tokio::test]
async fn a_recovered_administrator_needs_a_password_that_is_one() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let weak = RecoverInput {
        email: OWNER.to_owned(),
        password: "password".to_owned(),
        by: "root".to_owned(),
    };
    assert!(nimbus.app.recover_administrator(weak).await.is_err());
    nimbus.login("", OWNER).await;
}

/// A role that ended can be given again, and a tenant's last administrator is not made one who ends.
#[tokio::test]
async fn a_role_that_ended_is_given_again_and_the_last_administrators_cannot_be_made_to_end() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/tenants/{acme}/role-assignments");
    let jane = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let ending = json!({"role": "viewer", "user_id": jane, "expires_at": "2030-01-01T00:00:00Z"});
    nimbus.post(&path, &owner, ending.clone()).await.ok();
    let twice = nimbus.post(&path, &owner, ending.clone()).await;
    assert_eq!(twice.status, StatusCode::CONFLICT, "{}", twice.text);
    nimbus
        .database
        .run_as_administrator(
            "UPDATE nimbus_core.role_assignments SET expires_at = now() WHERE role = 'viewer'",
        )
        .await;
    nimbus.post(&path, &owner, ending).await.ok();
    // The only administrator for ever is not exchanged for one until some day.
    let last = nimbus
        .user(&owner, &acme, "last@acme.example", Some("tenant_admin"))
        .await;
    let until =
        json!({"role": "tenant_admin", "user_id": last, "expires_at": "2030-01-01T00:00:00Z"});
    let refused = nimbus.post(&path, &owner, until).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    let kept = nimbus
        .database
        .texts("SELECT coalesce(expires_at::text, 'never') FROM nimbus_core.role_assignments WHERE role = 'tenant_admin'")
        .await;
    assert_eq!(kept, ["never"]);
}
