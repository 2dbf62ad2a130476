//! Roles: nobody gives away, or takes over, more than they have.

use axum::http::StatusCode;
use serde_json::json;

use crate::support::{installation, text};

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let admin_id = nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let user = nimbus.user(&admin, &acme, "jane@acme.example", None).await;

    assert_eq!(
        nimbus
            .assign(&admin, &acme, &user, "developer")
            .await
            .status,
        StatusCode::CREATED
    );
    for who in [&user, &admin_id] {
        let answer = nimbus.assign(&admin, &acme, who, "provider_admin").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    }
    let path = format!("/api/v1/tenants/{acme}/role-assignments");
    let wider = json!({"role": "viewer", "user_id": user, "subtree": true});
    assert_eq!(
        nimbus.post(&path, &admin, wider).await.status,
        StatusCode::FORBIDDEN
    );
    let path = format!("/api/v1/tenants/{acme}/roles");
    let role = json!({"name": "mighty", "grants": [{"permissions": ["tenant:definition:delete"]}]});
    assert_eq!(
        nimbus.post(&path, &admin, role).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn taking_over_a_mightier_user_is_refused() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    nimbus
        .user(
            &owner,
            &root,
            "helper@operator.example",
            Some("tenant_admin"),
        )
        .await;
    let helper = nimbus.token("", "helper@operator.example").await;
    let users = nimbus
        .get(&format!("/api/v1/tenants/{root}/users"), &helper)
        .await
        .ok();
    let owner_id = users["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["email"] == "owner@operator.example")
        .map(|user| text(&user["id"]))
        .unwrap();
    let path = format!("/api/v1/tenants/{root}/users/{owner_id}");
    for change in [
        json!({"password": "quiet tree stone 4"}),
        json!({"disabled": true}),
    ] {
        let answer = nimbus
            .call("PATCH", &path, Some(&helper), Some(change))
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    }
    assert_eq!(
        nimbus
            .call("DELETE", &path, Some(&helper), None)
            .await
            .status,
        StatusCode::FORBIDDEN
    );
    let last = nimbus.call("DELETE", &path, Some(&owner), None).await;
    assert_eq!(
        last.status,
        StatusCode::FORBIDDEN,
        "the last administrator stays: {}",
        last.text
    );
}

#[tokio::test]
async fn groups_carry_roles_for_their_members() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let jane = nimbus.token("acme", "jane@acme.example").await;
    let base = format!("/api/v1/tenants/{acme}");
    let group = text(
        &nimbus
            .post(&format!("{base}/groups"), &owner, json!({"name": "ops"}))
            .await
            .ok()["id"],
    );
    let assignment = json!({"role": "viewer", "group_id": group});
    nimbus
        .post(&format!("{base}/role-assignments"), &owner, assignment)
        .await
        .ok();
    let users = format!("{base}/users");
    assert_eq!(
        nimbus.get(&users, &jane).await.status,
        StatusCode::NOT_FOUND
    );
    let member = format!("{base}/groups/{group}/members/{user}");
    nimbus.call("PUT", &member, Some(&owner), None).await.ok();
    nimbus.get(&users, &jane).await.ok();
    let question = json!({"user_id": user, "permission": "users:read"});
    let answer = nimbus
        .post(&format!("{base}/explain"), &owner, question)
        .await
        .ok();
    assert_eq!(answer["allowed"], true);
    assert!(
        text(&answer["reasons"][0]).contains("role viewer"),
        "{answer}"
    );
    assert!(
        text(&answer["reasons"][0]).contains("through group ops"),
        "{answer}"
    );
    nimbus
        .call("DELETE", &member, Some(&owner), None)
        .await
        .ok();
    assert_eq!(
        nimbus.get(&users, &jane).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn custom_roles_and_conditions_decide() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let base = format!("/api/v1/tenants/{acme}");
    let role = json!({"name": "cmdb_write", "grants": [{"permissions": ["cmdb:write", "users:read"], "environments": ["dev"]}]});
    nimbus
        .post(&format!("{base}/roles"), &owner, role)
        .await
        .ok();
    // Requests of this test come from 10.1.2.3.
    let assignment = |network: &str| json!({"role": "cmdb_write", "user_id": user, "conditions": {"ip": [network]}});
    let far = nimbus
        .post(
            &format!("{base}/role-assignments"),
            &owner,
            assignment("192.168.0.0/16"),
        )
        .await
        .ok();
    let jane = nimbus.token("acme", "jane@acme.example").await;
    let users = format!("{base}/users");
    assert_eq!(
        nimbus.get(&users, &jane).await.status,
        StatusCode::NOT_FOUND
    );
    let question = json!({"user_id": user, "permission": "users:read"});
    let answer = nimbus
        .post(&format!("{base}/explain"), &owner, question)
        .await
        .ok();
    assert!(
        text(&answer["reasons"][0]).contains("condition is not met"),
        "{answer}"
    );

    let path = format!("{base}/role-assignments/{}", text(&far["id"]));
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    nimbus
        .post(
            &format!("{base}/role-assignments"),
            &owner,
            assignment("10.0.0.0/8"),
        )
        .await
        .ok();
    nimbus.get(&users, &jane).await.ok();

    let in_use = nimbus
        .call(
            "DELETE",
            &format!("{base}/roles/cmdb_write"),
            Some(&owner),
            None,
        )
        .await;
    assert_eq!(in_use.status, StatusCode::BAD_REQUEST, "{}", in_use.text);
    let bad = json!({"role": "viewer", "user_id": user, "conditions": {"ip": ["nonsense"]}});
    let refused = nimbus
        .post(&format!("{base}/role-assignments"), &owner, bad)
        .await;
    assert_eq!(refused.json()["error"]["details"][0]["field"], "conditions");
}
