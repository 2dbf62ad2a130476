//! Tenants through the API: changed, moved, deleted, restored.

use axum::http::StatusCode;
use serde_json::json;

use crate::support::{installation, text};

#[tokio::test]
async fn a_deleted_tenant_is_hidden_and_comes_back_with_all_it_had() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("viewer"))
        .await;
    let below = json!({"slug": "team", "name": "Team"});
    let path = format!("/api/v1/tenants/{acme}/tenants");
    let team = text(&nimbus.post(&path, &owner, below).await.ok()["id"]);
    let jane = nimbus.token("acme", "jane@acme.example").await;

    let path = format!("/api/v1/tenants/{acme}");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    for gone in [&acme, &team] {
        let path = format!("/api/v1/tenants/{gone}");
        assert_eq!(
            nimbus.get(&path, &owner).await.status,
            StatusCode::NOT_FOUND
        );
    }
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &jane).await.status,
        StatusCode::UNAUTHORIZED
    );
    let base = format!("/api/v1/tenants/{}/deleted", nimbus.root);
    let deleted = nimbus.get(&base, &owner).await.ok();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 1, "{deleted}");
    assert_eq!(deleted["items"][0]["id"], *acme);
    assert!(deleted["items"][0]["gone_at"].is_string());

    let restore = format!("{base}/{acme}/restore");
    let restored = nimbus.call("POST", &restore, Some(&owner), None).await.ok();
    assert_eq!(restored["slug"], "acme");
    let again = nimbus.call("POST", &restore, Some(&owner), None).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    let path = format!("/api/v1/tenants/{team}");
    nimbus.get(&path, &owner).await.ok();
    nimbus.get("/api/v1/auth/me", &jane).await.ok();
    let path = format!(
        "/api/v1/tenants/{}/audit?action=tenants.restore",
        nimbus.root
    );
    let entries = nimbus.get(&path, &owner).await.ok();
    assert_eq!(entries["items"][0]["new_value"]["slug"], "acme");
}

#[tokio::test]
async fn settings_and_limits_are_inherited_and_move_with_a_tenant() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let (one, two) = (
        nimbus.tenant(&owner, "one").await,
        nimbus.tenant(&owner, "two").await,
    );
    for (tenant, schedule, limit) in [(&one, "nightly", 5), (&two, "weekly", 7)] {
        let path = format!("/api/v1/tenants/{tenant}");
        let settings = json!({"settings": {"scan_schedule": schedule}});
        nimbus
            .call("PATCH", &path, Some(&owner), Some(settings))
            .await
            .ok();
        let quotas = json!({"quotas": {"deployments": limit}});
        nimbus
            .call("PUT", &format!("{path}/quotas"), Some(&owner), Some(quotas))
            .await
            .ok();
    }
    let path = format!("/api/v1/tenants/{one}/tenants");
    let team = json!({"slug": "team", "name": "Team"});
    let team = text(&nimbus.post(&path, &owner, team).await.ok()["id"]);
    let base = format!("/api/v1/tenants/{team}");
    let effective = nimbus.get(&format!("{base}/effective"), &owner).await.ok();
    assert_eq!(effective["settings"][0]["value"], "nightly", "{effective}");
    assert_eq!(effective["settings"][0]["inherited"], true);
    assert_eq!(effective["quotas"][0]["quota"], 5);
    let body = json!({"parent_id": two});
    let moved = nimbus
        .post(&format!("{base}/move"), &owner, body)
        .await
        .ok();
    assert_eq!(moved["parent_id"], *two);
    let effective = nimbus.get(&format!("{base}/effective"), &owner).await.ok();
    assert_eq!(effective["settings"][0]["value"], "weekly");
    assert_eq!(effective["quotas"][0]["quota"], 7);
}

#[tokio::test]
async fn the_description_of_the_api_is_served_to_anybody() {
    let nimbus = installation!();
    let served = nimbus
        .call("GET", "/api/v1/openapi.json", None, None)
        .await
        .ok();
    assert_eq!(served, nimbus_control_api::openapi());
}
