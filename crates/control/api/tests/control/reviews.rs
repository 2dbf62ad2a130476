//! Drafts, marks on plans, and the page of the installation: whose they are, and who finds nothing.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Installation, PASSWORD, installation, text};

async fn put(nimbus: &Installation, path: &str, token: &str, body: Value) -> Answer {
    nimbus.call("PUT", path, Some(token), Some(body)).await
}

fn draft(project: &str) -> Value {
    json!({"kind": "deployment", "content": {"project": project, "note": "canary-of-a-draft"}})
}

#[tokio::test]
async fn a_draft_is_its_writers_alone_sealed_and_the_same_on_every_machine() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for name in ["ana", "ben"] {
        let email = format!("{name}@acme.example");
        nimbus.user(&owner, &acme, &email, Some("developer")).await;
    }
    let ana = nimbus.token("acme", "ana@acme.example").await;
    let ben = nimbus.token("acme", "ben@acme.example").await;
    let path = "/api/v1/drafts/new-deployment";
    put(&nimbus, path, &ana, draft("shop")).await.ok();
    put(&nimbus, path, &ana, draft("store")).await.ok();
    // Signed in elsewhere.
    let again = nimbus.token("acme", "ana@acme.example").await;
    let found = nimbus.get("/api/v1/drafts", &again).await.ok();
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["items"][0]["content"]["project"], "store");
    assert!(text(&found["items"][0]["expires_at"]) > text(&found["items"][0]["updated_at"]));
    assert!(!nimbus.database.dump().await.contains("canary-of-a-draft"));

    // Neither a colleague nor whoever runs the installation finds it.
    for token in [&ben, &owner] {
        let listed = nimbus
            .get(&format!("/api/v1/drafts?tenant={acme}"), token)
            .await;
        assert_eq!(listed.ok()["items"], json!([]));
    }
    let removed = nimbus.call("DELETE", path, Some(&ben), None).await;
    assert_eq!(removed.status, StatusCode::NOT_FOUND);
    let removed = nimbus.call("DELETE", path, Some(&ana), None).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    let left = nimbus.get("/api/v1/drafts", &ana).await.ok();
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn drafts_that_are_too_large_too_many_or_misnamed_are_refused() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let large = json!({"kind": "deployment", "content": "x".repeat(70_000)});
    for (path, body) in [
        ("/api/v1/drafts/big", large),
        ("/api/v1/drafts/a%2Fb", draft("x")),
        (
            "/api/v1/drafts/kind",
            json!({"kind": "No Such", "content": {}}),
        ),
    ] {
        let answer = put(&nimbus, path, &owner, body).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{path}: {}",
            answer.text
        );
    }
    for number in 0..50 {
        let path = format!("/api/v1/drafts/d{number}");
        put(&nimbus, &path, &owner, draft("x")).await.ok();
    }
    let one_more = put(&nimbus, "/api/v1/drafts/d50", &owner, draft("x")).await;
    assert!(one_more.text.contains("NIM-0867"), "{}", one_more.text);
    // One that is there can still be changed.
    put(&nimbus, "/api/v1/drafts/d49", &owner, draft("y"))
        .await
        .ok();
}

/// A tenant with a deployment and a plan that nobody carries out.
async fn planned(nimbus: &Installation, owner: &str) -> (String, String) {
    let acme = nimbus.tenant(owner, "acme").await;
    let ask = |path: &str| format!("/api/v1/{path}?tenant={acme}");
    let deployment = json!({"id": "D1PLAN", "organization": "o", "project": "p", "template": "minimal", "domain": "o.example",
        "accounts": {"dev": "111111111111"}});
    nimbus
        .post(&ask("deployments"), owner, deployment)
        .await
        .ok();
    let run = nimbus
        .post(
            &ask("deployments/D1PLAN/preview"),
            owner,
            json!({"environment": "dev", "rehearsal": true}),
        )
        .await
        .ok();
    (acme, text(&run["id"]))
}

#[tokio::test]
async fn marks_are_each_persons_and_everybody_sees_who_looked() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let (acme, run) = planned(&nimbus, &owner).await;
    let ana = nimbus
        .user(&owner, &acme, "ana@acme.example", Some("viewer"))
        .await;
    let token = nimbus.token("acme", "ana@acme.example").await;
    let marks = format!("/api/v1/runs/{run}/marks?tenant={acme}");
    let network = format!("/api/v1/runs/{run}/marks/unit:network?tenant={acme}");
    // Whoever may read a plan may say that they did.
    put(&nimbus, &network, &token, json!({"digest": "abc"}))
        .await
        .ok();
    put(&nimbus, &network, &owner, json!({"digest": "older"}))
        .await
        .ok();
    let found = nimbus.get(&marks, &token).await.ok();
    let rows: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| (text(&mark["digest"]), mark["name"].as_str()))
        .collect();
    assert!(
        rows.contains(&("abc".to_owned(), Some("ana@acme.example"))),
        "{rows:?}"
    );
    // Somebody of a tenant above has no address here.
    assert!(rows.contains(&("older".to_owned(), None)), "{rows:?}");
    // Looking again at something else replaces the mark, and taking it back takes only one's own.
    put(&nimbus, &network, &token, json!({"digest": "def"}))
        .await
        .ok();
    let gone = nimbus.call("DELETE", &network, Some(&owner), None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let left = nimbus.get(&marks, &token).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(
        (
            text(&left["items"][0]["digest"]),
            text(&left["items"][0]["person"])
        ),
        ("def".into(), ana)
    );
    // A list with many of them comes in parts, each mark once.
    for number in 0..5 {
        let one = format!("/api/v1/runs/{run}/marks/unit:u.{number}?tenant={acme}");
        for who in [&token, &owner] {
            put(&nimbus, &one, who, json!({"digest": "x"})).await.ok();
        }
    }
    let mut after = String::new();
    let mut read = Vec::new();
    loop {
        let part = nimbus.get(&format!("{marks}&limit=3{after}"), &token).await;
        let part = part.ok();
        let items = part["items"].as_array().unwrap();
        assert!(items.len() <= 3, "{part}");
        read.extend(
            items
                .iter()
                .map(|one| (text(&one["item"]), text(&one["person"]))),
        );
        let Some(next) = part["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(read.len(), 11, "{read:?}");
    assert!(read.is_sorted(), "{read:?}");
    read.dedup();
    assert_eq!(read.len(), 11, "{read:?}");
    let astray = nimbus.get(&format!("{marks}&after=astray"), &token).await;
    assert_eq!(astray.status, StatusCode::BAD_REQUEST);
    for number in 0..5 {
        let one = format!("/api/v1/runs/{run}/marks/unit:u.{number}?tenant={acme}");
        for who in [&token, &owner] {
            nimbus.call("DELETE", &one, Some(who), None).await.ok();
        }
    }
    let wrong = put(&nimbus, &network, &token, json!({"digest": ""})).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    // Another plan of the same environment has the same marks: they hold where the same would change.
    let second = nimbus
        .post(
            &format!("/api/v1/deployments/D1PLAN/preview?tenant={acme}"),
            &owner,
            json!({"environment": "dev", "rehearsal": true}),
        )
        .await
        .ok();
    let path = format!("/api/v1/runs/{}/marks?tenant={acme}", text(&second["id"]));
    assert_eq!(nimbus.get(&path, &token).await.ok(), left);
    let review = format!("/api/v1/runs/{run}/review?tenant={acme}");
    let review = nimbus.get(&review, &token).await.ok();
    let newest = review["seal"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["kind"] == "newest")
        .unwrap();
    assert_eq!(
        newest["moved"], "R0002 is a newer plan of the same environment.",
        "{review}"
    );
}

#[tokio::test]
async fn a_plan_says_that_the_manifest_and_the_programs_moved() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let (acme, run) = planned(&nimbus, &owner).await;
    let review = format!("/api/v1/runs/{run}/review?tenant={acme}");
    let moved = |review: &Value| -> Vec<String> {
        let items = review["seal"].as_array().unwrap().iter();
        items
            .filter(|item| item["moved"].is_string())
            .map(|item| text(&item["kind"]))
            .collect()
    };
    let before = nimbus.get(&review, &owner).await.ok();
    assert_eq!(moved(&before), Vec::<String>::new(), "{before}");
    let of = |path: &str| format!("/api/v1/{path}?tenant={acme}");
    let manifest = nimbus
        .get(&of("deployments/D1PLAN/manifest"), &owner)
        .await
        .ok();
    let manifest = format!("{}\n# looked at\n", text(&manifest["manifest"]));
    let request = axum::http::Request::builder()
        .method("PUT")
        .uri(of("deployments/D1PLAN"))
        .header("authorization", format!("Bearer {owner}"))
        .header("if-match", "\"1\"");
    nimbus
        .send(request, Some(&json!({"manifest": manifest})))
        .await
        .ok();
    let stack = json!({"name": "extra", "template": "name: extra\n",
        "files": {"src/Pulumi.yaml": "name: extra\nruntime: nodejs\n"}});
    nimbus.post(&of("stacks"), &owner, stack).await.ok();
    let after = nimbus.get(&review, &owner).await.ok();
    assert_eq!(moved(&after), ["programs", "manifest"], "{after}");
}

#[tokio::test]
async fn only_the_operators_tenant_has_a_system_page() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let shown = nimbus.get("/api/v1/system", &owner).await.ok();
    let checks: Vec<_> = shown["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (text(&check["kind"]), text(&check["status"])))
        .collect();
    for wanted in ["database", "isolation", "clock"] {
        assert!(
            checks.contains(&(wanted.to_owned(), "ok".to_owned())),
            "{checks:?}"
        );
    }
    assert_eq!(shown["database"]["tenants"], 2);
    assert!(shown["database"]["bytes"].as_u64().unwrap() > 1_000_000);
    let elsewhere = nimbus
        .get(&format!("/api/v1/system?tenant={acme}"), &owner)
        .await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND);
    nimbus
        .user(&owner, &acme, "ana@acme.example", Some("admin"))
        .await;
    let body = json!({"tenant": "acme", "email": "ana@acme.example", "password": PASSWORD});
    let ana = nimbus
        .call("POST", "/api/v1/auth/login", None, Some(body))
        .await
        .ok();
    let refused = nimbus
        .get("/api/v1/system", &text(&ana["access_token"]))
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn only_a_rehearsal_takes_orders() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let (acme, _) = planned(&nimbus, &owner).await;
    let path = format!("/api/v1/deployments/D1PLAN/deploy?tenant={acme}");
    let order = "on: create, do: fail";
    for wrong in [
        json!({"environment": "dev", "orders": [order]}),
        json!({"environment": "dev", "rehearsal": true, "orders": vec![order; 21]}),
        json!({"environment": "dev", "rehearsal": true, "orders": ["x".repeat(600)]}),
        json!({"environment": "dev", "rehearsal": true, "latency_ms": 100_000}),
    ] {
        let answer = nimbus.post(&path, &owner, wrong.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{wrong}: {}",
            answer.text
        );
    }
    let taken =
        json!({"environment": "dev", "rehearsal": true, "orders": [order], "latency_ms": 5});
    nimbus.post(&path, &owner, taken).await.ok();
}
