//! Sessions: refreshed, ended, and safe from other sites.

use axum::http::{Request, StatusCode, header};
use serde_json::json;

use crate::support::{Installation, ORIGIN, PASSWORD, installation, text};

async fn refresh(nimbus: &Installation, token: &str) -> crate::support::Answer {
    let body = json!({"refresh_token": token});
    nimbus
        .call("POST", "/api/v1/auth/refresh", None, Some(body))
        .await
}

#[tokio::test]
async fn a_refresh_token_works_once_and_its_reuse_ends_the_session() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let first = nimbus.login("", "owner@operator.example").await;
    let second = refresh(&nimbus, &text(&first["refresh_token"])).await.ok();
    let again = refresh(&nimbus, &text(&first["refresh_token"])).await.ok();
    assert_eq!(
        second["refresh_token"], again["refresh_token"],
        "two tabs of one moment"
    );
    let body = json!({"refresh_token": second["refresh_token"]});
    let third = nimbus
        .call("POST", "/api/v1/auth/refresh-token", None, Some(body))
        .await
        .ok();

    let stolen = refresh(&nimbus, &text(&first["refresh_token"])).await;
    assert_eq!(stolen.status, StatusCode::UNAUTHORIZED);
    let honest = refresh(&nimbus, &text(&third["refresh_token"])).await;
    assert_eq!(
        honest.status,
        StatusCode::UNAUTHORIZED,
        "the whole family ended"
    );
    let access = nimbus
        .get("/api/v1/auth/me", &text(&third["access_token"]))
        .await;
    assert_eq!(access.status, StatusCode::UNAUTHORIZED);

    let owner = nimbus.token("", "owner@operator.example").await;
    let path = format!(
        "/api/v1/tenants/{}/audit?action=auth.refresh.reused",
        nimbus.root
    );
    let entries = nimbus.get(&path, &owner).await.ok();
    assert_eq!(entries["items"].as_array().unwrap().len(), 1);
}

/// S6: many tabs refresh at one moment and stay one family; a token that was used up ends it, however long ago
/// that was and whichever generation it is of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tabs_of_one_moment_share_a_child_and_a_later_reuse_ends_the_family() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let reuses = async || {
        let count = "SELECT count(*)::text FROM nimbus_core.audit_logs WHERE action = 'auth.refresh.reused'";
        nimbus.database.texts(count).await.remove(0)
    };
    let pass = async |seconds: u32| {
        let rotated = format!(
            "UPDATE nimbus_core.sessions SET rotated_at = rotated_at - interval '{seconds} seconds'"
        );
        nimbus.database.run_as_administrator(&rotated).await;
    };
    for round in 0..nimbus_test_tools::short_or_long(3, 100) {
        let login = nimbus.login("", "owner@operator.example").await;
        let parent = text(&login["refresh_token"]);
        let tabs = futures::future::join_all((0..10).map(|_| refresh(&nimbus, &parent))).await;
        let children: std::collections::BTreeSet<_> = tabs
            .into_iter()
            .map(|tab| text(&tab.ok()["refresh_token"]))
            .collect();
        assert_eq!(children.len(), 1, "one family, one child");
        let child = children.into_iter().next().unwrap();
        // Five seconds later it is still the same moment; after ten it is a theft.
        pass(5).await;
        let late = refresh(&nimbus, &parent).await.ok();
        assert_eq!(late["refresh_token"], child.as_str());
        let before: usize = reuses().await.parse().unwrap();
        if round % 2 == 0 {
            pass(6).await;
        } else {
            // The grandparent, at once.
            refresh(&nimbus, &child).await.ok();
        }
        let stolen = refresh(&nimbus, &parent).await;
        assert_eq!(stolen.status, StatusCode::UNAUTHORIZED);
        assert_eq!(reuses().await, (before + 1).to_string());
        let honest = refresh(&nimbus, &child).await;
        assert_eq!(honest.status, StatusCode::UNAUTHORIZED, "the family ended");
    }
}

#[tokio::test]
async fn signing_out_counts_at_once() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    nimbus.get("/api/v1/auth/me", &owner).await.ok();
    nimbus
        .call("POST", "/api/v1/auth/logout", Some(&owner), None)
        .await
        .ok();
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &owner).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn disabling_a_user_and_taking_a_role_count_at_once() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let assignment = text(&nimbus.assign(&owner, &acme, &user, "viewer").await.ok()["id"]);
    let signed_in = nimbus.login("acme", "jane@acme.example").await;
    let jane = text(&signed_in["access_token"]);
    let users = format!("/api/v1/tenants/{acme}/users");
    nimbus.get(&users, &jane).await.ok();

    let path = format!("/api/v1/tenants/{acme}/role-assignments/{assignment}");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    assert_eq!(
        nimbus.get(&users, &jane).await.status,
        StatusCode::NOT_FOUND
    );

    let path = format!("{users}/{user}");
    nimbus
        .call(
            "PATCH",
            &path,
            Some(&owner),
            Some(json!({"disabled": true})),
        )
        .await
        .ok();
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &jane).await.status,
        StatusCode::UNAUTHORIZED
    );
    let refreshed = refresh(&nimbus, &text(&signed_in["refresh_token"])).await;
    assert_eq!(refreshed.status, StatusCode::UNAUTHORIZED);
    let body = json!({"tenant": "acme", "email": "jane@acme.example", "password": PASSWORD});
    let login = nimbus
        .call("POST", "/api/v1/auth/login", None, Some(body))
        .await;
    assert_eq!(login.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn wrong_names_and_wrong_passwords_look_the_same_and_are_slowed() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let attempt = async |tenant: &str, email: &str| {
        let body = json!({"tenant": tenant, "email": email, "password": "not the password"});
        nimbus
            .call("POST", "/api/v1/auth/login", None, Some(body))
            .await
    };
    let known = attempt("", "owner@operator.example").await;
    let unknown = attempt("", "nobody@operator.example").await;
    let no_tenant = attempt("no-such-tenant", "owner@operator.example").await;
    for answer in [&unknown, &no_tenant] {
        assert_eq!(answer.status, known.status);
        assert_eq!(
            answer.json()["error"]["message"],
            known.json()["error"]["message"]
        );
    }
    for _ in 0..6 {
        attempt("", "owner@operator.example").await;
    }
    let slowed = attempt("", "owner@operator.example").await;
    assert_eq!(slowed.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(slowed.headers.contains_key(header::RETRY_AFTER));
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let nimbus = installation!();
    let here = nimbus.set_up().await;
    let elsewhere = nimbus.token("", "owner@operator.example").await;
    let path = "/api/v1/auth/password";
    let wrong = json!({"current_password": "wrong", "new_password": "quiet tree stone 4"});
    assert_eq!(
        nimbus.post(path, &here, wrong).await.status,
        StatusCode::UNAUTHORIZED
    );
    let right = json!({"current_password": PASSWORD, "new_password": "quiet tree stone 4"});
    nimbus.post(path, &here, right).await.ok();
    nimbus.get("/api/v1/auth/me", &here).await.ok();
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &elsewhere).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_cookie_changes_nothing_from_another_site() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let body = json!({"email": "owner@operator.example", "password": PASSWORD, "cookies": true});
    let request = |method: &str, path: &str| Request::builder().method(method).uri(path);
    let login = nimbus
        .send(
            request("POST", "/api/v1/auth/login").header(header::ORIGIN, ORIGIN),
            Some(&body),
        )
        .await;
    let cookies: Vec<_> = login
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|c| c.to_str().unwrap().to_owned())
        .collect();
    assert!(
        cookies
            .iter()
            .all(|cookie| cookie.contains("HttpOnly; SameSite=Strict; Secure")),
        "{cookies:?}"
    );
    let session = cookies[0].split(';').next().unwrap().to_owned();
    let answer = login.ok();
    assert!(
        answer.get("access_token").is_none(),
        "tokens are in the cookies alone"
    );
    let code = text(&answer["csrf_token"]);

    let me = nimbus
        .send(
            request("GET", "/api/v1/auth/me").header(header::COOKIE, &session),
            None,
        )
        .await;
    assert_eq!(me.status, StatusCode::OK, "reading needs no more");
    let path = format!("/api/v1/tenants/{}/groups", nimbus.root);
    let body = json!({"name": "ops"});
    for (origin, code) in [
        (None, None),
        (Some("https://evil.example"), Some(code.as_str())),
        (Some("null"), Some(code.as_str())),
        (Some(ORIGIN), None),
        (Some(ORIGIN), Some("guess")),
    ] {
        let mut forged = request("POST", &path).header(header::COOKIE, &session);
        if let Some(origin) = origin {
            forged = forged.header(header::ORIGIN, origin);
        }
        if let Some(code) = code {
            forged = forged.header("x-nimbus-csrf", code);
        }
        let answer = nimbus.send(forged, Some(&body)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?} {code:?}");
    }
    let own = request("POST", &path)
        .header(header::COOKIE, &session)
        .header(header::ORIGIN, ORIGIN)
        .header("x-nimbus-csrf", &code);
    assert_eq!(
        nimbus.send(own, Some(&body)).await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn ended_sessions_are_removed_after_a_while() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    nimbus.login("", "owner@operator.example").await;
    nimbus.database.run_as_administrator("UPDATE nimbus_core.sessions SET revoked_at = now() - interval '2 days' WHERE generation = 0").await;
    assert_eq!(nimbus.app.remove_ended_sessions().await.unwrap(), 2);
    assert_eq!(nimbus.app.remove_ended_sessions().await.unwrap(), 0);
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &owner).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn one_session_of_several_is_ended_by_an_administrator() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let (phone, laptop) = (
        nimbus.token("acme", "jane@acme.example").await,
        nimbus.token("acme", "jane@acme.example").await,
    );
    let own = nimbus.get("/api/v1/auth/sessions", &phone).await.ok();
    let current = own["items"].as_array().unwrap().iter();
    let session = current.clone().find(|session| session["current"] == true);
    let session = text(&session.unwrap()["id"]);
    let base = format!("/api/v1/tenants/{acme}/users/{user}/sessions");
    let listed = nimbus.get(&base, &owner).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let path = format!("{base}/{session}");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    assert_eq!(
        nimbus.get("/api/v1/auth/me", &phone).await.status,
        StatusCode::UNAUTHORIZED
    );
    nimbus.get("/api/v1/auth/me", &laptop).await.ok();
    let again = nimbus.call("DELETE", &path, Some(&owner), None).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}
