//! Deleting a tenant: hidden at once, back within the time of grace, gone without a trace after it.

use std::time::Duration;

use nimbus_control_store::StoreError;
use nimbus_control_testing::TestDatabase;

use crate::catalog::fill;
use crate::support::{administrator, number, tenant, tenant_below, texts};

const GRACE: Duration = Duration::from_secs(3600);

crate::for_both_isolations!(a_deletion_can_be_taken_back, undelete);
async fn undelete(database: TestDatabase) {
    let (store, root) = (&database.store, database.root);
    let a = tenant(&database, "alpha").await;
    let team = tenant_below(store, a, a, "team").await;
    store
        .tenant_tx(team, async |tx| tx.compartment_create("kept", None).await)
        .await
        .unwrap();
    let deleted = store
        .registry_tx(root, async |tx| tx.tenant_delete(a, GRACE).await)
        .await
        .unwrap();
    assert_eq!(deleted, 2);
    assert_eq!(store.tenant_purge_due().await.unwrap(), 0);
    // The slug is free meanwhile, and a child does not come back below a deleted parent.
    let orphan = store
        .registry_tx(root, async |tx| tx.tenant_undelete(team).await)
        .await;
    assert!(matches!(orphan, Err(StoreError::TenantUnknown)));
    store
        .registry_tx(root, async |tx| tx.tenant_undelete(a).await)
        .await
        .unwrap();
    let kept = store
        .tenant_tx(team, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert!(matches!(
        store.tenant_purge(a).await,
        Err(StoreError::NotDeleted)
    ));
    let root_deleted = store
        .registry_tx(root, async |tx| tx.tenant_delete(root, GRACE).await)
        .await;
    assert!(matches!(root_deleted, Err(StoreError::Root)));
}

crate::for_both_isolations!(nothing_of_a_purged_tenant_stays, purge);
async fn purge(database: TestDatabase) {
    let (store, root) = (&database.store, database.root);
    let a = tenant(&database, "alpha").await;
    let b = tenant(&database, "beta").await;
    let team = tenant_below(store, a, a, "team").await;
    let mut administrator = administrator(&database.config).await;
    for filled in [a, team, b] {
        fill(&mut administrator, filled).await;
    }
    let schemas = texts(
        &mut administrator,
        format!("SELECT schema_name FROM nimbus_core.tenants WHERE id IN ('{a}', '{team}')"),
    )
    .await;
    assert!(traces(&mut administrator, &a.to_string()).await > 0);
    store
        .registry_tx(root, async |tx| tx.tenant_delete(a, Duration::ZERO).await)
        .await
        .unwrap();
    assert_eq!(store.tenant_purge_due().await.unwrap(), 2);
    for id in [a, team] {
        assert_eq!(traces(&mut administrator, &id.to_string()).await, 0);
    }
    for schema in schemas.iter().filter(|schema| *schema != "nimbus_shared") {
        let left = number(
            &mut administrator,
            format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'"),
        )
        .await;
        assert_eq!(left, 0, "{schema}");
        assert_eq!(traces(&mut administrator, schema).await, 0);
    }
    // The neighbour has all of its own.
    assert!(traces(&mut administrator, &b.to_string()).await > 3);
    let kept = store
        .tenant_tx(b, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
}

/// Rows, in any table of any schema of ours, in which the text occurs anywhere.
async fn traces(administrator: &mut sqlx::PgConnection, text: &str) -> i64 {
    let tables = texts(
        administrator,
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
           AND n.nspname NOT LIKE 'pg\\_%'",
    )
    .await;
    let mut found = 0;
    for table in tables {
        found += number(
            administrator,
            format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%{text}%'"),
        )
        .await;
    }
    found
}
