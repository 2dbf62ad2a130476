//! Tenants through the API: changed, moved, deleted, restored.

use axum::http::StatusCode;
use nimbus_control_store::{HeldRun, NewDeployment, NewRun, RunEnd, StoreError};
use nimbus_core::{TenantId, UserId};
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

/// F17: a tenant does not go away under a run of its own, or of a tenant below it; a run that waits is no hindrance.
#[tokio::test]
async fn a_tenant_with_a_run_under_way_is_not_deleted() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/tenants/{acme}/tenants");
    let below = json!({"slug": "below", "name": "Below"});
    let below = text(&nimbus.post(&path, &owner, below).await.ok()["id"]);
    let tenant: TenantId = below.parse().unwrap();
    let user = UserId::from(uuid::Uuid::new_v4());
    let store = &nimbus.database.store;
    let queued: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| {
            let new = NewDeployment {
                id: "D1".to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest: String::new(),
                created_by: user,
            };
            tx.deployment_create(&new).await?;
            let new = NewRun {
                deployment: "D1".to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: true,
                request: json!({}),
                catalog: json!({}),
                requested_by: user,
                trace_id: None,
            };
            tx.run_queue(&new).await?;
            assert!(tx.work_turn().await?);
            tx.run_take(uuid::Uuid::new_v4()).await
        })
        .await;
    let run = queued.unwrap().expect("it was queued");
    for busy in [&below, &acme] {
        let path = format!("/api/v1/tenants/{busy}");
        let refused = nimbus.call("DELETE", &path, Some(&owner), None).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
        nimbus.get(&path, &owner).await.ok();
    }
    let ended = RunEnd {
        status: "queued",
        wish: None,
        result: None,
        problem: None,
    };
    let held = HeldRun {
        deployment: run.deployment,
        number: run.number,
        epoch: run.epoch,
    };
    let released: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| tx.run_release(&held, &ended).await)
        .await;
    released.unwrap();
    let path = format!("/api/v1/tenants/{acme}");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    // Nobody takes the one that waits.
    let entered: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| tx.run_take(uuid::Uuid::new_v4()).await)
        .await;
    assert!(matches!(entered, Err(StoreError::TenantUnknown)));
}
