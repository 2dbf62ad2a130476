//! Break-glass on the machine itself: beside a server that runs, and without one.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{EMAIL, Site, Up, body_of, request};

const NEW_PASSWORD: &str = "quiet tree stone 4";

fn recover(site: &Site, email: &str, password: &str) -> crate::support::AdminOutput {
    let data = site.data().display().to_string();
    let arguments = [
        "recover",
        "--data-dir",
        &data,
        "--email",
        email,
        "--password-stdin",
        "--json",
    ];
    site.run_with(&arguments, &format!("{password}\n"))
}

fn sign_in(server: &Up, email: &str, password: &str) -> (u16, Value) {
    let body = json!({"email": email, "password": password}).to_string();
    let path = "/api/v1/auth/login";
    let (status, answer) = request(&server.address(), "POST", path, "", &body);
    (status, body_of(&answer))
}

fn get(server: &Up, path: &str, token: &Value) -> (u16, Value) {
    let bearer = format!("Authorization: Bearer {}\r\n", token.as_str().unwrap());
    let (status, answer) = request(&server.address(), "GET", path, &bearer, "");
    (status, body_of(&answer))
}

/// Whoever has the machine gets in again; the trail says so, and is intact.
#[test]
fn whoever_has_the_machine_makes_an_administrator_and_the_trail_says_so() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres)).with("SUDO_USER", "ada");
    let server = site.up();
    site.set_up(&server);
    let (status, before) = server.login("");
    assert_eq!(status, 200, "{before}");
    let stolen = body_of(&before)["access_token"].clone();

    // Beside a server that runs.
    let refused = recover(&site, EMAIL, "password");
    assert_ne!(refused.code, 0, "a password that everybody tries first");
    let recovered = recover(&site, EMAIL, NEW_PASSWORD).ok();
    assert_eq!(recovered["created"], false, "{recovered}");
    assert_eq!(get(&server, "/api/v1/auth/me", &stolen).0, 401);
    assert_eq!(server.login("").0, 401, "the old password is none any more");
    assert_eq!(sign_in(&server, EMAIL, NEW_PASSWORD).0, 200);
    assert_eq!(server.stop(), 0);

    // And without one; the account is new.
    let recovered = recover(&site, "grace@operator.example", NEW_PASSWORD).ok();
    assert_eq!(recovered["created"], true, "{recovered}");
    let server = site.up();
    let (status, signed_in) = sign_in(&server, "grace@operator.example", NEW_PASSWORD);
    assert_eq!(status, 200, "{signed_in}");
    let token = &signed_in["access_token"];
    let (_, me) = get(&server, "/api/v1/auth/me", token);
    let tenant = me["tenant"]["id"].as_str().unwrap();
    let base = format!("/api/v1/tenants/{tenant}/audit");
    let (status, found) = get(
        &server,
        &format!("{base}?action=installation.recover"),
        token,
    );
    assert_eq!(status, 200, "{found}");
    let entries = found["items"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{found}");
    for entry in entries {
        assert_eq!(entry["priority"], "critical", "{entry}");
        let by = entry["new_value"]["by"].as_str().unwrap();
        assert!(by.contains("sudo by ada"), "{entry}");
    }
    let (_, verdict) = get(&server, &format!("{base}/verify"), token);
    assert_eq!(verdict["intact"], true, "{verdict}");
    assert_eq!(server.stop(), 0);
}

/// Without the keys of the installation its data alone makes nobody an administrator.
#[test]
fn without_the_keys_nobody_is_made_an_administrator() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    site.set_up(&server);
    assert_eq!(server.stop(), 0);
    let (keys, aside) = (site.data().join("keys"), site.data().join("aside"));
    std::fs::rename(&keys, &aside).unwrap();
    let refused = recover(&site, EMAIL, NEW_PASSWORD);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    let said = refused.stdout + &refused.stderr;
    assert!(said.contains("copy keys/"), "{said}");
    assert!(!keys.exists(), "none were made in their place");
    std::fs::rename(&aside, &keys).unwrap();
    let server = site.up();
    assert_eq!(server.login("").0, 200, "nothing changed");
    assert_eq!(server.stop(), 0);
}
