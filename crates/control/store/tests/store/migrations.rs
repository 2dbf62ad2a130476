//! Schemas are brought up to date side by side, and an interruption costs nothing.

use nimbus_control_store::{Isolation, Store, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{administrator, execute, number, tenant, texts};

const TENANTS: usize = 12;

/// A database whose tenants have no tables yet.
async fn behind(binaries: &std::path::Path) -> TestDatabase {
    let database = TestDatabase::new(binaries, Isolation::SchemaWithRls).await;
    for number in 0..TENANTS {
        tenant(&database, &format!("t{number}")).await;
    }
    let mut administrator = administrator(&database.config).await;
    execute(
        &mut administrator,
        "DO $$ DECLARE s text; BEGIN
             FOR s IN SELECT schema_name FROM nimbus_core.tenants WHERE parent_id IS NOT NULL LOOP
                 EXECUTE format('DROP SCHEMA %I CASCADE', s);
                 DELETE FROM nimbus_core.tenant_migrations WHERE schema_name = s;
             END LOOP;
         END $$",
    )
    .await
    .unwrap();
    database
}

/// Every tenant's schema is like the operator's, which was never touched.
async fn assert_complete(database: &TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    let shapes = texts(
        &mut administrator,
        "SELECT DISTINCT shape FROM (
             SELECT t.schema_name, string_agg(c.relname || a.attname, ',' ORDER BY c.relname, a.attnum) AS shape
             FROM nimbus_core.tenants t
             LEFT JOIN pg_namespace n ON n.nspname = t.schema_name
             LEFT JOIN pg_class c ON c.relnamespace = n.oid LEFT JOIN pg_attribute a ON a.attrelid = c.oid
             GROUP BY 1) s",
    )
    .await;
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    let ledgers = number(
        &mut administrator,
        "SELECT count(DISTINCT n) FROM (SELECT count(*) n FROM nimbus_core.tenant_migrations GROUP BY schema_name) x",
    )
    .await;
    assert_eq!(ledgers, 1);
    assert!(
        database
            .store
            .weaknesses()
            .await
            .unwrap()
            .iter()
            .all(|weakness| !weakness.is_fatal())
    );
}

#[tokio::test]
async fn a_run_that_is_cut_off_is_gone_on_with() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = behind(&binaries).await;
    let mut administrator = administrator(&database.config).await;
    // Every cut falls somewhere else, because each run has less to do.
    let mut cuts = 0;
    loop {
        let store = Store::connect(database.config.clone());
        let run = tokio::spawn(async move { store.migrate().await.map(|_| ()) });
        while !run.is_finished() {
            let killed = number(
                &mut administrator,
                "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND usename LIKE '%owner'
                   AND (SELECT count(DISTINCT schema_name) FROM nimbus_core.tenant_migrations) % 4 = 2) k",
            )
            .await;
            if killed > 0 {
                cuts += 1;
                break;
            }
            tokio::task::yield_now().await;
        }
        if run.await.unwrap().is_ok() || cuts > 3 {
            break;
        }
    }
    database.store.migrate().await.unwrap();
    assert_complete(&database).await;
}

#[tokio::test]
async fn two_processes_share_the_work() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = behind(&binaries).await;
    let other = Store::connect(database.config.clone());
    let (one, two) = tokio::join!(database.store.migrate(), other.migrate());
    let applied = one.unwrap().tenant_migrations + two.unwrap().tenant_migrations;
    let mut administrator = administrator(&database.config).await;
    let per_schema = number(
        &mut administrator,
        "SELECT count(DISTINCT version) FROM nimbus_core.tenant_migrations",
    )
    .await;
    assert_eq!(applied as i64, per_schema * TENANTS as i64);
    assert_complete(&database).await;
    assert_eq!(database.store.migrate().await.unwrap().tenant_migrations, 0);
}

#[tokio::test]
async fn two_first_starts_at_once_both_succeed() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let config = TestDatabase::vacant(&binaries, Isolation::SchemaWithRls);
    let open = async || {
        let (store, _) = Store::open(config.clone()).await.unwrap();
        store.operator_ensure("Operator").await.unwrap()
    };
    let (one, two) = tokio::join!(open(), open());
    assert_eq!(one, two);
}

#[tokio::test]
async fn a_ledger_that_disagrees_stops_everything() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let cases = [
        (
            "INSERT INTO nimbus_core.migrations (version, name, checksum) VALUES (9999, '9999_future', '')",
            "newer",
        ),
        (
            "UPDATE nimbus_core.migrations SET checksum = 'other' WHERE version = 1",
            "changed",
        ),
        (
            "UPDATE nimbus_core.tenant_migrations SET version = 9999, name = '9999_future' WHERE version = 1",
            "newer",
        ),
        (
            "UPDATE nimbus_core.tenant_migrations SET checksum = 'other' WHERE version = 1",
            "changed",
        ),
    ];
    for (damage, meaning) in cases {
        let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
        let mut administrator = administrator(&database.config).await;
        execute(&mut administrator, damage).await.unwrap();
        let error = Store::open(database.config.clone()).await.unwrap_err();
        match (&error, meaning) {
            (StoreError::DatabaseNewer { .. }, "newer")
            | (StoreError::MigrationChanged { .. }, "changed") => {}
            _ => panic!("{damage}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn the_way_of_keeping_apart_is_decided_once() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let mut database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    database.config.isolation = Isolation::Shared;
    let error = Store::open(database.config).await.unwrap_err();
    assert!(
        matches!(error, StoreError::IsolationChanged { .. }),
        "{error:?}"
    );
}
