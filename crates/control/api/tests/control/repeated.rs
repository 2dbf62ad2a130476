//! Requests that come twice with one idempotency key.

use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::support::{Answer, Installation, PASSWORD, installation, text};

async fn post(nimbus: &Installation, path: &str, token: &str, key: &str, body: &Value) -> Answer {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header("idempotency-key", key);
    nimbus.send(request, Some(body)).await
}

/// Whatever is made is made once, and the second answer is the first.
#[tokio::test]
async fn everything_that_is_made_is_made_once() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let user = nimbus.user(&owner, &acme, "b@acme.example", None).await;
    let stack = json!({"name": "guest", "template": "name: guest\n",
        "files": {"src/Pulumi.yaml": "name: guest\nruntime: nodejs\n"}});
    let template = "name: one\ndescription: One\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {}\n";
    let of_acme = |path: &str| format!("/api/v1{path}?tenant={acme}");
    for (path, body) in [
        (
            format!("{base}/tenants"),
            json!({"slug": "kid", "name": "Kid"}),
        ),
        (
            format!("{base}/users"),
            json!({"email": "a@acme.example", "display_name": "A", "password": PASSWORD}),
        ),
        (format!("{base}/groups"), json!({"name": "on-call"})),
        (
            format!("{base}/roles"),
            json!({"name": "helpers", "grants": [{"permissions": ["users:read"]}]}),
        ),
        (
            format!("{base}/role-assignments"),
            json!({"role": "viewer", "user_id": user}),
        ),
        (of_acme("/stacks"), stack),
        (of_acme("/templates"), json!({"content": template})),
    ] {
        let first = post(&nimbus, &path, &owner, &path[8..], &body).await;
        assert_eq!(first.status, 201, "{path}: {}", first.text);
        let again = post(&nimbus, &path, &owner, &path[8..], &body).await;
        assert_eq!(again.status, 201, "{path}: {}", again.text);
        assert_eq!(again.json(), first.json(), "{path}");
        assert_eq!(again.headers["idempotent-replayed"], "true");
        // Without the key it is the second of its name.
        let second = nimbus.post(&path, &owner, body).await;
        assert_eq!(second.status, 409, "{path}: {}", second.text);
    }
}

/// Two at once, another body, another path, another caller, and a request that failed.
#[tokio::test]
async fn a_key_is_for_one_request_of_one_caller() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let named = |name: &str| json!({"name": name});
    let body = named("one");
    let both =
        futures::future::join_all((0..4).map(|_| post(&nimbus, &groups, &owner, "k1", &body)))
            .await;
    let made = both.iter().filter(|answer| answer.status == 201).count();
    assert!(made >= 1);
    for answer in &both {
        assert!(
            answer.status == 201 || answer.text.contains("NIM-0888"),
            "{}",
            answer.text
        );
    }
    let listed = nimbus.get(&groups, &owner).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let other = post(&nimbus, &groups, &owner, "k1", &named("two")).await;
    assert!(other.text.contains("NIM-0882"), "{}", other.text);
    let elsewhere = format!("/api/v1/tenants/{}/groups", nimbus.root);
    let other = post(&nimbus, &elsewhere, &owner, "k1", &body).await;
    assert!(other.text.contains("NIM-0882"), "{}", other.text);
    // A key of somebody else is another key.
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let theirs = post(&nimbus, &groups, &admin, "k1", &named("three")).await;
    assert_eq!(theirs.status, 201, "{}", theirs.text);
    // What was not done can be done with the same key.
    let failed = post(&nimbus, &groups, &owner, "k2", &named("")).await;
    assert_eq!(failed.status, 400, "{}", failed.text);
    let done = post(&nimbus, &groups, &owner, "k2", &named("four")).await;
    assert_eq!(done.status, 201, "{}", done.text);
    // Nobody gets an answer by a key alone.
    let nobody = post(&nimbus, &groups, "nonsense", "k2", &named("four")).await;
    assert_eq!(nobody.status, 401, "{}", nobody.text);
}

/// The secret of a key is given once, and is nowhere in the database; nor is anything by which a password could be
/// tried.
#[tokio::test]
async fn an_answer_with_a_secret_is_neither_kept_nor_given_again() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let robot = json!({"email": "robot", "display_name": "R", "service_account": true});
    let robot = text(
        &nimbus
            .post(&format!("{base}/users"), &owner, robot)
            .await
            .ok()["id"],
    );
    let body = json!({"service_account_id": robot, "name": "ci", "scopes": ["users:read"]});
    let keys = format!("{base}/keys");
    let first = post(&nimbus, &keys, &owner, "make-a-key", &body).await.ok();
    let secret = text(&first["secret"]);
    let again = post(&nimbus, &keys, &owner, "make-a-key", &body).await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert!(again.text.contains("NIM-0889"), "{}", again.text);
    assert!(!again.text.contains(&secret));
    let listed = nimbus.get(&keys, &owner).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert!(!nimbus.database.dump().await.contains(&secret));
}
