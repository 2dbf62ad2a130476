//! Secrets in a real database.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use nimbus_control_app::{App, AppKeys, AppSettings, Failure};
use nimbus_control_audit::SigningKey;
use nimbus_control_auth::password::Cost;
use nimbus_control_auth::{ServerKey, ServerKeys};
use nimbus_control_store::{Isolation, NewTenant, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{DataKey, FieldPath, KeyEncryptionKey, KeyRing};
use nimbus_core::ErrorCode;
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};

async fn open(database: &TestDatabase, ring: KeyRing) -> Result<App, nimbus_core::Error> {
    let keys = AppKeys {
        tokens: ServerKeys::new(ServerKey::generate(), Vec::new()),
        audit: SigningKey::generate(),
        vault: ring,
    };
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = folder.path().join("checkpoints");
    let mut settings = AppSettings::new("https://nimbus.example", checkpoints);
    settings.password_cost = Cost {
        memory_kib: 64,
        rounds: 1,
    };
    App::open(database.store.clone(), keys, settings).await
}

fn key(text: &str) -> KeyEncryptionKey {
    KeyEncryptionKey::from_text(text, "test").unwrap()
}

#[tokio::test]
async fn a_server_without_the_key_of_its_secrets_does_not_start() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let right = KeyEncryptionKey::generate().to_text();
    open(&database, KeyRing::new(key(&right), Vec::new()))
        .await
        .unwrap();
    let error = open(
        &database,
        KeyRing::new(KeyEncryptionKey::generate(), Vec::new()),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::VAULT_KEY_MISSING);
    open(&database, KeyRing::new(key(&right), Vec::new()))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_outer_key_is_replaced_while_secrets_stay_readable() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let (old, new) = (
        KeyEncryptionKey::generate().to_text(),
        KeyEncryptionKey::generate().to_text(),
    );
    let field = FieldPath::new("cloud_accounts", "7", "credentials");
    let before = open(&database, KeyRing::new(key(&old), Vec::new()))
        .await
        .unwrap();
    let stored = database
        .store
        .tenant_tx(database.root, async |tx| {
            before.seal(tx, &field, b"canary").await
        })
        .await
        .unwrap();
    assert!(!stored.windows(6).any(|window| window == b"canary"));

    // A tenant that was deleted and can still come back has secrets too.
    let new_tenant = NewTenant::new(database.root, "gone", "Gone");
    let gone = database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_create(&new_tenant).await
        })
        .await
        .unwrap();
    database
        .store
        .tenant_tx(gone.id, async |tx| before.seal(tx, &field, b"canary").await)
        .await
        .unwrap();
    let grace = std::time::Duration::from_secs(3600);
    let deleted: Result<u64, StoreError> = database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(gone.id, grace).await
        })
        .await;
    deleted.unwrap();

    let both = open(&database, KeyRing::new(key(&new), vec![key(&old)]))
        .await
        .unwrap();
    assert_eq!(both.rewrap_data_keys().await.unwrap(), 2);
    assert_eq!(
        both.rewrap_data_keys().await.unwrap(),
        0,
        "the older key can go"
    );
    let after = open(&database, KeyRing::new(key(&new), Vec::new()))
        .await
        .unwrap();
    let opened = database
        .store
        .tenant_tx(database.root, async |tx| {
            after.unseal(tx, &field, &stored).await
        })
        .await
        .unwrap();
    assert_eq!(opened.as_slice(), b"canary");
    let elsewhere = FieldPath::new("cloud_accounts", "8", "credentials");
    let moved: Result<_, Failure> = database
        .store
        .tenant_tx(database.root, async |tx| {
            after.unseal(tx, &elsewhere, &stored).await
        })
        .await;
    assert_eq!(
        moved.unwrap_err().error.code(),
        ErrorCode::VAULT_VALUE_DAMAGED
    );
}

/// S22: ten thousand data keys get another outer key while their secrets are read, and a process that dies
/// halfway costs nothing but the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_data_keys_are_rewrapped_while_their_secrets_are_read() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let (old, new) = (
        KeyEncryptionKey::generate().to_text(),
        KeyEncryptionKey::generate().to_text(),
    );
    let (tenants, each) = short_or_long((4, 50), (20, 500));
    let field = FieldPath::new("cloud_accounts", "7", "credentials");
    let before = open(&database, KeyRing::new(key(&old), Vec::new()))
        .await
        .unwrap();
    let ring = KeyRing::new(key(&old), Vec::new());
    let mut sealed = Vec::new();
    for number in 0..tenants {
        let new_tenant = NewTenant::new(database.root, format!("t{number}"), "T");
        let made: Result<_, StoreError> = database
            .store
            .registry_tx(database.root, async |tx| {
                tx.tenant_create(&new_tenant).await
            })
            .await;
        let tenant = made.unwrap().id;
        let stored: Result<_, Failure> = database
            .store
            .tenant_tx(tenant, async |tx| {
                let stored = before.seal(tx, &field, b"canary").await?;
                for number in 2..=each {
                    tx.data_key_add(&DataKey::generate(tenant, number).wrap(&ring))
                        .await?;
                }
                Ok(stored)
            })
            .await;
        sealed.push((tenant, stored.unwrap()));
    }
    let both = || KeyRing::new(key(&new), vec![key(&old)]);
    let serving = open(&database, both()).await.unwrap();
    let rotating = open(&database, both()).await.unwrap();
    // Cut off somewhere, as a process that is killed would be.
    let first = tokio::time::timeout(
        std::time::Duration::from_millis(20),
        rotating.rewrap_data_keys(),
    );
    let _ = first.await;
    let rotation = tokio::spawn(async move { rotating.rewrap_data_keys().await });
    let mut reads = 0;
    while !rotation.is_finished() || reads < 20 {
        let (tenant, stored) = &sealed[reads % sealed.len()];
        let opened = database
            .store
            .tenant_tx(*tenant, async |tx| serving.unseal(tx, &field, stored).await);
        assert_eq!(opened.await.unwrap().as_slice(), b"canary");
        reads += 1;
    }
    rotation.await.unwrap().unwrap();
    // The operator has one of its own.
    let others = format!(
        "SELECT count(DISTINCT kek_id)::text || ' ' || count(*) FROM nimbus_core.data_keys
         WHERE tenant_id <> '{}'",
        database.root
    );
    let wrapped = format!("1 {}", tenants * each as usize);
    assert_eq!(database.texts(&others).await, [wrapped]);
    let after = open(&database, KeyRing::new(key(&new), Vec::new())).await;
    let after = after.expect("the older key is not needed any more");
    for (tenant, stored) in &sealed {
        let opened = database
            .store
            .tenant_tx(*tenant, async |tx| after.unseal(tx, &field, stored).await);
        assert_eq!(opened.await.unwrap().as_slice(), b"canary");
    }
}
