//! Leases on a real database: nothing is given twice, whatever happens at once.

use std::collections::BTreeSet;

use nimbus_control_store::{
    Isolation, LeaseAsk, LeaseFilter, ListPage, ResolverPlace, Store, StoreError,
};
use nimbus_control_testing::TestDatabase;
use nimbus_core::{ErrorCode, TenantId, UserId};
use nimbus_resolvers::{
    AddressBlock, LeaseHolder, LeaseStatus, PoolDefinition, ResolverAnswer, ResolverKind,
    ResolverQuestion, Settlement, UnitFacts,
};
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::{administrator, number, tenant, tenant_below};

pub(crate) fn somebody() -> UserId {
    Uuid::new_v4().into()
}

pub(crate) fn pool(value: Value) -> PoolDefinition {
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn create(store: &Store, owner: TenantId, value: Value) -> Result<(), ErrorCode> {
    let new = pool(value);
    let made: Result<_, StoreError> = store
        .tenant_tx(owner, async |tx| {
            tx.pool_create(&new, None, somebody()).await
        })
        .await;
    made.map(drop)
        .map_err(|error| nimbus_core::Error::from(error).code())
}

pub(crate) async fn configure(
    store: &Store,
    owner: TenantId,
    resolver: ResolverKind,
    environment: Option<&str>,
    config: Value,
) -> Result<(), StoreError> {
    let place = ResolverPlace {
        landing_zone: None,
        environment: environment.map(ToOwned::to_owned),
    };
    let config = config.as_object().unwrap().clone();
    let by = somebody();
    store
        .tenant_tx(owner, async |tx| {
            tx.resolver_configure(resolver, &place, &config, by).await
        })
        .await
}

pub(crate) fn asker(tenant: TenantId, component: &str, holder: LeaseHolder) -> LeaseAsk {
    LeaseAsk {
        tenant,
        facts: UnitFacts {
            deployment: "D1".to_owned(),
            environment: "dev".to_owned(),
            component: component.to_owned(),
            ..UnitFacts::default()
        },
        rehearsal: false,
        holder,
        epoch: match holder {
            LeaseHolder::Plan => 0,
            LeaseHolder::Run(_) => 1,
        },
    }
}

pub(crate) async fn answer(
    store: &Store,
    ask: &LeaseAsk,
    resolver: ResolverKind,
    inputs: Value,
) -> Result<ResolverAnswer, StoreError> {
    let inputs = inputs.as_object().unwrap().clone();
    let question = ResolverQuestion::new(resolver, inputs)?;
    let seal = |id: Uuid, _| Ok(format!("sealed for {id}").into_bytes());
    store.resolver_answer(ask, &question, &seal).await
}

pub(crate) async fn cidr(
    store: &Store,
    ask: &LeaseAsk,
    inputs: Value,
) -> Result<String, ErrorCode> {
    let answer = answer(store, ask, ResolverKind::Ipam, inputs).await;
    let answer = answer.map_err(|error| nimbus_core::Error::from(error).code())?;
    Ok(answer.outputs["cidr"].as_str().unwrap().to_owned())
}

pub(crate) async fn settle(store: &Store, ask: &LeaseAsk, run: u64, settlement: Settlement) {
    let units = [(ask.facts.component.clone(), settlement)];
    store.leases_settle(ask, run, &units).await.unwrap();
}

#[tokio::test]
async fn the_registry_in_the_database_is_that_of_the_program() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let rows: Result<_, StoreError> = database
        .store
        .tenant_tx(database.root, async |tx| tx.resolver_list().await)
        .await;
    let rows = rows.unwrap();
    assert_eq!(rows.len(), ResolverKind::ALL.len());
    for row in rows {
        let kind: ResolverKind = row.resolver_type.parse().unwrap();
        let definition = kind.definition();
        assert_eq!(row.input_schema, definition.input_schema(), "{kind}");
        assert_eq!(row.output_schema, definition.output_schema(), "{kind}");
        assert_eq!(row.display_name, definition.display_name);
        assert_eq!(row.description, definition.description);
        assert_eq!(row.handler_class, definition.handler);
        assert!(row.is_system);
    }
}

/// RES-016: as many at once as are asked for, and not one twice.
#[tokio::test]
async fn parallel_allocations_never_give_the_same_twice() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    create(
        store,
        database.root,
        json!({"name": "corp", "cidr": "10.0.0.0/8"}),
    )
    .await
    .unwrap();
    let config = json!({"pool": "corp", "prefix_length": 28});
    configure(store, database.root, ResolverKind::Ipam, None, config)
        .await
        .unwrap();
    let acme = tenant(&database, "acme").await;
    let all = short_or_long(200, 10_000);
    let workers = 8;
    let mut tasks = JoinSet::new();
    for worker in 0..workers {
        let store = store.clone();
        // Two tenants draw from the operator's pool.
        let holder = if worker % 2 == 0 { acme } else { database.root };
        tasks.spawn(async move {
            let mut given = Vec::new();
            for number in (worker..all).step_by(workers) {
                let ask = asker(holder, &format!("u{number}"), LeaseHolder::Run(1));
                given.push(cidr(&store, &ask, json!({})).await.unwrap());
            }
            given
        });
    }
    let given: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    let blocks: BTreeSet<AddressBlock> = given.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(blocks.len(), all, "zero duplicates");
    // From below and without gaps.
    let first = blocks.first().unwrap().base();
    assert_eq!(
        blocks.last().unwrap().base() - first,
        (all as u128 - 1) * 16
    );
    // The same units again get the same, and nothing more is taken.
    let again = asker(database.root, "u1", LeaseHolder::Run(2));
    assert!(given.contains(&cidr(store, &again, json!({})).await.unwrap()));
    let mut connection = administrator(&database.config).await;
    let live = "SELECT count(*) FROM nimbus_core.resolver_leases WHERE status = 'leased'";
    assert_eq!(number(&mut connection, live).await, all as i64);
}

/// The table of what runs do to leases, on the database as in memory.
#[tokio::test]
async fn leases_follow_their_units() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let acme = tenant(&database, "acme").await;
    create(store, acme, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    let config = json!({"pool": "lan", "prefix_length": 26});
    configure(store, acme, ResolverKind::Ipam, None, config)
        .await
        .unwrap();
    let run = |component: &str, run| asker(acme, component, LeaseHolder::Run(run));
    let held = async |component: &str| {
        let all = store.leases_of(&run(component, 0)).await.unwrap();
        let own = all
            .into_iter()
            .filter(|one| one.lease.unit.component == component);
        own.map(|one| (one.lease.status, one.lease.until_run))
            .collect::<Vec<_>>()
    };
    // A plan shows what the run then gets; success commits.
    let plan = asker(acme, "a", LeaseHolder::Plan);
    assert_eq!(cidr(store, &plan, json!({})).await.unwrap(), "10.0.0.0/26");
    assert_eq!(
        cidr(store, &run("a", 1), json!({})).await.unwrap(),
        "10.0.0.0/26"
    );
    settle(store, &run("a", 1), 1, Settlement::Deployed).await;
    assert_eq!(held("a").await, [(LeaseStatus::Committed, None)]);
    // A later run that asks for something else and is undone leaves what was there.
    let label = json!({"label": "second"});
    assert_eq!(
        cidr(store, &run("a", 2), label.clone()).await.unwrap(),
        "10.0.0.64/26"
    );
    settle(store, &run("a", 2), 2, Settlement::Undone).await;
    assert_eq!(held("a").await, [(LeaseStatus::Committed, None)]);
    // What came back is given again, to whoever asks next.
    assert_eq!(
        cidr(store, &run("b", 1), json!({})).await.unwrap(),
        "10.0.0.64/26"
    );
    // Interrupted, then gone on with: the same.
    settle(store, &run("b", 1), 1, Settlement::Open).await;
    assert_eq!(
        cidr(store, &run("b", 1), json!({})).await.unwrap(),
        "10.0.0.64/26"
    );
    settle(store, &run("b", 1), 1, Settlement::Deployed).await;
    // Replaced by another question, it stays for a rollback, which makes it current again.
    cidr(store, &run("a", 3), label).await.unwrap();
    settle(store, &run("a", 3), 3, Settlement::Deployed).await;
    let mut both = held("a").await;
    both.sort_by_key(|one| one.1);
    assert_eq!(
        both,
        [
            (LeaseStatus::Committed, None),
            (LeaseStatus::Committed, Some(3))
        ]
    );
    settle(store, &run("a", 4), 4, Settlement::Restored { to_run: 1 }).await;
    assert!(held("a").await.contains(&(LeaseStatus::Committed, Some(4))));
    // Full; and a refusal takes nothing.
    assert_eq!(
        cidr(store, &run("c", 1), json!({})).await.unwrap(),
        "10.0.0.192/26"
    );
    assert_eq!(
        cidr(store, &run("d", 1), json!({})).await,
        Err(ErrorCode::POOL_EXHAUSTED)
    );
    assert!(held("d").await.is_empty());
    // Destroy gives everything back.
    settle(store, &run("a", 5), 5, Settlement::Destroyed).await;
    assert!(held("a").await.is_empty());
    assert_eq!(
        cidr(store, &run("d", 1), json!({})).await.unwrap(),
        "10.0.0.0/26"
    );
    // What was taken for nothing is given back by its id; twice is once.
    let taken = answer(store, &run("e", 1), ResolverKind::Ipam, json!({}))
        .await
        .unwrap();
    let ids = [taken.lease.unwrap()];
    for _ in 0..2 {
        store.leases_give_back(&run("e", 1), &ids).await.unwrap();
    }
    assert!(held("e").await.is_empty());
}

#[tokio::test]
async fn a_worker_whose_run_was_taken_over_settles_nothing() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let root = database.root;
    create(store, root, json!({"name": "lan", "cidr": "10.0.0.0/24"}))
        .await
        .unwrap();
    let config = json!({"pool": "lan", "prefix_length": 26});
    configure(store, root, ResolverKind::Ipam, None, config)
        .await
        .unwrap();
    let old = asker(root, "a", LeaseHolder::Run(7));
    let new = LeaseAsk {
        epoch: 2,
        ..old.clone()
    };
    let first = cidr(store, &old, json!({})).await.unwrap();
    assert_eq!(cidr(store, &new, json!({})).await.unwrap(), first);
    settle(store, &old, 7, Settlement::Undone).await;
    assert_eq!(
        store.leases_of(&new).await.unwrap().len(),
        1,
        "the new worker has it"
    );
    settle(store, &new, 7, Settlement::Deployed).await;
    // A later run has an epoch of its own, which says nothing about this one's.
    let later = asker(root, "a", LeaseHolder::Run(8));
    settle(store, &later, 8, Settlement::Destroyed).await;
    assert!(store.leases_of(&new).await.unwrap().is_empty());
}

#[tokio::test]
async fn tenants_use_what_is_above_them_and_see_nothing_beside_them() {
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
    let config = json!({"pool": "lan", "prefix_length": 28});
    configure(store, acme, ResolverKind::Ipam, None, config)
        .await
        .unwrap();
    let below = asker(team, "a", LeaseHolder::Run(1));
    assert_eq!(cidr(store, &below, json!({})).await.unwrap(), "10.0.0.0/28");
    for stranger in [other, database.root] {
        let beside = asker(stranger, "a", LeaseHolder::Run(1));
        let refused = cidr(store, &beside, json!({})).await;
        assert_eq!(
            refused,
            Err(ErrorCode::RESOLVER_INPUT_INVALID),
            "nothing is configured"
        );
        let named = json!({"parent_scope": "lan", "prefix_length": 28});
        assert_eq!(
            cidr(store, &beside, named).await,
            Err(ErrorCode::POOL_UNKNOWN)
        );
    }
    // The owner sees who has what; the one beside sees nothing.
    let listed = async |tenant| {
        let page = ListPage {
            after: None,
            limit: 10,
        };
        let found: Result<_, StoreError> = store
            .tenant_tx(tenant, async |tx| {
                tx.lease_list(&LeaseFilter::default(), &page).await
            })
            .await;
        found
            .unwrap()
            .iter()
            .map(|one| one.held_by)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(acme).await, [team]);
    assert!(listed(other).await.is_empty());
    // A tenant that is deleted for good leaves nothing held.
    let deleted: Result<_, StoreError> = store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(team, std::time::Duration::ZERO).await
        })
        .await;
    deleted.unwrap();
    store.tenant_purge(team).await.unwrap();
    store.purge_done(team).await.unwrap();
    let mut connection = administrator(&database.config).await;
    let traces = format!(
        "SELECT count(*) FROM nimbus_core.resolver_leases l WHERE l::text LIKE '%{team}%' OR deployment <> ''"
    );
    assert_eq!(number(&mut connection, traces).await, 0);
    let next = asker(acme, "a", LeaseHolder::Run(1));
    assert_eq!(cidr(store, &next, json!({})).await.unwrap(), "10.0.0.0/28");
}

#[tokio::test]
async fn secrets_are_sealed_and_rehearsals_take_nothing() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let root = database.root;
    let ask = asker(root, "a", LeaseHolder::Run(1));
    let secret = answer(store, &ask, ResolverKind::Secret, json!({"name": "db"}))
        .await
        .unwrap();
    assert_eq!(secret.outputs.keys().collect::<Vec<_>>(), ["reference"]);
    let id = secret.lease.unwrap();
    let sealed = async || {
        let found: Result<_, StoreError> = store
            .tenant_tx(root, async |tx| tx.lease_sealed(id).await)
            .await;
        found.unwrap()
    };
    assert_eq!(
        sealed().await.unwrap(),
        format!("sealed for {id}").into_bytes()
    );
    settle(store, &ask, 1, Settlement::Destroyed).await;
    assert_eq!(sealed().await, None, "forgotten at once");
    create(store, root, json!({"name": "one", "cidr": "10.0.0.0/32"}))
        .await
        .unwrap();
    let one = json!({"parent_scope": "one", "prefix_length": 32});
    let rehearsed = LeaseAsk {
        rehearsal: true,
        ..ask.clone()
    };
    assert_eq!(
        cidr(store, &rehearsed, one.clone()).await.unwrap(),
        "10.0.0.0/32"
    );
    assert_eq!(cidr(store, &ask, one).await.unwrap(), "10.0.0.0/32");
    let image = answer(
        store,
        &ask,
        ResolverKind::ImageCatalog,
        json!({"os_family": "debian"}),
    )
    .await;
    let error = nimbus_core::Error::from(image.unwrap_err());
    assert_eq!(error.code(), ErrorCode::RESOLVER_NOT_CONFIGURED);
    configure(
        store,
        root,
        ResolverKind::ImageCatalog,
        None,
        json!({"cloud": "proxmox"}),
    )
    .await
    .unwrap();
    let image = answer(
        store,
        &ask,
        ResolverKind::ImageCatalog,
        json!({"os_family": "debian"}),
    )
    .await;
    assert_eq!(image.unwrap().outputs["image_id"], "debian-13-cloud");
}
