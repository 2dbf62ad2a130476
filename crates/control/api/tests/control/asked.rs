//! What somebody asks of a run that no run could do is refused at once, by the field's name.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::catalog::{bucket, deployed, published};
use crate::support::{Installation, installation, text};

/// An owner with a deployment of one stack.
async fn site(nimbus: &Installation) -> (String, String) {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let root = nimbus.root.to_string();
    published(nimbus, &owner, &root, bucket("bucket")).await;
    deployed(nimbus, &owner, &acme, "D1ASK").await.ok();
    (owner, acme)
}

async fn refused(nimbus: &Installation, owner: &str, path: &str, more: Value, field: &str) {
    let mut body = json!({"environment": "dev", "rehearsal": true});
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let answer = nimbus.post(path, owner, body).await;
    assert_eq!(
        answer.status,
        StatusCode::BAD_REQUEST,
        "{more}: {}",
        answer.text
    );
    assert!(answer.text.contains(field), "{more}: {}", answer.text);
}

#[tokio::test]
async fn a_message_is_short_however_it_is_sent() {
    let nimbus = installation!();
    let (owner, acme) = site(&nimbus).await;
    let path = format!("/api/v1/deployments/D1ASK/deploy?tenant={acme}");
    let long = "é".repeat(2_001);
    refused(&nimbus, &owner, &path, json!({"message": long}), "message").await;
    let fine = json!({"environment": "dev", "rehearsal": true, "message": "é".repeat(2_000)});
    let run = nimbus.post(&path, &owner, fine).await.ok();
    assert!(!text(&run["id"]).is_empty());
}

#[tokio::test]
async fn stacks_versions_and_orders_that_mean_nothing_are_refused_at_once() {
    let nimbus = installation!();
    let (owner, acme) = site(&nimbus).await;
    // What the workers of a server read orders with is not here.
    nimbus
        .app
        .check_orders_with(|order| match order.contains("on:") {
            true => Ok(()),
            false => Err(nimbus_core::Error::new(
                nimbus_core::ErrorCode::INPUT_INVALID,
                "this is no order",
            )),
        });
    for action in ["deploy", "preview"] {
        let path = format!("/api/v1/deployments/D1ASK/{action}?tenant={acme}");
        for (more, field) in [
            (json!({"stacks": []}), "stacks"),
            (json!({"stacks": ["bucket", "bucket"]}), "stacks"),
            (json!({"to_version": 1}), "to_version"),
            (json!({"orders": ["on: create", "nonsense"]}), "orders[1]"),
        ] {
            refused(&nimbus, &owner, &path, more, field).await;
        }
    }
}

#[tokio::test]
async fn files_that_could_not_stand_beside_each_other_are_refused() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let path = format!("/api/v1/components?tenant={root}");
    for more in [
        "src/index.ts/x.ts",
        "src/INDEX.ts",
        "src/.env",
        "src/.env.local",
        "src/.npmrc",
        "src/Pulumi.dev.yaml",
    ] {
        let mut body = bucket("twice");
        body["files"][more] = json!("export const a = 1;");
        let answer = nimbus.post(&path, &owner, body).await;
        assert!(
            answer.status.is_client_error(),
            "{more}: {} {}",
            answer.status,
            answer.text
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said_in_words_of_json() {
    let nimbus = installation!();
    let (owner, acme) = site(&nimbus).await;
    let path = format!("/api/v1/deployments/D1ASK/deploy?tenant={acme}");
    for (more, words) in [
        (json!({"parallel": -1}), "whole number that is not negative"),
        (
            json!({"parallel": "x"}),
            "whole number that is not negative",
        ),
        (json!({"stacks": 1}), "a list"),
    ] {
        refused(&nimbus, &owner, &path, more, words).await;
    }
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    refused(
        &nimbus,
        &owner,
        &path,
        json!({"message": deep}),
        "too deeply",
    )
    .await;
}
