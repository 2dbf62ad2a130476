//! What is set is what the server does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_control_testing::TcpCluster;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{EMAIL, PASSWORD, Site, body_of, request};

#[test]
fn lifetimes_limits_and_the_public_address_come_from_the_settings() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres))
        .with("NIMBUS_JWT_EXPIRY", "120")
        .with("NIMBUS_RATE_LIMITING_DEFAULT_LIMIT", "7/hour")
        .with("NIMBUS_APP_NAME", "Cloud of Acme");
    let server = site.up();
    site.set_up(&server);
    let (status, answer) = server.login("");
    assert_eq!(status, 200, "{answer}");
    let signed_in = body_of(&answer);
    assert_eq!(signed_in["expires_in"], 120);
    let token = signed_in["access_token"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let me = |headers: &str| request(&server.address(), "GET", "/api/v1/auth/me", headers, "");
    let (status, answer) = me(&bearer);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(body_of(&answer)["tenant"]["name"], "Cloud of Acme");
    let refused = (0..10)
        .map(|_| me(&bearer))
        .find(|(status, _)| *status == 429);
    let (_, answer) = refused.expect("seven requests an hour are not ten");
    assert!(answer.to_lowercase().contains("retry-after:"), "{answer}");
    assert_eq!(server.stop(), 0);

    // Another secret for tokens ends what the first one signed; no limit is no limit.
    let site = site
        .with("NIMBUS_JWT_SECRET", &"another secret ".repeat(4))
        .with("NIMBUS_RATE_LIMITING_ENABLED", "false");
    let server = site.up();
    let me = |headers: &str| request(&server.address(), "GET", "/api/v1/auth/me", headers, "");
    assert_eq!(me(&bearer).0, 401);
    let (_, answer) = server.login("");
    let signed_in = body_of(&answer);
    let token = signed_in["access_token"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert!((0..20).all(|_| me(&bearer).0 == 200));
    assert_eq!(server.stop(), 0);

    // Rotated: the old secret still reads, and the console is behind TLS of somebody else.
    let site = site
        .with("NIMBUS_JWT_PREVIOUS_SECRET", &"another secret ".repeat(4))
        .with("NIMBUS_JWT_SECRET", &"the newest secret ".repeat(4))
        .with("NIMBUS_SERVER_PUBLIC_URL", "https://nimbus.example")
        .with("NIMBUS_SERVER_TRUSTED_PROXIES", "127.0.0.0/8");
    let server = site.up();
    assert_eq!(server.report["address"], "https://nimbus.example");
    assert_eq!(server.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_ones_own_is_used_over_tcp() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let database = TcpCluster::start(&postgres).await;
    let site = Site::new(&postgres)
        .with("NIMBUS_DB_HOST", "127.0.0.1")
        .with("NIMBUS_DB_PORT", &database.port.to_string())
        .with("NIMBUS_DB_NAME", "control")
        .with("NIMBUS_DB_USER", database.user)
        .with("NIMBUS_DB_PASSWORD", database.password)
        .with("NIMBUS_DB_POOL_SIZE", "3");
    let work = tokio::task::spawn_blocking(move || {
        let server = site.up();
        assert_eq!(site.postmaster(), None, "no private cluster");
        site.set_up(&server);
        site.ask(&["tenant", "create", "acme"]);
        let user = [
            "user",
            "create",
            "jane@acme.example",
            "--tenant",
            "acme",
            "--password-stdin",
            "--json",
        ];
        site.run_with(&user, &format!("{PASSWORD}\n")).ok();
        let me = site.ask(&["user", "list", "--tenant", "acme"]).to_string();
        assert!(me.contains("jane@acme.example"), "{me}");
        assert_eq!(server.stop(), 0);
        // Everything is in the database, nothing depends on the folder but the keys.
        let server = site.up();
        let (status, answer) = server.login("");
        assert_eq!(status, 200, "{answer}");
        assert_eq!(server.stop(), 0);

        let site = site.with("NIMBUS_DB_PASSWORD", "a wrong canary password");
        let refused = site.try_up().err().unwrap();
        assert!(refused.contains("NIM-08"), "{refused}");
        assert!(!refused.contains("canary"), "{refused}");
        assert!(!refused.contains(EMAIL));
    });
    work.await.unwrap();
}

#[test]
fn without_the_key_of_its_secrets_a_server_does_not_start() {
    let key = |name: &str| STANDARD.encode(format!("thirty-two bytes of the key of {name}"));
    let mut site = Site::new(&tool_or_skip!(Tool::Postgres)).with("NIMBUS_SECRET_KEY", &key("1"));
    let server = site.up();
    site.set_up(&server);
    assert_eq!(server.stop(), 0);
    for wrong in [key("2"), "not base64 of 32 bytes".to_owned()] {
        site.set("NIMBUS_SECRET_KEY", &wrong);
        let refused = site.try_up().err().unwrap();
        assert!(refused.contains("NIM-085"), "{refused}");
        assert!(!refused.contains(&wrong), "{refused}");
        assert_eq!(site.postmaster(), None, "nothing is left running");
    }
    site.set("NIMBUS_SECRET_KEY", &key("1"));
    let server = site.up();
    let (status, answer) = server.login("");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.stop(), 0);
}
