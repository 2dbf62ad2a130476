//! Starting, stopping and starting again.

use std::time::{Duration, Instant};

use nimbus_control_server::{ControlServer, Database, DatabaseLocation};
use nimbus_control_store::{Isolation, NewTenant, StoreError};
use nimbus_control_testing::{TcpCluster, TestDatabase};
use nimbus_core::ErrorCode;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{Running, folder, options, post, postmaster, send};

#[tokio::test]
async fn a_restart_keeps_everything_and_is_ready_soon() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let new = NewTenant::new(root, "acme", "Acme");
    let acme = server
        .store
        .registry_tx(root, async |tx| tx.tenant_create(&new).await)
        .await
        .unwrap();
    server
        .store
        .tenant_tx(acme.id, async |tx| {
            tx.compartment_create("kept", None).await
        })
        .await
        .unwrap();
    server.stop().await;
    assert_eq!(
        postmaster(&options.database.data_dir),
        None,
        "PostgreSQL ended with the server"
    );
    let started = Instant::now();
    let server = Running::start(&options).await;
    // Five seconds on a machine of its own; tests share theirs.
    assert!(
        started.elapsed() < Duration::from_secs(120),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(server.store.tenant_find(&["acme"]).await.unwrap(), acme.id);
    let kept = server
        .store
        .tenant_tx(acme.id, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let refused = ControlServer::start(&options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::DATA_DIR_IN_USE);
    assert_eq!(server.get("/ready").await.status, 200);
    // A tool may still use its database.
    let store = Database::of_running(&options.database)
        .await
        .unwrap()
        .unwrap();
    store.tenant_find(&[]).await.unwrap();
    store.close().await;
    server.stop().await;
    assert!(
        Database::of_running(&options.database)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn an_address_that_is_taken_is_told() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let mut options = options(folder.path(), &binaries);
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    options.listen = taken.local_addr().unwrap();
    let refused = ControlServer::start(&options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LISTEN_FAILED);
}

#[tokio::test]
async fn two_servers_on_one_database_are_one() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let config = TestDatabase::vacant(&binaries, Isolation::SchemaWithRls);
    let folders = [folder(), folder()];
    let start = async |at: usize| {
        let mut options = options(folders[at].path(), &binaries);
        let mut config = config.clone();
        config.acquire_timeout = Duration::from_secs(30);
        options.database.place = DatabaseLocation::External(config);
        options.keys = Some(folders[0].path().join("keys"));
        Running::start(&options).await
    };
    // Both at once: only one of them sets the database up.
    let (one, two) = tokio::join!(start(0), start(1));
    let root = one.store.tenant_find(&[]).await.unwrap();
    assert_eq!(two.store.tenant_find(&[]).await.unwrap(), root);
    let create = async |server: &Running, slug: String| {
        let new = NewTenant::new(root, slug, "Twin");
        server
            .store
            .registry_tx(root, async |tx| tx.tenant_create(&new).await)
            .await
    };
    for round in 0..5 {
        let slug = format!("twin-{round}");
        let (first, second) = tokio::join!(create(&one, slug.clone()), create(&two, slug.clone()));
        let won = first.is_ok();
        let lost = if won { second } else { first };
        assert!(matches!(lost, Err(StoreError::Exists(_))), "{lost:?}");
        assert_eq!(
            one.store.tenant_find(&[&slug]).await.unwrap(),
            two.store.tenant_find(&[&slug]).await.unwrap()
        );
    }
    let answers = (
        one.get("/api/v1/setup/status").await.body,
        two.get("/api/v1/setup/status").await.body,
    );
    assert_eq!(answers.0, answers.1);
    // Whoever signs in at one is known at the other, and signed out at both.
    let mut bearer = None;
    // The link that was offered last is the one that counts.
    for link in [&one.setup_link, &two.setup_link].into_iter().flatten() {
        let (_, token) = link.split_once("token=").unwrap();
        let body = serde_json::json!({
            "token": token,
            "email": "owner@operator.example",
            "display_name": "Owner",
            "password": "glass lamp river 9",
        });
        let answer = post(two.address, "/api/v1/setup/complete", &body.to_string()).await;
        if answer.status == 200 || answer.status == 201 {
            bearer = answer.json()["access_token"].as_str().map(str::to_owned);
        }
    }
    let bearer = bearer.expect("one of the links works");
    let me = async |server: &Running| {
        let path = "/api/v1/auth/me";
        let headers = format!("Authorization: Bearer {bearer}\r\n");
        send(server.address, "GET", path, &headers, "").await.status
    };
    assert_eq!((me(&one).await, me(&two).await), (200, 200));
    let headers = format!("Authorization: Bearer {bearer}\r\n");
    let out = send(one.address, "POST", "/api/v1/auth/logout", &headers, "").await;
    assert_eq!(out.status, 204, "{}", out.body);
    assert_eq!((me(&one).await, me(&two).await), (401, 401));
    one.stop().await;
    assert_eq!(two.get("/ready").await.status, 200);
    two.stop().await;
}

#[tokio::test]
async fn a_restore_without_its_keys_says_what_to_copy_and_makes_none() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (folder, place) = (folder(), tempfile::tempdir().unwrap());
    let first = options(folder.path(), &binaries);
    let server = Running::start(&first).await;
    let file = place.path().join("backup.tar.gz");
    server
        .store
        .backup(nimbus_control_store::BackupScope::Everything, &file)
        .await
        .unwrap();
    server.stop().await;
    let mut second = first.clone();
    second.database.data_dir = folder.path().join("second");
    let database = Database::open(&second.database).await.unwrap();
    database.store.restore(&file).await.unwrap();
    database.close().await;
    let refused = ControlServer::start(&second).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::VAULT_KEY_MISSING);
    assert!(refused.help().unwrap_or_default().contains("copy keys/"));
    let keys = second.database.data_dir.join("keys");
    assert!(
        !keys.exists(),
        "a new key would hide that the old one is lost"
    );
    std::fs::create_dir(&keys).unwrap();
    for name in ["vault", "audit", "tokens"] {
        std::fs::copy(
            first.database.data_dir.join("keys").join(name),
            keys.join(name),
        )
        .unwrap();
    }
    Running::start(&second).await.stop().await;
}

#[tokio::test]
async fn a_server_does_not_start_on_half_a_restore() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let config = TestDatabase::vacant(&binaries, Isolation::SchemaWithRls);
    let mut options = options;
    options.database.place = DatabaseLocation::External(config.clone());
    let database = Database::open(&options.database).await.unwrap();
    database.close().await;
    TestDatabase::run_on(
        &config,
        "INSERT INTO nimbus_core.restores (archive) VALUES ('x')",
    )
    .await;
    let refused = ControlServer::start(&options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::RESTORE_UNFINISHED);
    assert!(
        refused
            .help()
            .unwrap_or_default()
            .contains("nimbus restore")
    );
}

/// Killed before its database was one: what is there would pass for a new installation, with a link to set it up.
#[tokio::test]
async fn a_server_does_not_start_where_a_restore_was_killed_at_its_beginning() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (folder, place) = (folder(), tempfile::tempdir().unwrap());
    let first = options(folder.path(), &binaries);
    let server = Running::start(&first).await;
    let archive = place.path().join("backup.tar.gz");
    let everything = nimbus_control_store::BackupScope::Everything;
    server.store.backup(everything, &archive).await.unwrap();
    server.stop().await;

    let mut second = first.clone();
    second.database.data_dir = folder.path().join("second");
    let data_dir = &second.database.data_dir;
    std::fs::create_dir_all(data_dir).unwrap();
    std::fs::write(data_dir.join("restore-unfinished"), "").unwrap();
    let refused = ControlServer::start(&second).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::RESTORE_UNFINISHED);
    nimbus_control_server::restore_installation(&second.database, &archive)
        .await
        .unwrap();
    assert!(!data_dir.join("restore-unfinished").exists());
}

/// A person may change the administrator's password in the database, in the settings, or in both.
#[tokio::test]
async fn a_changed_password_of_the_databases_administrator_locks_nobody_out() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let cluster = TcpCluster::start(&binaries).await;
    let folder = folder();
    let mut options = options(folder.path(), &binaries);
    let config = |password: &str| {
        let (user, port) = (cluster.user, cluster.port);
        let password = password.replace(' ', "%20");
        let url = format!("postgres://{user}:{password}@127.0.0.1:{port}/nimbus?sslmode=disable");
        nimbus_control_store::StoreConfig::from_url(&url).unwrap()
    };
    options.database.place = DatabaseLocation::External(config(cluster.password));
    Running::start(&options).await.stop().await;
    cluster.set_password("another one").await;
    // The settings still have the old one: Nimbus's own roles are as they were.
    Running::start(&options).await.stop().await;
    // Now the settings have the new one: the roles get theirs.
    options.database.place = DatabaseLocation::External(config("another one"));
    Running::start(&options).await.stop().await;
    options.database.place = DatabaseLocation::External(config("never was one"));
    let refused = ControlServer::start(&options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::DATABASE_BOOTSTRAP);
}
