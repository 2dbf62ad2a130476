//! Stacks and templates of a tenant over the shipped ones, and what holds around every request.

use axum::http::StatusCode;
use nimbus_control_api::{ApiLimits, ApiState, Limit, router};
use serde_json::{Value, json};

use crate::support::{Installation, ORIGIN, installation, text};

const TEMPLATE: &str = "name: one\ndescription: One\nenvironments:\n  dev: {enabled: true, \
                        account: '111111111111', region: eu-west-1}\nstacks: {guest: }\n";

/// Every item of a list, page by page.
async fn listed(nimbus: &Installation, token: &str, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = nimbus
            .get(&format!("{path}&limit=5{after}"), token)
            .await
            .ok();
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

fn named<'a>(items: &'a [Value], name: &str) -> Option<&'a Value> {
    items.iter().find(|one| one["name"] == name)
}

#[tokio::test]
async fn stacks_are_listed_read_with_what_they_need_and_unregistered() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let other = nimbus.tenant(&owner, "other").await;
    let of = |tenant: &str, path: &str| format!("/api/v1{path}?tenant={tenant}");
    let guest = json!({"name": "guest",
        "template": "name: guest\ndescription: Guests\ndependencies: [network]\n",
        "files": {"src/Pulumi.yaml": "name: guest\nruntime: nodejs\n"}});
    let made = nimbus.post(&of(&acme, "/stacks"), &owner, guest).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);

    let stacks = listed(&nimbus, &owner, &of(&acme, "/stacks")).await;
    assert_eq!(named(&stacks, "guest").unwrap()["custom"], true);
    assert_eq!(named(&stacks, "network").unwrap()["custom"], false);
    let elsewhere = listed(&nimbus, &owner, &of(&other, "/stacks")).await;
    assert_eq!(named(&elsewhere, "guest"), None);
    assert_eq!(elsewhere.len() + 1, stacks.len());

    let one = nimbus.get(&of(&acme, "/stacks/guest"), &owner).await.ok();
    assert_eq!(one["dependencies"], json!(["network"]));
    assert!(text(&one["template"]).contains("description: Guests"));
    let foreign = nimbus.get(&of(&other, "/stacks/guest"), &owner).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);

    let delete = async |name: &str| {
        let path = of(&acme, &format!("/stacks/{name}"));
        let answer = nimbus.call("DELETE", &path, Some(&owner), None).await;
        answer.status
    };
    assert_eq!(delete("network").await, StatusCode::FORBIDDEN);
    assert_eq!(delete("guest").await, StatusCode::NO_CONTENT);
    let again = nimbus.get(&of(&acme, "/stacks/guest"), &owner).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    let left = listed(&nimbus, &owner, &of(&acme, "/stacks")).await;
    assert_eq!(left.len() + 1, stacks.len());
}

#[tokio::test]
async fn templates_are_listed_read_and_deleted_unless_they_are_shipped() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let of_acme = |path: &str| format!("/api/v1{path}?tenant={acme}");
    let guest = json!({"name": "guest", "template": "name: guest\n",
        "files": {"src/Pulumi.yaml": "name: guest\nruntime: nodejs\n"}});
    for (path, body) in [
        ("/stacks", guest),
        ("/templates", json!({"content": TEMPLATE})),
    ] {
        let made = nimbus.post(&of_acme(path), &owner, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    let templates = listed(&nimbus, &owner, &of_acme("/templates")).await;
    assert_eq!(named(&templates, "one").unwrap()["custom"], true);
    for shipped in ["default", "minimal", "microservices", "data-platform"] {
        assert_eq!(named(&templates, shipped).unwrap()["custom"], false);
    }
    let one = nimbus.get(&of_acme("/templates/one"), &owner).await.ok();
    assert_eq!(one["content"], TEMPLATE);
    let shipped = nimbus.get(&of_acme("/templates/default"), &owner).await;
    assert!(text(&shipped.ok()["content"]).contains("network"));

    // Whoever deploys does not decide what others deploy from.
    nimbus
        .user(&owner, &acme, "dev@acme.example", Some("developer"))
        .await;
    let developer = nimbus.token("acme", "dev@acme.example").await;
    let delete = async |name: &str, token: &str| {
        let path = of_acme(&format!("/templates/{name}"));
        nimbus.call("DELETE", &path, Some(token), None).await.status
    };
    assert_eq!(delete("one", &developer).await, StatusCode::FORBIDDEN);
    assert_eq!(delete("default", &owner).await, StatusCode::FORBIDDEN);
    assert_eq!(delete("one", &owner).await, StatusCode::NO_CONTENT);
    assert_eq!(delete("one", &owner).await, StatusCode::NOT_FOUND);
}

/// All callers of a tenant together have a limit, and one tenant's is nobody else's.
#[tokio::test]
async fn a_tenant_above_its_limit_waits_and_others_do_not() {
    let mut nimbus = installation!();
    let owner = nimbus.set_up().await;
    for slug in ["noisy", "quiet"] {
        let tenant = nimbus.tenant(&owner, slug).await;
        for person in ["a", "b"] {
            let email = format!("{person}@{slug}.example");
            nimbus.user(&owner, &tenant, &email, Some("viewer")).await;
        }
    }
    let first = nimbus.token("noisy", "a@noisy.example").await;
    let second = nimbus.token("noisy", "b@noisy.example").await;
    let quiet = nimbus.token("quiet", "a@quiet.example").await;
    let many = Limit::per_second(1_000_000);
    let limits = ApiLimits::new(many, many, many).with_tenants(Limit::per_minute(20));
    let state = ApiState::new(nimbus.app.clone(), vec![ORIGIN.to_owned()], limits);
    nimbus.router = router(state);
    let me = "/api/v1/auth/me";
    for _ in 0..10 {
        nimbus.get(me, &first).await.ok();
        nimbus.get(me, &second).await.ok();
    }
    for token in [&first, &second] {
        let refused = nimbus.get(me, token).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers.contains_key("retry-after"));
    }
    nimbus.get(me, &quiet).await.ok();
}

/// Answers, errors and the trail name one request alike, and every answer says what a browser may do with it.
#[tokio::test]
async fn every_answer_has_its_headers_and_the_trace_of_its_record() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let people = format!("/api/v1/tenants/{acme}/users");
    let body =
        json!({"email": "x@acme.example", "display_name": "X", "password": "glass lamp river 9"});
    let made = nimbus.post(&people, &owner, body).await;
    let refused = nimbus.get("/api/v1/tenants/nobody", &owner).await;
    let unsigned = nimbus.call("GET", &people, None, None).await;
    for answer in [&made, &refused, &unsigned] {
        for name in [
            "x-content-type-options",
            "x-frame-options",
            "referrer-policy",
            "content-security-policy",
            "cache-control",
            "strict-transport-security",
        ] {
            assert!(answer.headers.contains_key(name), "{name}: {answer:?}");
        }
        let trace = answer.headers["x-trace-id"].to_str().unwrap();
        assert_eq!(trace.len(), 32);
        if !answer.status.is_success() {
            assert_eq!(answer.json()["error"]["trace_id"], trace);
        }
    }
    let path = format!("/api/v1/tenants/{acme}/audit?action=users.create");
    let entries = nimbus.get(&path, &owner).await.ok();
    let trace = made.headers["x-trace-id"].to_str().unwrap();
    assert_eq!(entries["items"][0]["trace_id"], trace, "{entries}");
}
