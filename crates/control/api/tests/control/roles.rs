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

#[tokio::test]
async fn a_changed_role_counts_at_once_for_everybody_who_has_it() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let role = json!({"name": "auditor", "grants": [{"permissions": ["cmdb:read"]}]});
    nimbus
        .post(&format!("{base}/roles"), &owner, role)
        .await
        .ok();
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("auditor"))
        .await;
    let jane = nimbus.token("acme", "jane@acme.example").await;
    let users = format!("{base}/users");
    assert_eq!(
        nimbus.get(&users, &jane).await.status,
        StatusCode::FORBIDDEN
    );
    let wider = json!({"grants": [{"permissions": ["cmdb:read", "users:read"]}]});
    let path = format!("{base}/roles/auditor");
    let replace = async |token: &str, path: &str, body: &serde_json::Value| {
        nimbus
            .call("PUT", path, Some(token), Some(body.clone()))
            .await
    };
    replace(&owner, &path, &wider).await.ok();
    nimbus.get(&users, &jane).await.ok();
    let missing = replace(&owner, &format!("{base}/roles/nobody"), &wider).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let built_in = replace(&owner, &format!("{base}/roles/viewer"), &wider).await;
    assert_eq!(built_in.status, StatusCode::BAD_REQUEST);
    // Somebody with less cannot make it mean more.
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let mightier = json!({"grants": [{"permissions": ["component:definition:publish"]}]});
    let refused = replace(&admin, &path, &mightier).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_explanation_names_the_rule_for_any_address_time_place_and_tag() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let conditions = json!({
        "ip": ["10.0.0.0/8"],
        "time": {"from": "08:00", "to": "18:00", "weekdays": [1, 2, 3, 4, 5], "zone": "Europe/Berlin"},
        "location": ["office"],
        "tags": {"team": "blue"},
    });
    let assignment = json!({"role": "developer", "user_id": user, "conditions": conditions});
    nimbus
        .post(&format!("{base}/role-assignments"), &owner, assignment)
        .await
        .ok();
    let ask = async |change: serde_json::Value| {
        let mut question = json!({
            "user_id": user,
            "permission": "stack:instance:deploy",
            "environment": "dev",
            "tags": {"team": "blue"},
            "ip": "10.1.2.3",
            "location": "office",
            // A Monday at noon in Berlin.
            "at": "2026-06-01T10:00:00Z",
        });
        for (key, value) in change.as_object().unwrap() {
            question[key] = value.clone();
        }
        nimbus
            .post(&format!("{base}/explain"), &owner, question)
            .await
            .ok()
    };
    let permitted = ask(json!({})).await;
    assert_eq!(permitted["allowed"], true, "{permitted}");
    let rule = text(&permitted["reasons"][0]);
    assert!(rule.starts_with("role developer in tenant"), "{rule}");
    // What is not said is as it is for whoever asks, who is in the office.
    let here = ask(json!({"ip": null, "location": null})).await;
    assert_eq!(here["allowed"], true, "{here}");
    for change in [
        json!({"ip": "192.0.2.1"}),
        json!({"at": "2026-06-01T20:00:00Z"}),
        json!({"at": "2026-06-07T10:00:00Z"}),
        json!({"location": "elsewhere"}),
        json!({"tags": {"team": "red"}}),
        json!({"tags": {}}),
    ] {
        let denied = ask(change.clone()).await;
        assert_eq!(denied["allowed"], false, "{change}");
        let reason = text(&denied["reasons"][0]);
        assert!(
            reason.contains("role developer") && reason.contains("condition is not met"),
            "{change}: {reason}"
        );
    }
    let denied = ask(json!({"environment": "prod"})).await;
    assert!(text(&denied["reasons"][0]).starts_with("no role permits"));
}

#[tokio::test]
async fn groups_are_renamed_and_show_their_members() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}/groups");
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let group = text(
        &nimbus
            .post(&base, &owner, json!({"name": "ops"}))
            .await
            .ok()["id"],
    );
    let member = format!("{base}/{group}/members/{user}");
    nimbus.call("PUT", &member, Some(&owner), None).await.ok();
    let path = format!("{base}/{group}");
    let body = json!({"name": "operations", "description": "who is on call"});
    let renamed = nimbus
        .call("PATCH", &path, Some(&owner), Some(body))
        .await
        .ok();
    assert_eq!(
        (&renamed["name"], &renamed["members"]),
        (&json!("operations"), &json!(1))
    );
    let members = nimbus.get(&format!("{path}/members"), &owner).await.ok();
    assert_eq!(members["items"][0]["email"], "jane@acme.example");
    nimbus
        .call("DELETE", &member, Some(&owner), None)
        .await
        .ok();
    let members = nimbus.get(&format!("{path}/members"), &owner).await.ok();
    assert!(members["items"].as_array().unwrap().is_empty());
}
