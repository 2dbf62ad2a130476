//! A PostgreSQL that speaks TLS, and the modes by which it is believed: those of libpq, with their meaning.

use nimbus_control_store::{Store, StoreConfig, StoreError};
use nimbus_control_testing::{TcpCluster, TestAuthority};
use nimbus_test_tools::{Tool, tool_or_skip};

/// Opens the store; whether its connection is encrypted.
async fn open(cluster: &TcpCluster, host: &str, more: &str) -> Result<bool, StoreError> {
    let (user, port) = (cluster.user, cluster.port);
    let password = cluster.password.replace(' ', "%20");
    let url = format!("postgres://{user}:{password}@{host}:{port}/nimbus{more}");
    let (store, _) = Store::open(StoreConfig::from_url(&url)?).await?;
    store.operator_ensure("Operator").await?;
    let encrypted = cluster.encrypted("nimbus").await;
    store.close().await;
    assert!(!encrypted.is_empty(), "the store is connected");
    let first = encrypted[0];
    assert!(encrypted.iter().all(|one| *one == first), "{encrypted:?}");
    Ok(first)
}

#[tokio::test]
async fn every_mode_means_what_postgresqls_own_client_means_by_it() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let cluster = TcpCluster::start(&binaries).await;
    let (right, wrong) = (TestAuthority::default(), TestAuthority::default());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, authority: &TestAuthority| {
        let path = folder.path().join(name);
        std::fs::write(&path, &authority.certificate).unwrap();
        format!("&sslrootcert={}", path.display())
    };
    let (right_file, wrong_file) = (file("right.pem", &right), file("wrong.pem", &wrong));
    let mode = |name: &str| format!("?sslmode={name}");

    // A server without TLS: only those who do not insist.
    for (name, accepted) in [
        ("disable", true),
        ("allow", true),
        ("prefer", true),
        ("require", false),
        ("verify-ca", false),
        ("verify-full", false),
    ] {
        let opened = open(&cluster, "127.0.0.1", &mode(name)).await;
        assert_eq!(opened.is_ok(), accepted, "{name}: {opened:?}");
        assert!(!opened.is_ok_and(|encrypted| encrypted), "{name}");
    }

    cluster.use_tls(&right, "localhost").await;
    let (by_name, by_address) = ("localhost", "127.0.0.1");
    for (name, host, authority, expected) in [
        ("disable", by_name, "", Some(false)),
        ("allow", by_name, "", Some(false)),
        ("prefer", by_name, "", Some(true)),
        ("require", by_name, "", Some(true)),
        ("require", by_address, "", Some(true)),
        // Who vouches for it, whatever it is called.
        ("verify-ca", by_name, &*right_file, Some(true)),
        ("verify-ca", by_address, &*right_file, Some(true)),
        ("verify-ca", by_name, &*wrong_file, None),
        ("verify-ca", by_name, "", None),
        // And that it is who it is called.
        ("verify-full", by_name, &*right_file, Some(true)),
        ("verify-full", by_address, &*right_file, None),
        ("verify-full", by_name, &*wrong_file, None),
        ("verify-full", by_name, "", None),
    ] {
        let opened = open(&cluster, host, &format!("{}{authority}", mode(name))).await;
        let what = format!("{name} {host} {authority}: {opened:?}");
        assert_eq!(opened.ok(), expected, "{what}");
    }
}
