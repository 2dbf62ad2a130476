//! What leases outlive: others who ask at once, plans that end, tenants that move, backups, zones.

use std::collections::BTreeSet;

use nimbus_control_audit::SigningKey;
use nimbus_control_store::{
    BackupScope, Isolation, LeaseAsk, NewEnvironment, NewZone, ResolverPlace, RestoreKeys,
    StoreError, ZoneRef,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::ErrorCode;
use nimbus_resolvers::{LeaseHolder, LeaseStatus, ResolverKind, Settlement};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;
use tokio::task::JoinSet;

use crate::resolvers::{answer, asker, cidr, configure, create, pool, settle, somebody};
use crate::support::{tenant, tenant_below};

/// A plan and the run that adopted what it took; two workers of one run.
#[tokio::test]
async fn what_somebody_else_holds_by_now_is_not_given_back() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let root = database.root;
    create(store, root, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    let block = || json!({"parent_scope": "lan", "prefix_length": 26});
    let (plan, run) = (
        asker(root, "a", LeaseHolder::Plan),
        asker(root, "a", LeaseHolder::Run(7)),
    );
    let later = LeaseAsk {
        epoch: 2,
        ..run.clone()
    };
    let taken = answer(store, &plan, ResolverKind::Ipam, block()).await;
    let ids = [taken.unwrap().lease.unwrap()];
    for (asks, gives_back) in [(&run, &plan), (&later, &run)] {
        cidr(store, asks, block()).await.unwrap();
        store.leases_give_back(gives_back, &ids).await.unwrap();
        assert_eq!(store.leases_of(&run).await.unwrap().len(), 1);
    }
    store.leases_give_back(&later, &ids).await.unwrap();
    assert!(store.leases_of(&run).await.unwrap().is_empty());
}

#[tokio::test]
async fn one_question_asked_by_many_at_once_has_one_answer() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let root = database.root;
    create(store, root, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    for (resolver, inputs) in [
        (ResolverKind::Secret, json!({"name": "db"})),
        (
            ResolverKind::Ipam,
            json!({"parent_scope": "lan", "prefix_length": 28}),
        ),
    ] {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (store, inputs) = (store.clone(), inputs.clone());
            tasks.spawn(async move {
                let ask = asker(root, "a", LeaseHolder::Plan);
                let answer = answer(&store, &ask, resolver, inputs).await.unwrap();
                (answer.lease.unwrap(), answer.fresh)
            });
        }
        let given = tasks.join_all().await;
        let ids: BTreeSet<_> = given.iter().map(|(id, _)| *id).collect();
        let fresh = given.iter().filter(|(_, fresh)| *fresh).count();
        assert_eq!((ids.len(), fresh), (1, 1), "{resolver}");
    }
}

#[tokio::test]
async fn a_tenant_is_not_moved_away_from_what_it_has() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let (acme, other) = (
        tenant(&database, "acme").await,
        tenant(&database, "other").await,
    );
    let team = tenant_below(store, database.root, acme, "team").await;
    create(store, acme, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    let ask = asker(team, "a", LeaseHolder::Run(1));
    let block = json!({"parent_scope": "lan", "prefix_length": 28});
    cidr(store, &ask, block).await.unwrap();
    let moved = async || {
        let moved: Result<_, StoreError> = store
            .registry_tx(database.root, async |tx| tx.tenant_move(team, other).await)
            .await;
        moved
            .map(drop)
            .map_err(|error| nimbus_core::Error::from(error).code())
    };
    assert_eq!(moved().await, Err(ErrorCode::LEASE_IN_USE));
    settle(store, &ask, 1, Settlement::Destroyed).await;
    moved().await.unwrap();
}

/// What was given since a backup was made is in use, whatever the backup knew.
#[tokio::test]
async fn a_restore_of_the_owner_gives_nothing_twice() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let acme = tenant(&database, "acme").await;
    let team = tenant_below(store, database.root, acme, "team").await;
    create(store, acme, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    let config = json!({"pool": "lan", "prefix_length": 26});
    configure(store, acme, ResolverKind::Ipam, None, config)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme.tar.gz");
    let backup = store.backup(BackupScope::Tenant(acme), &file).await;
    backup.unwrap();
    let (below, own) = (
        asker(team, "a", LeaseHolder::Run(1)),
        asker(acme, "a", LeaseHolder::Run(1)),
    );
    for (ask, block) in [(&below, "10.0.0.0/26"), (&own, "10.0.0.64/26")] {
        assert_eq!(cidr(store, ask, json!({})).await.unwrap(), block);
    }
    let (vault, audit) = (
        KeyRing::new(KeyEncryptionKey::generate(), Vec::new()),
        SigningKey::generate(),
    );
    let keys = RestoreKeys {
        vault: &vault,
        audit: &audit,
    };
    store.restore_tenant(&file, &keys).await.unwrap();
    let next = asker(acme, "b", LeaseHolder::Run(1));
    assert_eq!(
        cidr(store, &next, json!({})).await.unwrap(),
        "10.0.0.128/26"
    );
    // What a run of the time that is gone held stays with its unit, and the numbers of that time mean nothing.
    let held = store.leases_of(&own).await.unwrap();
    let of_a = held.iter().find(|one| one.lease.unit.component == "a");
    assert_eq!(of_a.unwrap().lease.status, LeaseStatus::Committed);
    settle(store, &own, 1, Settlement::Undone).await;
    assert_eq!(cidr(store, &own, json!({})).await.unwrap(), "10.0.0.64/26");
}

#[tokio::test]
async fn a_zone_has_pools_and_settings_of_its_own_and_an_environment_lies_over_them() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let acme = tenant(&database, "acme").await;
    let by = somebody();
    let mut zones = Vec::new();
    for name in ["east", "west"] {
        let new = NewZone {
            name: name.to_owned(),
            display_name: String::new(),
            description: String::new(),
            provider: "aws".to_owned(),
            account: None,
            region: String::new(),
            system_services: json!([]),
            resolvers: json!({}),
        };
        let made: Result<_, StoreError> = store
            .tenant_tx(database.root, async |tx| tx.zone_create(&new, by).await)
            .await;
        let id = made.unwrap().id;
        zones.push(ZoneRef {
            id,
            name: name.to_owned(),
        });
        // The same addresses in both: they are networks of their own.
        let definition = pool(json!({"name": name, "cidr": "10.0.0.0/16"}));
        let zone = zones.last();
        let made: Result<_, StoreError> = store
            .tenant_tx(database.root, async |tx| {
                tx.pool_create(&definition, zone, by).await
            })
            .await;
        made.unwrap();
        for (environment, config) in [
            (None, json!({"pool": name, "prefix_length": 24})),
            (Some("prod"), json!({"prefix_length": 20})),
        ] {
            let place = ResolverPlace {
                landing_zone: zone.cloned(),
                environment: environment.map(ToOwned::to_owned),
            };
            let config = config.as_object().unwrap().clone();
            let set: Result<_, StoreError> = store
                .tenant_tx(database.root, async |tx| {
                    tx.resolver_configure(ResolverKind::Ipam, &place, &config, by)
                        .await
                })
                .await;
            set.unwrap();
        }
    }
    // A pool of no zone is used in all of them, so it is apart from each.
    let everywhere = json!({"name": "all", "cidr": "10.0.0.0/8"});
    assert_eq!(
        create(store, database.root, everywhere).await,
        Err(ErrorCode::POOL_OVERLAP)
    );
    let enter = async |zone: &ZoneRef, environment: &str| {
        let new = NewEnvironment {
            name: environment.to_owned(),
            zone_owner: database.root.into(),
            zone_id: zone.id,
            zone_name: zone.name.clone(),
            template: None,
            mandatory_components: json!([]),
            resolvers: json!({}),
            is_platform: false,
            rehearsal: false,
            by,
        };
        let made: Result<_, StoreError> = store
            .tenant_tx(acme, async |tx| tx.environment_create(&new).await)
            .await;
        made.unwrap();
    };
    let unit = |component: &str, environment: &str| {
        let mut ask = asker(acme, component, LeaseHolder::Run(1));
        ask.facts.environment = environment.to_owned();
        ask
    };
    // Outside of a zone nothing is configured, and its pools are nobody's.
    let outside = unit("a", "dev");
    let named = json!({"parent_scope": "east", "prefix_length": 24});
    assert_eq!(
        cidr(store, &outside, named.clone()).await,
        Err(ErrorCode::POOL_UNKNOWN)
    );
    enter(&zones[0], "dev").await;
    enter(&zones[0], "prod").await;
    assert_eq!(
        cidr(store, &outside, json!({})).await.unwrap(),
        "10.0.0.0/24"
    );
    assert_eq!(
        cidr(store, &unit("a", "prod"), json!({})).await.unwrap(),
        "10.0.16.0/20"
    );
    let west = json!({"parent_scope": "west", "prefix_length": 24});
    assert_eq!(
        cidr(store, &outside, west).await,
        Err(ErrorCode::POOL_UNKNOWN)
    );
    // In two zones at once nobody can say which is meant.
    enter(&zones[1], "dev").await;
    assert_eq!(
        cidr(store, &unit("b", "dev"), named).await,
        Err(ErrorCode::POOL_UNKNOWN)
    );
}
