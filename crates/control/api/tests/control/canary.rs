//! A secret that goes in is found nowhere in clear.

use axum::http::StatusCode;
use serde_json::json;

use crate::support::{installation, text};

const CANARIES: &[&str] = &[
    "canary marzipan 71",
    "canary lighthouse 82",
    "canary umbrella 93",
];

#[tokio::test]
async fn a_secret_is_in_no_row_no_answer_and_no_record() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let base = format!("/api/v1/tenants/{acme}");
    let mut answers = String::new();
    let user = json!({"email": "jane@acme.example", "password": CANARIES[0]});
    let made = nimbus.post(&format!("{base}/users"), &owner, user).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let id = text(&made.json()["id"]);
    answers.push_str(&made.text);
    let change = json!({"password": CANARIES[1]});
    answers.push_str(
        &nimbus
            .call(
                "PATCH",
                &format!("{base}/users/{id}"),
                Some(&owner),
                Some(change),
            )
            .await
            .text,
    );
    let login = json!({"tenant": "acme", "email": "jane@acme.example", "password": CANARIES[2]});
    answers.push_str(
        &nimbus
            .call("POST", "/api/v1/auth/login", None, Some(login))
            .await
            .text,
    );
    let login = json!({"tenant": "acme", "email": "jane@acme.example", "password": CANARIES[1]});
    let signed_in = nimbus
        .call("POST", "/api/v1/auth/login", None, Some(login))
        .await
        .ok();
    let account = json!({"email": "robot", "service_account": true});
    let account = text(
        &nimbus
            .post(&format!("{base}/users"), &owner, account)
            .await
            .ok()["id"],
    );
    let key = json!({"service_account_id": account, "name": "ci", "scopes": ["users:read"]});
    let key = text(&nimbus.post(&format!("{base}/keys"), &owner, key).await.ok()["secret"]);
    answers.push_str(
        &nimbus
            .get(&format!("{base}/audit/export"), &owner)
            .await
            .text,
    );

    let stored = nimbus.database.dump().await;
    assert!(
        stored.contains("jane@acme.example"),
        "the search finds what is there"
    );
    let mut secrets: Vec<String> = CANARIES.iter().map(|&canary| canary.to_owned()).collect();
    for token in [
        text(&signed_in["refresh_token"]),
        text(&signed_in["access_token"]),
        owner.clone(),
    ] {
        secrets.push(token.rsplit('.').next().unwrap().to_owned());
    }
    secrets.push(key[50..].to_owned());
    for secret in secrets {
        assert!(!stored.contains(&secret), "{secret} is in the database");
        assert!(!answers.contains(&secret), "{secret} is in an answer");
    }
}
