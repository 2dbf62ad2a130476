//! A secret that goes in is found nowhere in clear.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::live_rooms::Site;
use crate::live_wire::WireClient;
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

/// Everything that a socket tells while secrets of every kind come, change and go: each in clear, in base64 and as JSON
/// writes it, the old ones and the new ones.
#[tokio::test]
async fn a_secret_is_told_over_no_socket() {
    let site = Site::new(installation!()).await;
    let (nimbus, owner, acme) = (&site.nimbus, &site.owner, site.acme);
    let (mut client, _) = WireClient::connected(&site.served, json!({"token": owner})).await;
    let room = json!({"room": format!("tenant:{acme}"), "tenant": acme});
    assert_eq!(client.ask("subscribe", room).await["ok"], true);
    let base = format!("/api/v1/tenants/{acme}");
    let mut secrets: Vec<String> = Vec::new();
    let mut canary = |number: usize| {
        let secret = format!("canary \"number\" {number} of sockets");
        secrets.push(secret.clone());
        secret
    };
    for round in 0..2 {
        let credentials = json!({"AWS_ACCESS_KEY_ID": canary(10 + round),
            "AWS_SECRET_ACCESS_KEY": canary(20 + round)});
        let body = json!({"provider": "aws", "environment": "prod", "credentials": credentials});
        let path = format!("{base}/cloud-accounts/main");
        let put = nimbus.call("PUT", &path, Some(owner), Some(body)).await;
        assert!(put.status.is_success(), "{}", put.text);
        let email = format!("jane{round}@acme.example");
        let made = json!({"email": email, "password": canary(30 + round)});
        let made = nimbus.post(&format!("{base}/users"), owner, made).await.ok();
        let path = format!("{base}/users/{}", text(&made["id"]));
        let change = json!({"password": canary(40 + round)});
        let changed = nimbus.call("PATCH", &path, Some(owner), Some(change)).await;
        assert!(changed.status.is_success(), "{}", changed.text);
        let password = canary(50 + round);
        let wrong = json!({"tenant": "acme", "email": email, "password": password});
        nimbus
            .call("POST", "/api/v1/auth/login", None, Some(wrong))
            .await;
    }
    let account = json!({"email": "robot", "service_account": true});
    let account = nimbus
        .post(&format!("{base}/users"), owner, account)
        .await
        .ok();
    let key =
        json!({"service_account_id": account["id"], "name": "ci", "scopes": ["users:read"]});
    let key = nimbus.post(&format!("{base}/keys"), owner, key).await.ok();
    secrets.push(text(&key["secret"])[50..].to_owned());
    let last = json!({"name": "the last thing that is told"});
    nimbus.post(&format!("{base}/groups"), owner, last).await.ok();
    let mut heard = String::new();
    loop {
        let (kind, said) = client.packet().await;
        heard.push_str(&said.to_string());
        if kind == "event:group.created" {
            break;
        }
    }
    assert!(
        heard.contains("cloud_account.changed") && heard.contains("user.created"),
        "the search finds what is there: {heard}"
    );
    for secret in &secrets {
        let escaped = serde_json::to_string(secret).unwrap();
        let encoded = STANDARD.encode(secret);
        for form in [
            secret.as_str(),
            escaped.trim_matches('"'),
            encoded.trim_end_matches('='),
        ] {
            assert!(!heard.contains(form), "{form} was told");
        }
    }
}
