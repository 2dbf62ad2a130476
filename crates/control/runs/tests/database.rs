//! State and runs on a real database: conditional writes, seals, turns and epochs.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use nimbus_control_runs::{DatabaseStorage, TenantVault};
use nimbus_control_store::{
    HeldRun, Isolation, NewDeployment, NewRun, NewTenant, RunEnd, StoreError, StoredRun,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::{TenantId, UserId};
use nimbus_engine_backend::store::{Put, Storage, Tag, WriteCondition};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;
use uuid::Uuid;

fn ring() -> KeyRing {
    KeyRing::new(KeyEncryptionKey::generate(), Vec::new())
}

fn stored(put: Put) -> Tag {
    match put {
        Put::Stored(tag) => tag,
        Put::Refused => panic!("it was refused"),
    }
}

#[tokio::test]
async fn objects_are_written_on_conditions_listed_by_folder_and_sealed() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let ring = ring();
    let vault = TenantVault::open(&database.store, &ring, database.root)
        .await
        .unwrap();
    let storage = DatabaseStorage::new(vault.clone(), "deployments/D1/state");
    let other = DatabaseStorage::new(vault, "deployments/D10/state");
    let put = async |key: &str, text: &'static str, expect| {
        storage.put(key, text.into(), expect).await.unwrap()
    };
    let first = stored(put("a/one", "plaintext-1", WriteCondition::Absent).await);
    assert_eq!(
        put("a/one", "x", WriteCondition::Absent).await,
        Put::Refused
    );
    let second = stored(
        put(
            "a/one",
            "plaintext-2",
            WriteCondition::Unchanged(first.clone()),
        )
        .await,
    );
    assert_ne!(first, second);
    assert_eq!(
        put("a/one", "x", WriteCondition::Unchanged(first)).await,
        Put::Refused
    );
    put("a/b/two", "plaintext-3", WriteCondition::Anything).await;
    put("ab/three", "plaintext-4", WriteCondition::Anything).await;
    storage.copy("a/one", "a/four").await.unwrap();
    assert_eq!(
        storage.get("a/four").await.unwrap().unwrap().bytes,
        "plaintext-2"
    );
    let keys: Vec<_> = storage
        .list("a")
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.key)
        .collect();
    assert_eq!(keys, ["a/b/two", "a/four", "a/one"]);
    assert!(other.list("a").await.unwrap().is_empty());
    let object = storage.get("a/one").await.unwrap().unwrap();
    assert!(object.modified <= storage.time().await.unwrap());
    assert!(!database.dump().await.contains("plaintext"));
    storage.delete("a/one").await.unwrap();
    storage.delete("a/one").await.unwrap();
    assert!(storage.get("a/one").await.unwrap().is_none());
}

async fn tenant(database: &TestDatabase, slug: &str) -> TenantId {
    let new = NewTenant::new(database.root, slug, slug.to_uppercase());
    let made: Result<_, StoreError> = database
        .store
        .registry_tx(database.root, async |tx| tx.tenant_create(&new).await)
        .await;
    made.unwrap().id
}

async fn queue(database: &TestDatabase, tenant: TenantId, deployment: &str, environment: &str) {
    let user = UserId::from(Uuid::new_v4());
    let queued = database.store.tenant_tx(tenant, async |tx| {
        if !tx.deployment_taken(deployment).await? {
            let new = NewDeployment {
                id: deployment.to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest: String::new(),
                created_by: user,
            };
            tx.deployment_create(&new).await?;
        }
        let new = NewRun {
            deployment: deployment.to_owned(),
            action: "deploy".to_owned(),
            environment: environment.to_owned(),
            rehearsal: true,
            request: json!({}),
            requested_by: user,
        };
        tx.run_queue(&new).await
    });
    let queued: Result<_, StoreError> = queued.await;
    queued.unwrap();
}

/// What a worker of this server takes next.
async fn take(database: &TestDatabase, server: Uuid) -> Option<(TenantId, StoredRun)> {
    for tenant in database.store.work_tenants().await.unwrap() {
        let taken = database.store.tenant_tx(tenant, async |tx| {
            if !tx.work_turn().await? {
                return Ok::<_, StoreError>(None);
            }
            tx.run_take(server).await
        });
        if let Some(run) = taken.await.unwrap() {
            return Some((tenant, run));
        }
    }
    None
}

fn held(run: &StoredRun) -> HeldRun {
    HeldRun {
        deployment: run.deployment.clone(),
        number: run.number,
        epoch: run.epoch,
    }
}

#[tokio::test]
async fn tenants_take_turns_and_an_environment_has_one_run() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let (busy, quiet) = (
        tenant(&database, "busy").await,
        tenant(&database, "quiet").await,
    );
    for environment in ["dev", "dev", "stage", "prod"] {
        queue(&database, busy, "D1", environment).await;
    }
    queue(&database, quiet, "D1", "dev").await;
    let server = Uuid::new_v4();
    let mut taken = Vec::new();
    while let Some((tenant, run)) = take(&database, server).await {
        taken.push((tenant, run.number));
    }
    // The second run of dev waits for the first one.
    assert_eq!(taken, [(busy, 1), (quiet, 1), (busy, 3), (busy, 4)]);
}

#[tokio::test]
async fn who_lost_a_run_cannot_write_for_it_and_the_next_goes_on_without_a_gap() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, "acme").await;
    queue(&database, acme, "D1", "dev").await;
    let server = Uuid::new_v4();
    let (_, first) = take(&database, server).await.unwrap();
    let append = async |held: &HeldRun, count: usize| {
        let events = vec![json!({"event": "x"}); count];
        let appended: Result<_, StoreError> = database
            .store
            .tenant_tx(acme, async |tx| tx.events_append(held, &events).await)
            .await;
        appended
    };
    assert_eq!(append(&held(&first), 2).await.unwrap(), 2);
    assert!(take(&database, server).await.is_none(), "it is taken");
    assert_eq!(database.store.runs_orphan(acme, server).await.unwrap(), 1);
    let (_, second) = take(&database, Uuid::new_v4()).await.unwrap();
    assert!(second.epoch > first.epoch);
    let refused = append(&held(&first), 1).await.unwrap_err();
    assert!(matches!(refused, StoreError::Stale(_)), "{refused}");
    assert_eq!(append(&held(&second), 1).await.unwrap(), 3);
    let end = RunEnd {
        status: "ended",
        wish: None,
        result: Some("succeeded".to_owned()),
        problem: None,
    };
    let seqs = database.store.tenant_tx(acme, async |tx| {
        tx.run_release(&held(&second), &end).await?;
        let events = tx.events_after("D1", 1, 0, 10).await?;
        Ok::<_, StoreError>(
            events
                .into_iter()
                .map(|event| event.seq)
                .collect::<Vec<_>>(),
        )
    });
    assert_eq!(seqs.await.unwrap(), [1, 2, 3]);
    assert!(take(&database, server).await.is_none(), "it is over");
}
