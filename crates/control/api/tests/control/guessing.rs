//! Somebody guesses: passwords, tenants, people, and what the time of an answer tells.

use std::collections::BTreeSet;

use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Installation, PASSWORD, installation, text};

async fn attempt(nimbus: &Installation, tenant: &str, email: &str, password: &str) -> Answer {
    let body = json!({"tenant": tenant, "email": email, "password": password});
    nimbus
        .call("POST", "/api/v1/auth/login", None, Some(body))
        .await
}

/// What an answer says, without what differs between any two.
fn said(answer: &Answer) -> (StatusCode, Value) {
    let mut error = answer.json()["error"].clone();
    error["trace_id"] = Value::Null;
    error["timestamp"] = Value::Null;
    (answer.status, error)
}

#[tokio::test]
async fn an_unknown_tenant_or_user_is_answered_and_slowed_like_a_known_one() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let deep = "a/".repeat(100_000);
    let targets = [
        ("acme", "jane@acme.example"),
        ("acme", "nobody@acme.example"),
        ("nowhere", "jane@acme.example"),
        ("acme/below", "jane@acme.example"),
        (deep.as_str(), "jane@acme.example"),
        ("ACME\u{200b}", "jane@acme.example"),
    ];
    let mut histories = BTreeSet::new();
    for (tenant, email) in targets {
        let mut history = Vec::new();
        for _ in 0..9 {
            let (status, mut error) = said(&attempt(&nimbus, tenant, email, "wrong").await);
            if status == StatusCode::TOO_MANY_REQUESTS {
                error = json!("wait");
            }
            history.push(format!("{status} {error}"));
        }
        histories.insert(history);
    }
    assert_eq!(histories.len(), 1, "{histories:#?}");
    let history = histories.first().unwrap();
    assert!(
        history[0].starts_with("401") && history[8].starts_with("429"),
        "{history:#?}"
    );
    // What was tried on tenants that nobody has is in the operator's trail.
    let path = format!(
        "/api/v1/tenants/{}/audit?action=auth.login&outcome=denied",
        nimbus.root
    );
    let entries = nimbus.get(&path, &owner).await.ok();
    let tenants: BTreeSet<_> = entries["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["new_value"]["tenant"].as_str().map(str::to_owned))
        .collect();
    assert!(tenants.contains("nowhere"), "{tenants:?}");
}

#[tokio::test]
async fn attempts_at_once_count_like_attempts_one_after_the_other() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let attempts = (0..40).map(|_| attempt(&nimbus, "", "victim@operator.example", "wrong"));
    let mut judged = 0;
    for answer in futures::future::join_all(attempts).await {
        judged += usize::from(answer.status == StatusCode::UNAUTHORIZED);
    }
    assert!(judged <= 7, "{judged} guesses were judged in one burst");
}

#[tokio::test]
async fn one_password_for_many_accounts_is_slowed_by_the_network_and_not_by_the_address() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let spray = async |number: u32, address: &str| {
        let body =
            json!({"email": format!("user{number}@operator.example"), "password": "Summer2026!"});
        let request = Request::builder().method("POST").uri("/api/v1/auth/login");
        nimbus.send_from(address, request, Some(&body)).await.status
    };
    let mut slowed = false;
    for number in 0..60 {
        // Another address of the same /64 each time.
        let address = format!("[2001:db8:1:2::{number:x}]:4000");
        slowed |= spray(number, &address).await == StatusCode::TOO_MANY_REQUESTS;
    }
    assert!(slowed, "sixty accounts were tried from one network");
    assert_eq!(
        spray(999, "[2001:db8:9:9::1]:4000").await,
        StatusCode::UNAUTHORIZED
    );
    // The owner is not asked to wait at the usual desk.
    nimbus.login("", "owner@operator.example").await;
}

/// A thousand wrong passwords in a minute, from everywhere at everybody: no network and no account has made
/// many of them.
#[tokio::test]
async fn a_flood_from_everywhere_at_everybody_stops_strangers_and_no_known_desk() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    // Jane has a desk; she has never been seen elsewhere.
    nimbus.login("acme", "jane@acme.example").await;
    let elsewhere = async |password: &str| {
        let body = json!({"tenant": "acme", "email": "jane@acme.example", "password": password});
        let request = Request::builder().method("POST").uri("/api/v1/auth/login");
        let address = "198.51.100.7:4000";
        nimbus.send_from(address, request, Some(&body)).await
    };
    let flood = async |count: u32| {
        nimbus
            .database
            .run_as_administrator(&format!(
                "INSERT INTO nimbus_core.sign_ins (account, network)
                 SELECT sha256(n::text::bytea), '203.0.' || n / 250 || '.' || n % 250
                 FROM generate_series(1, {count}) n"
            ))
            .await;
    };
    flood(990).await;
    assert_eq!(elsewhere("wrong").await.status, StatusCode::UNAUTHORIZED);
    flood(10).await;
    let stopped = elsewhere(PASSWORD).await;
    assert_eq!(stopped.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(stopped.headers.contains_key("retry-after"));
    nimbus.login("acme", "jane@acme.example").await;
    // A minute later it is over.
    nimbus
        .database
        .run_as_administrator("UPDATE nimbus_core.sign_ins SET at = at - interval '61 seconds'")
        .await;
    assert_eq!(elsewhere(PASSWORD).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_new_password_and_signing_out_everywhere_end_every_other_session() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let first = nimbus.token("", "owner@operator.example").await;
    let root = nimbus.root;
    // More than any page of a list.
    let many = async || {
        nimbus
            .database
            .run_as_administrator(&format!(
                "INSERT INTO nimbus_core.sessions (tenant_id, id, user_id, seed, expires_at)
                 SELECT '{root}', gen_random_uuid(), (SELECT id FROM nimbus_core.users LIMIT 1), gen_random_uuid(),
                        now() + interval '1 day' FROM generate_series(1, 700)"
            ))
            .await;
    };
    let alive = async || {
        let count = "SELECT count(*)::text FROM nimbus_core.sessions WHERE revoked_at IS NULL";
        nimbus.database.texts(count).await.remove(0)
    };
    many().await;
    let stolen = nimbus.token("", "owner@operator.example").await;
    let ended = nimbus
        .call("DELETE", "/api/v1/auth/sessions", Some(&first), None)
        .await
        .ok();
    assert!(ended["ended"].as_u64().unwrap() > 700, "{ended}");
    assert_eq!(alive().await, "1");
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &stolen).await.status,
        StatusCode::UNAUTHORIZED
    );
    many().await;
    let body = json!({"current_password": PASSWORD, "new_password": "quiet tree stone 4"});
    nimbus
        .post("/api/v1/auth/password", &first, body)
        .await
        .ok();
    assert_eq!(alive().await, "1");
    nimbus.get("/api/v1/auth/me", &first).await.ok();
}

#[tokio::test]
async fn a_password_that_is_easy_to_guess_is_refused() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let path = format!("/api/v1/tenants/{acme}/users/{user}");
    for (password, status) in [
        ("Password2024!", StatusCode::BAD_REQUEST),
        ("abababababab", StatusCode::BAD_REQUEST),
        ("short", StatusCode::BAD_REQUEST),
        ("quiet tree stone 4", StatusCode::OK),
    ] {
        let change = json!({"password": password});
        let answer = nimbus.call("PATCH", &path, Some(&owner), Some(change));
        let answer = answer.await;
        assert_eq!(answer.status, status, "{password}: {}", answer.text);
        // Their own is held to the same.
        let own = json!({"current_password": PASSWORD, "new_password": password});
        if status != StatusCode::OK {
            let answer = nimbus.post("/api/v1/auth/password", &owner, own).await;
            assert_eq!(answer.status, status, "{password}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn a_stolen_session_guesses_the_password_no_faster_than_the_front_door() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let body = json!({"current_password": "wrong", "new_password": "quiet tree stone 4"});
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(
            nimbus
                .post("/api/v1/auth/password", &owner, body.clone())
                .await
                .status,
        );
    }
    assert_eq!(statuses[0], StatusCode::UNAUTHORIZED);
    assert_eq!(statuses[7], StatusCode::TOO_MANY_REQUESTS, "{statuses:?}");
}

#[tokio::test]
async fn own_password_needs_the_current_one() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let me = nimbus.get("/api/v1/auth/me", &owner).await.ok();
    let path = format!(
        "/api/v1/tenants/{}/users/{}",
        nimbus.root,
        text(&me["user"]["id"])
    );
    let body = json!({"password": "quiet tree stone 4"});
    let answer = nimbus.call("PATCH", &path, Some(&owner), Some(body)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
}
