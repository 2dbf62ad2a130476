//! Pools of addresses and sequences of names: what is refused by rule, and what is unique within them.

use std::collections::BTreeSet;

use nimbus_control_store::{Isolation, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_core::ErrorCode;
use nimbus_resolvers::{AddressBlock, LeaseHolder, ResolverKind, Settlement};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::resolvers::{answer, asker, cidr, configure, create, settle};
use crate::support::tenant;

#[tokio::test]
async fn pools_are_refused_by_rule_and_nested_ones_are_blocks_of_their_parents() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let root = database.root;
    create(store, root, json!({"name": "corp", "cidr": "10.0.0.0/16"}))
        .await
        .unwrap();
    for (wrong, code) in [
        (
            json!({"name": "other", "cidr": "10.0.128.0/17"}),
            ErrorCode::POOL_OVERLAP,
        ),
        (
            json!({"name": "corp", "cidr": "11.0.0.0/16"}),
            ErrorCode::RESOURCE_EXISTS,
        ),
        (
            json!({"name": "out", "cidr": "11.0.0.0/24", "parent": "corp"}),
            ErrorCode::POOL_OUTSIDE_PARENT,
        ),
        (
            json!({"name": "out", "cidr": "11.0.0.0/24", "parent": "none"}),
            ErrorCode::POOL_UNKNOWN,
        ),
    ] {
        assert_eq!(
            create(store, root, wrong.clone()).await,
            Err(code),
            "{wrong}"
        );
    }
    create(
        store,
        root,
        json!({"name": "lan", "cidr": "10.0.0.0/24", "parent": "corp", "purpose": "addresses"}),
    )
    .await
    .unwrap();
    let ask = asker(root, "a", LeaseHolder::Run(1));
    let block = json!({"parent_scope": "corp", "prefix_length": 24});
    assert_eq!(
        cidr(store, &ask, block.clone()).await.unwrap(),
        "10.0.1.0/24",
        "the child has the first"
    );
    let address = json!({"parent_scope": "lan", "allocation_type": "address"});
    assert_eq!(cidr(store, &ask, address).await.unwrap(), "10.0.0.2/24");
    // A child where something is leased is refused, with who has it.
    let taken = json!({"name": "late", "cidr": "10.0.0.0/22", "parent": "corp"});
    assert_eq!(
        create(store, root, taken).await,
        Err(ErrorCode::POOL_OVERLAP)
    );
    let taken = json!({"name": "late", "cidr": "10.0.1.0/24", "parent": "corp"});
    assert_eq!(
        create(store, root, taken).await,
        Err(ErrorCode::BLOCK_TAKEN)
    );
    // Reservations are given to nobody.
    let by_rule = async |name: &str, cidr: &str, keep: bool| {
        let block: AddressBlock = cidr.parse().unwrap();
        let done: Result<_, StoreError> = store
            .tenant_tx(root, async |tx| match keep {
                true => tx.pool_reserve(name, block).await,
                false => tx.pool_unreserve(name, block).await,
            })
            .await;
        done.map(drop)
            .map_err(|error| nimbus_core::Error::from(error).code())
    };
    by_rule("corp", "10.0.2.0/24", true).await.unwrap();
    assert_eq!(
        by_rule("corp", "10.0.1.0/25", true).await,
        Err(ErrorCode::BLOCK_TAKEN)
    );
    assert_eq!(
        by_rule("corp", "10.1.0.0/24", true).await,
        Err(ErrorCode::POOL_OUTSIDE_PARENT)
    );
    let other = asker(root, "b", LeaseHolder::Run(1));
    assert_eq!(cidr(store, &other, block).await.unwrap(), "10.0.3.0/24");
    by_rule("corp", "10.0.2.0/24", false).await.unwrap();
    let usage = async |name: &str| {
        let found: Result<_, StoreError> = store
            .tenant_tx(root, async |tx| {
                let pool = tx.pool_find(name).await?.unwrap();
                tx.pool_usage(&pool, false).await
            })
            .await;
        found.unwrap()
    };
    let corp = usage("corp").await;
    assert_eq!(
        (corp.size, corp.free, corp.leased),
        (65536, 65536 - 3 * 256, 2)
    );
    assert_eq!(usage("lan").await.free, 256 - 4);
    // Only a pool of which nothing is taken goes.
    let delete = async |name: &str| {
        let gone: Result<_, StoreError> = store
            .tenant_tx(root, async |tx| tx.pool_delete(name).await)
            .await;
        gone.map(drop)
            .map_err(|error| nimbus_core::Error::from(error).code())
    };
    assert_eq!(delete("corp").await, Err(ErrorCode::POOL_IN_USE));
    assert_eq!(delete("lan").await, Err(ErrorCode::POOL_IN_USE));
    for ask in [&ask, &other] {
        settle(store, ask, 1, Settlement::Destroyed).await;
    }
    delete("lan").await.unwrap();
    assert_eq!(usage("corp").await.free, 65536);
    delete("corp").await.unwrap();
}

#[tokio::test]
async fn names_are_unique_below_whoever_set_the_pattern() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let store = &database.store;
    let pattern = json!({"pattern": "{env}-{type}-{seq:03d}", "domain": "acme.example"});
    configure(store, database.root, ResolverKind::Naming, None, pattern)
        .await
        .unwrap();
    let acme = tenant(&database, "acme").await;
    let name = async |tenant, component: &str, inputs: Value| {
        let ask = asker(tenant, component, LeaseHolder::Run(1));
        let made = answer(store, &ask, ResolverKind::Naming, inputs).await;
        let made = made.map_err(|error| nimbus_core::Error::from(error).code())?;
        Ok::<_, ErrorCode>(made.outputs["name"].as_str().unwrap().to_owned())
    };
    let vm = || json!({"resource_type": "vm"});
    assert_eq!(name(acme, "a", vm()).await.unwrap(), "dev-vm-001");
    assert_eq!(name(database.root, "a", vm()).await.unwrap(), "dev-vm-002");
    let third = json!({"resource_type": "vm", "sequence": 3});
    assert_eq!(name(acme, "b", third.clone()).await.unwrap(), "dev-vm-003");
    assert_eq!(
        name(acme, "c", third.clone()).await,
        Err(ErrorCode::NAME_TAKEN)
    );
    // Who has a name is told to the tenant that has it, and to no other.
    let other = tenant(&database, "other").await;
    for (asking, says) in [(acme, "D1-b-dev"), (other, "another tenant")] {
        let ask = asker(asking, "x", LeaseHolder::Run(1));
        let refused = answer(store, &ask, ResolverKind::Naming, third.clone()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
        assert_eq!(refused.contains("D1-b-dev"), asking == acme, "{refused}");
    }
    assert_eq!(name(acme, "c", vm()).await.unwrap(), "dev-vm-004");
    settle(
        store,
        &asker(acme, "a", LeaseHolder::Run(1)),
        1,
        Settlement::Destroyed,
    )
    .await;
    assert_eq!(name(acme, "d", vm()).await.unwrap(), "dev-vm-001");
    // An environment's own pattern lies over it; too long for its type is refused and takes nothing.
    let long = json!({"pattern": "a-very-long-name-for-a-machine-{seq}"});
    configure(store, acme, ResolverKind::Naming, Some("dev"), long)
        .await
        .unwrap();
    let windows = json!({"resource_type": "windows_vm"});
    assert_eq!(
        name(acme, "e", windows).await,
        Err(ErrorCode::NAME_RULE_BROKEN)
    );
    assert_eq!(
        name(acme, "e", vm()).await.unwrap(),
        "a-very-long-name-for-a-machine-1"
    );
    // In parallel, too.
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let store = store.clone();
        tasks.spawn(async move {
            let ask = asker(acme, &format!("p{number}"), LeaseHolder::Run(1));
            let inputs = json!({"resource_type": "bucket"});
            let made = answer(&store, &ask, ResolverKind::Naming, inputs)
                .await
                .unwrap();
            made.outputs["name"].as_str().unwrap().to_owned()
        });
    }
    let names: BTreeSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(names.len(), 16);
}
