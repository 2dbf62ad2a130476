//! Connections are shared by tenants and remember nothing of them.

use std::time::Duration;

use nimbus_control_store::{Isolation, Store, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_core::TenantId;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::tenant;

const TASKS: usize = 8;

/// Requests in one test; more in a soak with `NIMBUS_TEST_REQUESTS`.
fn requests() -> usize {
    let given = std::env::var("NIMBUS_TEST_REQUESTS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// What goes wrong, or does not, in a request.
#[derive(Clone, Copy)]
enum Fate {
    Fine,
    Fails,
    BadStatement,
    IsCancelled,
    Panics,
}

const FATES: [Fate; 8] = [
    Fate::Fine,
    Fate::Fails,
    Fate::Fine,
    Fate::IsCancelled,
    Fate::Fine,
    Fate::BadStatement,
    Fate::Fine,
    Fate::Panics,
];

crate::for_both_isolations!(
    one_connection_serves_two_tenants_and_mixes_nothing,
    mixes_nothing
);
async fn mixes_nothing(database: TestDatabase) {
    let tenants = [
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    ];
    let mut config = database.config.clone();
    config.pool_size = 1;
    let store = Store::connect(config);
    for (tenant, name) in tenants.iter().zip(["of alpha", "of beta"]) {
        store
            .tenant_tx(*tenant, async |tx| tx.compartment_create(name, None).await)
            .await
            .unwrap();
    }
    let work = (0..TASKS).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for request in 0..requests() / TASKS {
                let turn = task + request;
                request_with(
                    &store,
                    tenants[turn % 2],
                    ["of alpha", "of beta"][turn % 2],
                    FATES[(turn / 2) % FATES.len()],
                    turn,
                )
                .await;
            }
        })
    });
    for task in work.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(store.unclean_connections(), 0);
    // Nothing of the requests that went wrong stayed.
    for tenant in tenants {
        let left = store
            .tenant_tx(tenant, async |tx| tx.compartment_list().await)
            .await
            .unwrap();
        assert_eq!(left.len(), 1);
    }
}

async fn request_with(store: &Store, tenant: TenantId, expected: &str, fate: Fate, turn: usize) {
    match fate {
        Fate::Fine => {
            let seen = store
                .tenant_tx(tenant, async |tx| tx.compartment_list().await)
                .await
                .unwrap();
            let names: Vec<_> = seen
                .iter()
                .map(|compartment| compartment.name.as_str())
                .collect();
            assert_eq!(names, [expected]);
        }
        Fate::Fails => {
            let outcome: Result<(), StoreError> = store
                .tenant_tx(tenant, async |tx| {
                    tx.compartment_create("never", None).await?;
                    Err(StoreError::NotFound("reason to go on"))
                })
                .await;
            assert!(outcome.is_err());
        }
        Fate::BadStatement => {
            let outcome = store
                .tenant_tx(tenant, async |tx| {
                    tx.compartment_create(expected, None).await
                })
                .await;
            assert!(matches!(outcome, Err(StoreError::Exists(_))), "{outcome:?}");
        }
        Fate::IsCancelled => {
            let work = store.tenant_tx(tenant, async |tx| {
                tx.compartment_create("never", None).await?;
                tx.compartment_list().await?;
                std::future::pending::<Result<(), StoreError>>().await
            });
            let patience = Duration::from_micros((turn as u64 * 37) % 3_000);
            assert!(tokio::time::timeout(patience, work).await.is_err());
        }
        Fate::Panics => {
            let store = store.clone();
            let doomed = tokio::spawn(async move {
                let work = store.tenant_tx(tenant, async |tx| {
                    tx.compartment_create("never", None).await?;
                    std::panic::resume_unwind(Box::new("in the middle"));
                    #[expect(unreachable_code, reason = "the type of the closure")]
                    Ok::<(), StoreError>(())
                });
                work.await
            });
            assert!(doomed.await.unwrap_err().is_panic());
        }
    }
}

#[tokio::test]
async fn a_store_whose_server_is_away_says_so_soon() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let mut config = TestDatabase::vacant(&binaries, Isolation::SchemaWithRls);
    config.address.host = nimbus_control_store::Host::Socket("/nonexistent".into());
    config.acquire_timeout = Duration::from_millis(200);
    let store = Store::connect(config);
    let outcome = store
        .tenant_tx(TenantId::random(), async |tx| tx.compartment_list().await)
        .await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable(_))),
        "{outcome:?}"
    );
}
