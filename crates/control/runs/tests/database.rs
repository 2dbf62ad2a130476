//! State and runs on a real database: conditional writes, seals, turns and epochs.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_control_runs::{DatabaseStorage, TenantVault};
use nimbus_control_store::{
    BackupScope, HeldRun, Isolation, NewDeployment, NewRun, NewTenant, RunEnd, Store, StoreError,
    StoredRun, WorkTurn,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::{TenantId, UserId};
use nimbus_engine_backend::store::{Put, Storage, Tag, WriteCondition};
use nimbus_engine_backend::{
    Backend, BackendOptions, EnvironmentVariables, KeyServices, Keyring, LeaseSettings, Owner,
    SessionRequest, StackRef, UpdateInfo, UpdateKind, UpdateResult,
};
use nimbus_engine_model::{ResourceState, Snapshot, Urn};
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};
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

async fn queue(
    database: &TestDatabase,
    tenant: TenantId,
    deployment: &str,
    environment: &str,
) -> StoredRun {
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
            catalog: json!({}),
            requested_by: user,
            trace_id: None,
        };
        tx.run_queue(&new).await
    });
    let queued: Result<_, StoreError> = queued.await;
    queued.unwrap()
}

/// What a worker of this server takes next.
async fn take(database: &TestDatabase, server: Uuid) -> Option<(TenantId, StoredRun)> {
    take_from(&database.store, server).await
}

async fn take_from(store: &Store, server: Uuid) -> Option<(TenantId, StoredRun)> {
    for WorkTurn { tenant, .. } in store.work_turns().await.unwrap() {
        let taken = store.tenant_tx(tenant, async |tx| {
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

/// F3: whoever slept past its lease writes no state either, whatever the lease inside of the state says.
#[tokio::test]
async fn who_lost_a_run_writes_and_deletes_no_state_of_it() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, "acme").await;
    queue(&database, acme, "D1", "dev").await;
    let vault = TenantVault::open(&database.store, &ring(), acme)
        .await
        .unwrap();
    let of = |run: &StoredRun| {
        DatabaseStorage::new(vault.clone(), "deployments/D1/state").written_by(held(run))
    };
    let server = Uuid::new_v4();
    let (_, first) = take(&database, server).await.unwrap();
    let slept = of(&first);
    stored(
        slept
            .put("a", "1".into(), WriteCondition::Absent)
            .await
            .unwrap(),
    );
    database.store.runs_orphan(acme, server).await.unwrap();
    let (_, second) = take(&database, Uuid::new_v4()).await.unwrap();
    assert_eq!(second.epoch, first.epoch + 1);
    for expect in [WriteCondition::Anything, WriteCondition::Absent] {
        let refused = slept.put("b", "old".into(), expect).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert!(slept.delete("a").await.is_err());
    let awake = of(&second);
    let left = awake.get("a").await.unwrap().unwrap();
    assert_eq!(left.bytes, "1");
    assert!(awake.get("b").await.unwrap().is_none());
    stored(
        awake
            .put("a", "2".into(), WriteCondition::Unchanged(left.tag))
            .await
            .unwrap(),
    );
}

fn succeeded() -> RunEnd {
    RunEnd {
        status: "ended",
        wish: None,
        result: Some("succeeded".to_owned()),
        problem: None,
    }
}

/// F16: a hundred deploys of one environment at one moment. One runs; the others have places in a queue that
/// is served in order, whatever happens to servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_at_once_are_served_one_by_one_in_order_across_restarts() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, "acme").await;
    queue(&database, acme, "D1", "dev").await;
    let others = (0..99).map(|_| queue(&database, acme, "D1", "dev"));
    let others = futures_of(others.collect()).await;
    let numbers: BTreeSet<_> = others.iter().map(|run| run.number).collect();
    assert_eq!(numbers, (2..=100).collect());
    let mut store = database.store.clone();
    let mut server = Uuid::new_v4();
    for number in 1..=100 {
        let (_, mut run) = take_from(&store, server).await.expect("somebody is next");
        assert_eq!(run.number, number, "first come, first served");
        assert!(take_from(&store, server).await.is_none(), "one at a time");
        if number % 10 == 0 {
            // The server dies and another one starts, with nothing but the database.
            server = Uuid::new_v4();
            store = Store::connect(database.config.clone());
            let died = run.server.unwrap();
            assert_eq!(store.runs_orphan(acme, died).await.unwrap(), 1);
            let (_, again) = take_from(&store, server).await.expect("it goes on");
            assert_eq!((again.number, again.epoch), (number, run.epoch + 1));
            run = again;
        }
        let left = store.tenant_tx(acme, async |tx| {
            if number < 100 {
                let next = tx.run_get("D1", number + 1).await?;
                assert_eq!(tx.run_position(&next).await?, 0, "{number}");
                let last = tx.run_get("D1", 100).await?;
                let waiting = i64::from(100 - number - 1);
                assert_eq!(tx.run_position(&last).await?, waiting, "{number}");
            }
            tx.run_release(&held(&run), &succeeded()).await
        });
        let left: Result<_, StoreError> = left.await;
        left.unwrap();
    }
    assert!(take_from(&store, server).await.is_none(), "all were served");
}

/// All of them at once.
async fn futures_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    futures::future::join_all(futures).await
}

/// F22: a thousand stacks of a server are in its backup, and each is there and whole after the restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stack_of_a_server_is_whole_after_a_restore() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let ring = ring();
    let stacks = short_or_long(40, 1000);
    let mut tenants = Vec::new();
    for number in 0..4 {
        tenants.push(tenant(&database, &format!("t{number}")).await);
    }
    for number in 0..stacks {
        let tenant = tenants[number % tenants.len()];
        let backend = backend(&database.store, &ring, tenant).await;
        let stack = backend.stack(stack_name(number));
        stack.create(Owner::current("a test")).await.unwrap();
        let session = stack.begin(session_request()).await.unwrap();
        session.finish(state(number), &update()).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar.gz");
    let begun = Instant::now();
    let everything = BackupScope::Everything;
    database.store.backup(everything, &file).await.unwrap();
    let backed_up = begun.elapsed();
    let mut config = database.config.clone();
    config.address.database.push_str("_restored");
    let (restored, _) = Store::open(config).await.unwrap();
    restored.restore(&file).await.unwrap();
    for number in 0..stacks {
        let tenant = tenants[number % tenants.len()];
        let backend = backend(&restored, &ring, tenant).await;
        let stack = backend.stack(stack_name(number));
        let loaded = stack.load(&keyring()).await.unwrap();
        assert_eq!(loaded.snapshot.unwrap().resources, state(number).resources);
        assert_eq!(stack.history().await.unwrap().len(), 1);
    }
    let took = begun.elapsed();
    println!("{stacks} stacks: backup {backed_up:?}, back and looked at after {took:?}");
    assert!(took < Duration::from_secs(30 * 60), "{took:?}");
}

async fn backend(store: &Store, ring: &KeyRing, tenant: TenantId) -> Backend {
    let vault = TenantVault::open(store, ring, tenant).await.unwrap();
    let storage = DatabaseStorage::new(vault, "deployments/D1/state");
    let options = BackendOptions {
        lease: LeaseSettings {
            heartbeat: None,
            ..LeaseSettings::default()
        },
        ..BackendOptions::default()
    };
    Backend::in_storage(Arc::new(storage), options)
        .await
        .unwrap()
}

fn stack_name(number: usize) -> StackRef {
    StackRef::new("shop", &format!("s{number}-dev")).unwrap()
}

fn keyring() -> Arc<Keyring> {
    Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any)
}

fn session_request() -> SessionRequest {
    SessionRequest {
        kind: UpdateKind::Update,
        owner: Owner::current("a test"),
        keyring: keyring(),
        secrets: Default::default(),
        expected: None,
    }
}

fn update() -> UpdateInfo {
    UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 1,
        message: "a test".into(),
        environment: None,
        config: json!({}),
        version: 0,
        result: UpdateResult::Succeeded,
        end_time: 2,
        resource_changes: None,
    }
}

/// Some resources, other ones for every stack.
fn state(number: usize) -> Snapshot {
    let resources = (0..5).map(|part| {
        let name = format!("r{number}-{part}");
        let stack = format!("s{number}-dev");
        let urn = Urn::new(&stack, "shop", None, "test:index:Thing", &name);
        Arc::new(ResourceState::new(urn, false))
    });
    Snapshot {
        resources: resources.collect(),
        ..Snapshot::default()
    }
}
