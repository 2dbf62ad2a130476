//! Somebody tries to give away, or to get, more than they have.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

/// A tenant, and somebody in it who has one custom role with these grants, held in this way.
async fn tenant_with(
    nimbus: &Installation,
    owner: &str,
    grants: Value,
    held: Value,
) -> (String, String, String) {
    let acme = nimbus.tenant(owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let role = json!({"name": "lead", "grants": grants});
    nimbus
        .post(&format!("{base}/roles"), owner, role)
        .await
        .ok();
    let lead = nimbus.user(owner, &acme, "lead@acme.example", None).await;
    let mut assignment = json!({"role": "lead", "user_id": lead});
    for (key, value) in held.as_object().unwrap() {
        assignment[key] = value.clone();
    }
    let path = format!("{base}/role-assignments");
    nimbus.post(&path, owner, assignment).await.ok();
    (base, lead, nimbus.token("acme", "lead@acme.example").await)
}

async fn service_account(nimbus: &Installation, token: &str, base: &str, name: &str) -> String {
    let body = json!({"email": name, "service_account": true});
    text(
        &nimbus
            .post(&format!("{base}/users"), token, body)
            .await
            .ok()["id"],
    )
}

#[tokio::test]
async fn a_key_that_may_only_make_keys_makes_none_that_may_more_or_lasts_longer() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let keys = format!("{base}/keys");
    let robot = service_account(&nimbus, &owner, &base, "robot").await;
    nimbus
        .assign(&owner, &acme, &robot, "tenant_admin")
        .await
        .ok();
    let first = json!({
        "service_account_id": robot, "name": "first", "scopes": ["users:key:manage"], "expires_in_days": 30,
    });
    let stolen = text(&nimbus.post(&keys, &owner, first).await.ok()["secret"]);
    let other = service_account(&nimbus, &owner, &base, "other").await;
    for (account, scopes, days) in [
        (&robot, json!(["users:read"]), json!(1)),
        (
            &robot,
            json!(["users:key:manage", "users:account:create"]),
            json!(1),
        ),
        (&robot, json!(["users:key:manage"]), json!(31)),
        (&robot, json!(["users:key:manage"]), Value::Null),
        (&other, json!(["tenant:definition:delete"]), json!(1)),
        (&other, json!(["users:key:manage"]), Value::Null),
    ] {
        let body = json!({
            "service_account_id": account, "name": "more", "scopes": scopes, "expires_in_days": days,
        });
        let answer = nimbus.post(&keys, &stolen, body.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::FORBIDDEN,
            "{body}: {}",
            answer.text
        );
    }
    let same = json!({
        "service_account_id": robot, "name": "same", "scopes": ["users:key:manage"], "expires_in_days": 29,
    });
    nimbus.post(&keys, &stolen, same).await.ok();
}

#[tokio::test]
async fn a_key_for_a_mightier_account_is_refused_whatever_its_scopes() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let permissions = ["users:key:manage", "users:read", "stack:instance:deploy"];
    let grants = json!([{"permissions": permissions, "environments": ["dev"]}]);
    let (base, _, lead) = tenant_with(&nimbus, &owner, grants, json!({})).await;
    let robot = service_account(&nimbus, &owner, &base, "robot").await;
    let anywhere = json!({"role": "operator", "user_id": robot});
    nimbus
        .post(&format!("{base}/role-assignments"), &owner, anywhere)
        .await
        .ok();
    let body =
        json!({"service_account_id": robot, "name": "x", "scopes": ["stack:instance:deploy"]});
    let answer = nimbus.post(&format!("{base}/keys"), &lead, body).await;
    assert_eq!(
        answer.status,
        StatusCode::FORBIDDEN,
        "dev only: {}",
        answer.text
    );
}

#[tokio::test]
async fn a_lead_of_dev_writes_no_role_for_prod() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let permissions = [
        "rbac:role:manage",
        "rbac:assignment:manage",
        "rbac:role:read",
        "users:read",
        "stack:instance:deploy",
    ];
    let grants = json!([{"permissions": permissions, "environments": ["dev"]}]);
    let (base, user, lead) = tenant_with(&nimbus, &owner, grants, json!({})).await;
    let deploy = |environments: Value| json!([{"permissions": ["stack:instance:deploy"], "environments": environments}]);
    for (number, environments) in [json!(["prod"]), json!(["dev", "prod"]), Value::Null]
        .into_iter()
        .enumerate()
    {
        let role =
            json!({"name": format!("wider-{number}"), "grants": deploy(environments.clone())});
        let made = nimbus.post(&format!("{base}/roles"), &lead, role).await;
        assert_eq!(
            made.status,
            StatusCode::FORBIDDEN,
            "{environments}: {}",
            made.text
        );
        let body = json!({"grants": deploy(environments.clone())});
        let own = format!("{base}/roles/lead");
        let changed = nimbus.call("PUT", &own, Some(&lead), Some(body)).await;
        assert_eq!(
            changed.status,
            StatusCode::FORBIDDEN,
            "{environments}: {}",
            changed.text
        );
    }
    let narrow = json!({"name": "deployers", "grants": deploy(json!(["dev"]))});
    nimbus
        .post(&format!("{base}/roles"), &lead, narrow)
        .await
        .ok();
    // Somebody mightier makes it mean more; the lead cannot give it any more.
    let wider = json!({"grants": deploy(json!(["dev", "prod"]))});
    let path = format!("{base}/roles/deployers");
    nimbus
        .call("PUT", &path, Some(&owner), Some(wider))
        .await
        .ok();
    let give = json!({"role": "deployers", "user_id": user});
    let given = nimbus
        .post(&format!("{base}/role-assignments"), &lead, give)
        .await;
    assert_eq!(given.status, StatusCode::FORBIDDEN, "{}", given.text);
    let question =
        json!({"user_id": user, "permission": "stack:instance:deploy", "environment": "prod"});
    let explained = nimbus
        .post(&format!("{base}/explain"), &owner, question)
        .await
        .ok();
    assert_eq!(explained["allowed"], false, "{explained}");
}

#[tokio::test]
async fn what_is_held_under_conditions_or_for_a_while_is_given_so_or_not_at_all() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let permissions = [
        "rbac:assignment:manage",
        "rbac:role:manage",
        "rbac:role:read",
        "users:group:manage",
        "users:account:update",
        "users:read",
    ];
    let grants = json!([{"permissions": permissions}]);
    // Requests of tests come from 10.1.2.3.
    let held = json!({"conditions": {"ip": ["10.1.0.0/16"]}, "expires_at": "2031-01-01T00:00:00Z"});
    let (base, _, lead) = tenant_with(&nimbus, &owner, grants, held).await;
    let acme = base.rsplit('/').next().unwrap().to_owned();
    let jane = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let assignments = format!("{base}/role-assignments");
    let narrow = json!({"ip": ["10.1.2.0/24"]});
    for (conditions, until) in [
        (json!({}), json!("2030-01-01T00:00:00Z")),
        (json!({"ip": ["10.0.0.0/8"]}), json!("2030-01-01T00:00:00Z")),
        (narrow.clone(), Value::Null),
        (narrow.clone(), json!("2031-01-02T00:00:00Z")),
    ] {
        let give =
            json!({"role": "lead", "user_id": jane, "conditions": conditions, "expires_at": until});
        let answer = nimbus.post(&assignments, &lead, give.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::FORBIDDEN,
            "{give}: {}",
            answer.text
        );
    }
    let give = json!({
        "role": "lead", "user_id": jane, "conditions": narrow, "expires_at": "2030-12-31T00:00:00Z",
    });
    let given = nimbus.post(&assignments, &lead, give).await.ok();
    assert_eq!(given["expires_at"], "2030-12-31T00:00:00Z");

    // Through a group that carries the role for ever.
    let group = nimbus
        .post(&format!("{base}/groups"), &owner, json!({"name": "ops"}))
        .await
        .ok();
    let group = text(&group["id"]);
    let carry = json!({"role": "lead", "group_id": group});
    nimbus.post(&assignments, &owner, carry).await.ok();
    let member = format!("{base}/groups/{group}/members/{jane}");
    let joined = nimbus.call("PUT", &member, Some(&lead), None).await;
    assert_eq!(joined.status, StatusCode::FORBIDDEN, "{}", joined.text);
    // By taking over an account that has it for ever.
    let ann = nimbus
        .user(&owner, &acme, "ann@acme.example", Some("lead"))
        .await;
    let body = json!({"password": "quiet tree stone 4"});
    let path = format!("{base}/users/{ann}");
    let taken = nimbus.call("PATCH", &path, Some(&lead), Some(body)).await;
    assert_eq!(taken.status, StatusCode::FORBIDDEN, "{}", taken.text);
    // By making a role that others hold for ever mean more.
    let body = json!({"grants": [{"permissions": ["users:read"]}]});
    let path = format!("{base}/roles/lead");
    let changed = nimbus.call("PUT", &path, Some(&lead), Some(body)).await;
    assert_eq!(changed.status, StatusCode::FORBIDDEN, "{}", changed.text);
}

#[tokio::test]
async fn a_role_that_ended_gives_nothing() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let jane = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let path = format!("{base}/role-assignments");
    for bad in ["2020-01-01T00:00:00Z", "9999-12-30T00:00:00Z", "soon"] {
        let give = json!({"role": "viewer", "user_id": jane, "expires_at": bad});
        let refused = nimbus.post(&path, &owner, give).await;
        assert_eq!(
            refused.json()["error"]["details"][0]["field"],
            "expires_at",
            "{bad}"
        );
    }
    let give = json!({"role": "viewer", "user_id": jane, "expires_at": "2030-01-01T00:00:00Z"});
    nimbus.post(&path, &owner, give).await.ok();
    let token = nimbus.token("acme", "jane@acme.example").await;
    let users = format!("{base}/users");
    nimbus.get(&users, &token).await.ok();
    nimbus
        .database
        .run_as_administrator(
            "UPDATE nimbus_core.role_assignments SET expires_at = now() WHERE role = 'viewer'",
        )
        .await;
    assert_eq!(
        nimbus.get(&users, &token).await.status,
        StatusCode::NOT_FOUND
    );
    let me = nimbus.get("/api/v1/auth/me", &token).await.ok();
    assert_eq!(me["permissions"], json!([]));
}

#[tokio::test]
async fn five_hundred_roles_before_it_in_the_alphabet_take_nobodys_role_away() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let role =
        json!({"name": "reader", "grants": [{"permissions": ["users:read", "rbac:role:read"]}]});
    nimbus
        .post(&format!("{base}/roles"), &owner, role)
        .await
        .ok();
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("reader"))
        .await;
    let jane = nimbus.token("acme", "jane@acme.example").await;
    nimbus
        .database
        .run_as_administrator(&format!(
            "INSERT INTO nimbus_core.roles (tenant_id, id, name, grants)
             SELECT '{acme}', gen_random_uuid(), 'aa' || n, '[{{\"permissions\": [\"users:read\"], \"environments\": \"any\"}}]'
             FROM generate_series(1, 700) n"
        ))
        .await;
    nimbus.get(&format!("{base}/users"), &jane).await.ok();
    // And whoever reads the list reads all of it.
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = nimbus
            .get(&format!("{base}/roles?limit=500{after}"), &jane)
            .await
            .ok();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|role| text(&role["name"])));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(names.len(), 701 + 8);
    assert_eq!(names.iter().filter(|name| *name == "reader").count(), 1);
    // Changing the role still asks about everybody who holds it.
    let more = json!({"grants": [{"permissions": ["users:read"]}]});
    let path = format!("{base}/roles/reader");
    nimbus
        .call("PUT", &path, Some(&owner), Some(more))
        .await
        .ok();
}

/// Whoever is in more groups than any page of a list has is judged by all of them.
#[tokio::test]
async fn the_group_after_a_thousand_others_counts_like_the_first() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let boss = nimbus.user(&owner, &acme, "boss@acme.example", None).await;
    let group = json!({"name": "zz administrators"});
    let made = nimbus.post(&format!("{base}/groups"), &owner, group).await;
    let group = text(&made.ok()["id"]);
    let carries = json!({"role": "tenant_admin", "group_id": group});
    let assignments = format!("{base}/role-assignments");
    nimbus.post(&assignments, &owner, carries).await.ok();
    nimbus
        .database
        .run_as_administrator(&format!(
            "INSERT INTO nimbus_core.groups (tenant_id, id, name, looks_like)
                 SELECT '{acme}', gen_random_uuid(), 'aa' || n, 'aa' || n FROM generate_series(1, 1200) n;
             INSERT INTO nimbus_core.group_members (tenant_id, group_id, user_id)
                 SELECT tenant_id, id, '{boss}' FROM nimbus_core.groups WHERE name LIKE 'aa%';
             INSERT INTO nimbus_core.role_assignments (tenant_id, id, role, group_id, reach)
                 SELECT tenant_id, gen_random_uuid(), 'viewer', id, 'own' FROM nimbus_core.groups WHERE name LIKE 'aa%'"
        ))
        .await;
    let member = format!("{base}/groups/{group}/members/{boss}");
    nimbus.call("PUT", &member, Some(&owner), None).await.ok();
    // What the last group gives is held.
    let token = nimbus.token("acme", "boss@acme.example").await;
    let made = json!({"name": "of the boss"});
    nimbus
        .post(&format!("{base}/groups"), &token, made)
        .await
        .ok();
    // And whoever holds less does not take the account over.
    let desk = json!({"name": "desk", "grants": [{"permissions": ["users:read", "users:account:update"]}]});
    nimbus
        .post(&format!("{base}/roles"), &owner, desk)
        .await
        .ok();
    nimbus
        .user(&owner, &acme, "desk@acme.example", Some("desk"))
        .await;
    let desk = nimbus.token("acme", "desk@acme.example").await;
    let take_over = json!({"password": "quiet tree stone 4"});
    let path = format!("{base}/users/{boss}");
    let refused = nimbus
        .call("PATCH", &path, Some(&desk), Some(take_over.clone()))
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    // Without that group it is an account like others.
    nimbus
        .user(&owner, &acme, "heir@acme.example", Some("tenant_admin"))
        .await;
    nimbus
        .call("DELETE", &member, Some(&owner), None)
        .await
        .ok();
    nimbus
        .database
        .run_as_administrator("DELETE FROM nimbus_core.role_assignments WHERE role = 'viewer'")
        .await;
    nimbus
        .call("PATCH", &path, Some(&desk), Some(take_over))
        .await
        .ok();
}

#[tokio::test]
async fn how_long_the_trail_is_kept_is_not_for_the_tenant_to_say() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let path = format!("/api/v1/tenants/{acme}");
    let set = async |token: &str, days: Value| {
        let body = json!({"settings": {"audit_retention_days": days}});
        nimbus.call("PATCH", &path, Some(token), Some(body)).await
    };
    assert_eq!(set(&admin, json!(1)).await.status, StatusCode::FORBIDDEN);
    for bad in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("1"),
        json!(u64::MAX),
        json!(null),
    ] {
        let refused = set(&owner, bad.clone()).await;
        let field = &refused.json()["error"]["details"][0]["field"];
        assert_eq!(field, "settings.audit_retention_days", "{bad}");
    }
    set(&owner, json!(90)).await.ok();
    set(&admin, json!(90)).await.ok();
    let below = json!({"slug": "below", "name": "Below", "settings": {"audit_retention_days": 1}});
    let made = nimbus.post(&format!("{path}/tenants"), &admin, below).await;
    assert_eq!(made.status, StatusCode::FORBIDDEN, "{}", made.text);
}
