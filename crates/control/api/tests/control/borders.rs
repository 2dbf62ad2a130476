//! Answers at the borders: too much, in the wrong way, of the wrong one, about somebody stronger.

use nimbus_control_store::{NewDeployment, NewRun, StoreError};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};

use crate::support::{Installation, PASSWORD, installation, text};

/// What is too large and what a path does not take have their own statuses, in the form of every error.
#[tokio::test]
async fn too_large_and_not_taken_have_their_own_statuses() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let users = format!("/api/v1/tenants/{}/users", nimbus.root);
    let body = json!({"email": "x".repeat(2 << 20)});
    let large = nimbus.post(&users, &owner, body).await;
    assert_eq!(large.status, 413, "{}", large.text);
    assert_eq!(large.json()["error"]["reference"], "NIM-0872");
    let wrong = nimbus.call("DELETE", &users, Some(&owner), None).await;
    assert_eq!(wrong.status, 405, "{}", wrong.text);
    assert_eq!(wrong.json()["error"]["reference"], "NIM-0870");
    let allowed = wrong.headers["allow"].to_str().unwrap();
    for method in ["GET", "HEAD", "POST"] {
        assert!(allowed.contains(method), "{allowed}");
    }
    assert!(!allowed.contains("DELETE"), "{allowed}");
}

/// Two tenants of one name are told apart by nobody but whoever asks.
#[tokio::test]
async fn a_name_that_two_tenants_have_is_refused_and_both_are_named() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let first = nimbus.tenant(&owner, "globex").await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/tenants/{acme}/tenants");
    let twin = json!({"slug": "globex", "name": "Globex of Acme"});
    let second = text(&nimbus.post(&path, &owner, twin).await.ok()["id"]);
    let answer = nimbus
        .get("/api/v1/deployments?tenant=globex", &owner)
        .await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    for id in [&first, &second] {
        assert!(answer.text.contains(id.as_str()), "{}", answer.text);
    }
    // Whoever sees one of them means that one.
    let user = nimbus.user(&owner, &acme, "a@acme.example", None).await;
    let assigned = json!({"role": "tenant_admin", "user_id": user, "subtree": true});
    let path = format!("/api/v1/tenants/{acme}/role-assignments");
    nimbus.post(&path, &owner, assigned).await.ok();
    let admin = nimbus.token("acme", "a@acme.example").await;
    let answer = nimbus
        .get("/api/v1/deployments?tenant=globex", &admin)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Who may manage people may not sign out, disable or give a password to somebody who may more.
#[tokio::test]
async fn nobody_is_put_out_by_somebody_weaker() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let grants = json!([{"permissions": ["users:read", "users:account:update", "users:account:delete",
        "users:session:read", "users:session:revoke"]}]);
    let role = json!({"name": "people", "grants": grants});
    let made = nimbus.post(&format!("{base}/roles"), &owner, role).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let strong = nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    nimbus
        .user(&owner, &acme, "clerk@acme.example", Some("people"))
        .await;
    let weak = nimbus.user(&owner, &acme, "weak@acme.example", None).await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let clerk = nimbus.token("acme", "clerk@acme.example").await;
    let sessions = format!("{base}/users/{strong}/sessions");
    let listed = nimbus.get(&sessions, &clerk).await.ok();
    let session = text(&listed["items"][0]["id"]);
    let person = format!("{base}/users/{strong}");
    for (method, path, body) in [
        ("DELETE", sessions.clone(), None),
        ("DELETE", format!("{sessions}/{session}"), None),
        ("PATCH", person.clone(), Some(json!({"disabled": true}))),
        ("PATCH", person.clone(), Some(json!({"password": PASSWORD}))),
        ("DELETE", person, None),
    ] {
        let refused = nimbus.call(method, &path, Some(&clerk), body).await;
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.text);
    }
    nimbus.get("/api/v1/auth/me", &admin).await.ok();
    // Somebody who may not more is another matter.
    let path = format!("{base}/users/{weak}/sessions");
    let ended = nimbus.call("DELETE", &path, Some(&clerk), None).await;
    assert_eq!(ended.status, 200, "{}", ended.text);
}

/// A permission in some environments is not one in all of them.
#[tokio::test]
async fn an_explanation_without_an_environment_does_not_say_more_than_is_true() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let grants = json!([{"permissions": ["stack:instance:deploy"], "environments": ["dev"]}]);
    let role = json!({"name": "devs", "grants": grants});
    nimbus
        .post(&format!("{base}/roles"), &owner, role)
        .await
        .ok();
    let user = nimbus
        .user(&owner, &acme, "dev@acme.example", Some("devs"))
        .await;
    let ask = async |environment: Option<&str>| {
        let mut question = json!({"user_id": user, "permission": "stack:instance:deploy"});
        if let Some(environment) = environment {
            question["environment"] = json!(environment);
        }
        let path = format!("{base}/explain");
        nimbus.post(&path, &owner, question).await.ok()
    };
    assert_eq!(ask(Some("dev")).await["allowed"], true);
    assert_eq!(ask(Some("prod")).await["allowed"], false);
    let all = ask(None).await;
    assert_eq!(all["allowed"], false, "{all}");
    assert!(all["reasons"].to_string().contains("environments: dev"));
}

async fn queue(nimbus: &Installation, tenant: &str, events: &[Value]) -> String {
    let user = UserId::from(uuid::Uuid::new_v4());
    let tenant: TenantId = tenant.parse().unwrap();
    let manifest = "apiVersion: v1\n".to_owned();
    let queued: Result<_, StoreError> = nimbus
        .database
        .store
        .tenant_tx(tenant, async |tx| {
            let new = NewDeployment {
                id: "D1".to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest,
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
            let run = tx.run_queue(&new).await?;
            let run = tx.run_lock(run.id).await?;
            tx.events_append_idle(&run, events).await?;
            Ok(run)
        })
        .await;
    queued.unwrap().id.to_string()
}

/// A stack that a run needs stays until the run is over.
#[tokio::test]
async fn a_stack_of_a_run_that_waits_is_not_deleted() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let stack = json!({"name": "guest", "template": "name: guest\n",
        "files": {"src/Pulumi.yaml": "name: guest\nruntime: nodejs\n"}});
    let of_acme = |path: &str| format!("/api/v1{path}?tenant={acme}");
    nimbus.post(&of_acme("/stacks"), &owner, stack).await.ok();
    let run = queue(&nimbus, &acme, &[]).await;
    let path = of_acme("/stacks/guest");
    let refused = nimbus.call("DELETE", &path, Some(&owner), None).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(refused.text.contains("NIM-0883"), "{}", refused.text);
    let refused = nimbus
        .call("DELETE", &of_acme("/deployments/D1"), Some(&owner), None)
        .await;
    assert!(refused.text.contains("NIM-0883"), "{}", refused.text);
    let cancel = of_acme(&format!("/runs/{run}/cancel"));
    nimbus.post(&cancel, &owner, json!({})).await.ok();
    let path = of_acme("/stacks/guest");
    let gone = nimbus.call("DELETE", &path, Some(&owner), None).await;
    assert_eq!(gone.status, 204, "{}", gone.text);
}

/// Large events come in more pages, and nothing is left out.
#[tokio::test]
async fn pages_of_events_and_logs_are_bounded_by_bytes() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let line = |number: usize| {
        json!({"event": "diagnostic", "at": "2026-01-01T00:00:00.000Z", "level": "info",
               "message": format!("{number} {}", "x".repeat(200 * 1024))})
    };
    let events: Vec<_> = (1..=60).map(line).collect();
    let run = queue(&nimbus, &acme, &events).await;
    let (mut after, mut seen, mut pages) = (0, 0, 0);
    loop {
        let path = format!("/api/v1/runs/{run}/events?tenant={acme}&after={after}&limit=1000");
        let answer = nimbus.get(&path, &owner).await;
        assert!(answer.text.len() < 6 << 20, "{}", answer.text.len());
        let page = answer.ok();
        let count = page["items"].as_array().unwrap().len();
        if count == 0 {
            break;
        }
        seen += count;
        pages += 1;
        after = page["next"].as_i64().unwrap();
    }
    assert_eq!((seen, after), (60, 60));
    assert!(pages > 1);
    // The log from its end, and from its beginning.
    for (word, first) in [("before", 61), ("after", 0)] {
        let (mut at, mut seen) = (first, 0);
        loop {
            let path = format!("/api/v1/runs/{run}/log?tenant={acme}&{word}={at}&limit=2000");
            let answer = nimbus.get(&path, &owner).await;
            assert!(answer.text.len() < 6 << 20, "{}", answer.text.len());
            let page = answer.ok();
            seen += page["lines"].as_array().unwrap().len();
            let end = if word == "before" { "first" } else { "last" };
            match page["more"].as_bool() {
                Some(true) => at = page[end].as_i64().unwrap(),
                _ => break,
            }
        }
        assert_eq!(seen, 60, "{word}");
    }
}
