//! Somebody tries to leave an installation or a tenant without anybody who runs it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Installation, installation, text};

struct AdministeredTenant {
    base: String,
    role: &'static str,
    subtree: bool,
    admin: String,
    assignment: String,
}

/// The only administrator, with the assignment that makes it one.
async fn only_administrator(
    nimbus: &Installation,
    owner: &str,
    tenant: &str,
    role: &'static str,
) -> AdministeredTenant {
    let base = format!("/api/v1/tenants/{tenant}");
    let subtree = role == "provider_admin";
    let admin = nimbus.user(owner, tenant, "last@place.example", None).await;
    let body = json!({"role": role, "user_id": admin, "subtree": subtree});
    let path = format!("{base}/role-assignments");
    let made = nimbus.post(&path, owner, body).await.ok();
    AdministeredTenant {
        base,
        role,
        subtree,
        admin,
        assignment: text(&made["id"]),
    }
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == StatusCode::FORBIDDEN && answer.json()["error"]["reference"] == "NIM-0871"
}

/// Every path by which a place may lose its administrator, tried by somebody who may do all of it.
async fn try_every_path(nimbus: &Installation, token: &str, place: &AdministeredTenant) {
    let AdministeredTenant { base, admin, .. } = place;
    let user = format!("{base}/users/{admin}");
    let assignment = format!("{base}/role-assignments/{}", place.assignment);
    let disable = Some(json!({"disabled": true}));
    for (method, path, body) in [
        ("DELETE", &assignment, None),
        ("DELETE", &user, None),
        ("PATCH", &user, disable.clone()),
    ] {
        let answer = nimbus.call(method, path, Some(token), body).await;
        assert!(is_refused(&answer), "{method} {path}: {}", answer.text);
    }
    // A second one who cannot sign in, or not always, or not for ever, is none.
    let assignments = format!("{base}/role-assignments");
    let tenant = base.rsplit('/').next().unwrap();
    let weak = nimbus.user(token, tenant, "weak@place.example", None).await;
    let robot = json!({"email": "robot", "service_account": true});
    let robot = nimbus
        .post(&format!("{base}/users"), token, robot)
        .await
        .ok();
    let role = |holder: &str, more: Value| {
        let mut body = json!({"role": place.role, "user_id": holder, "subtree": place.subtree});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    for body in [
        role(&text(&robot["id"]), json!({})),
        role(&weak, json!({"conditions": {"ip": ["10.0.0.0/8"]}})),
    ] {
        nimbus.post(&assignments, token, body).await.ok();
        let answer = nimbus.call("DELETE", &assignment, Some(token), None).await;
        assert!(is_refused(&answer), "{}", answer.text);
    }
    let other = nimbus
        .user(token, tenant, "other@place.example", None)
        .await;
    let ending = role(&other, json!({"expires_at": "2030-01-01T00:00:00Z"}));
    nimbus.post(&assignments, token, ending).await.ok();
    let answer = nimbus.call("DELETE", &assignment, Some(token), None).await;
    assert!(is_refused(&answer), "{}", answer.text);

    // Through a group: by leaving it, by ending it, and by ending its role.
    let group = json!({"name": "administrators"});
    let group = text(
        &nimbus
            .post(&format!("{base}/groups"), token, group)
            .await
            .ok()["id"],
    );
    let mut carried = role(admin, json!({"group_id": group}));
    carried["user_id"] = Value::Null;
    let carried = text(&nimbus.post(&assignments, token, carried).await.ok()["id"]);
    let member = format!("{base}/groups/{group}/members/{admin}");
    nimbus.call("PUT", &member, Some(token), None).await.ok();
    nimbus
        .call("DELETE", &assignment, Some(token), None)
        .await
        .ok();
    for path in [
        member.clone(),
        format!("{base}/groups/{group}"),
        format!("{assignments}/{carried}"),
        user.clone(),
    ] {
        let answer = nimbus.call("DELETE", &path, Some(token), None).await;
        assert!(is_refused(&answer), "{path}: {}", answer.text);
    }
    let answer = nimbus.call("PATCH", &user, Some(token), disable).await;
    assert!(is_refused(&answer), "{}", answer.text);
    // Another real one frees the first.
    let heir = nimbus.user(token, tenant, "heir@place.example", None).await;
    nimbus
        .post(&assignments, token, role(&heir, json!({})))
        .await
        .ok();
    nimbus.call("DELETE", &member, Some(token), None).await.ok();
}

#[tokio::test]
async fn the_last_administrator_of_a_tenant_stays_whatever_is_tried() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    for role in ["tenant_admin", "admin"] {
        let tenant = nimbus
            .tenant(&owner, &format!("of-{}", role.replace('_', "-")))
            .await;
        let place = only_administrator(&nimbus, &owner, &tenant, role).await;
        try_every_path(&nimbus, &owner, &place).await;
    }
}

#[tokio::test]
async fn the_last_administrator_of_the_installation_stays_whatever_is_tried() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let place = only_administrator(&nimbus, &owner, &root, "provider_admin").await;
    // The first administrator goes; the second one, who does it, is the last.
    let last = nimbus.token("", "last@place.example").await;
    let base = &place.base;
    let path = format!("{base}/users?email=owner@operator.example");
    let found = nimbus.get(&path, &last).await.ok();
    let first = text(&found["items"][0]["id"]);
    let path = format!("{base}/users/{first}");
    nimbus.call("DELETE", &path, Some(&last), None).await.ok();
    try_every_path(&nimbus, &last, &place).await;
}

#[tokio::test]
async fn two_administrators_who_remove_each_other_at_once_do_not_both_succeed() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for round in 0..5 {
        let mut people = Vec::new();
        for name in ["one", "two"] {
            let email = format!("{name}{round}@acme.example");
            let id = nimbus
                .user(&owner, &acme, &email, Some("tenant_admin"))
                .await;
            people.push((id, nimbus.token("acme", &email).await));
        }
        let remove = async |who: usize, whom: usize| {
            let path = format!("/api/v1/tenants/{acme}/users/{}", people[whom].0);
            nimbus
                .call("DELETE", &path, Some(&people[who].1), None)
                .await
                .status
        };
        let (first, second) = tokio::join!(remove(0, 1), remove(1, 0));
        let gone = [first, second]
            .iter()
            .filter(|status| status.is_success())
            .count();
        assert_eq!(gone, 1, "{first} {second}");
        // The survivor makes room for the next round.
        let left = nimbus
            .database
            .texts("SELECT count(*)::text FROM nimbus_core.role_assignments WHERE role = 'tenant_admin'")
            .await;
        assert_eq!(left, ["1"]);
        nimbus
            .database
            .run_as_administrator(
                "DELETE FROM nimbus_core.role_assignments WHERE role = 'tenant_admin'",
            )
            .await;
    }
}
