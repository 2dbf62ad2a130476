//! Deleting a tenant: hidden at once, back within the time of grace, gone without a trace after it.

use std::time::Duration;

use nimbus_control_store::{Isolation, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::catalog::fill;
use crate::support::{administrator, execute, number, tenant, tenant_below, texts};

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
    // Remembered until what it had outside is gone as well.
    let open: std::collections::BTreeSet<_> =
        store.purges_open().await.unwrap().into_iter().collect();
    assert_eq!(open, [a, team].into());
    for id in [a, team] {
        store.purge_done(id).await.unwrap();
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

crate::for_both_isolations!(one_tenant_that_cannot_go_keeps_no_other, stuck);
async fn stuck(database: TestDatabase) {
    let (store, root) = (&database.store, database.root);
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    for id in [a, b] {
        store
            .registry_tx(root, async |tx| tx.tenant_delete(id, Duration::ZERO).await)
            .await
            .unwrap();
    }
    // Something of somebody else's refers to one of them.
    let mut administrator = administrator(&database.config).await;
    execute(
        &mut administrator,
        format!(
            "CREATE TABLE public.notes (tenant uuid REFERENCES nimbus_core.tenants (id));
             INSERT INTO public.notes VALUES ('{a}')"
        ),
    )
    .await
    .unwrap();
    assert_eq!(store.tenant_purge_due().await.unwrap(), 1);
    assert_eq!(store.purges_open().await.unwrap(), [b]);
    execute(&mut administrator, "DROP TABLE public.notes")
        .await
        .unwrap();
    assert_eq!(store.tenant_purge_due().await.unwrap(), 1);
}

#[tokio::test]
async fn a_deletion_that_is_taken_back_while_others_are_purged_counts() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let (store, root) = (&database.store, database.root);
    let a = tenant(&database, "alpha").await;
    store
        .registry_tx(root, async |tx| tx.tenant_delete(a, Duration::ZERO).await)
        .await
        .unwrap();
    // The purge has chosen it and waits for the tree, which somebody holds who takes the deletion back.
    let purging = {
        let store = store.clone();
        store
            .clone()
            .registry_tx(root, async |tx| {
                let restored = tx.tenant_undelete(a).await?;
                let purging = tokio::spawn(async move { store.tenant_purge_due().await });
                let mut watcher = administrator(&database.config).await;
                let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
                while number(&mut watcher, waiting).await == 0 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(restored.id, a);
                Ok::<_, StoreError>(purging)
            })
            .await
            .unwrap()
    };
    assert_eq!(purging.await.unwrap().unwrap(), 0);
    store
        .tenant_tx(a, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
}
