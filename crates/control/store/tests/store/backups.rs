//! Dump, wipe, restore, verify.

use nimbus_control_store::{BackupScope, Store, StoreError};
use nimbus_control_testing::TestDatabase;

use crate::catalog::{drop_checks, fill};
use crate::support::{administrator, execute, tenant, tenant_below, texts};

/// Every row of every table, as text, apart from the ledgers' times.
async fn everything(config: &nimbus_control_store::StoreConfig) -> Vec<String> {
    let mut administrator = administrator(config).await;
    let tables = texts(
        &mut administrator,
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND n.nspname LIKE 'nimbus\\_%' AND c.relname NOT LIKE '%migrations' ORDER BY 1",
    )
    .await;
    let mut rows = Vec::new();
    for table in tables {
        rows.extend(
            texts(
                &mut administrator,
                format!("SELECT '{table} ' || t::text FROM {table} t ORDER BY 1"),
            )
            .await,
        );
    }
    rows
}

crate::for_both_isolations!(a_wiped_installation_is_restored_to_the_last_row, drill);
async fn drill(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let team = tenant_below(&database.store, a, a, "team").await;
    let gone = tenant(&database, "gone").await;
    let mut admin = administrator(&database.config).await;
    let strange = "tab\t newline\n backslash \\. quote ' ünï \u{1F600}";
    database
        .store
        .tenant_tx(team, async |tx| tx.compartment_create(strange, None).await)
        .await
        .unwrap();
    database
        .store
        .registry_tx(a, async |tx| tx.quota_reserve("deployments", 3).await)
        .await
        .unwrap();
    for tenant in [database.root, a, team, gone] {
        let skip_usage = tenant == a || tenant == database.root;
        if !skip_usage {
            fill(&mut admin, tenant).await;
        }
    }
    let grace = std::time::Duration::from_secs(3600);
    database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(gone, grace).await
        })
        .await
        .unwrap();
    let before = everything(&database.config).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar.gz");
    let manifest = database
        .store
        .backup(BackupScope::Everything, &file)
        .await
        .unwrap();
    assert_eq!(manifest.rows(), before.len() as u64);
    assert!(matches!(
        database.store.restore(&file).await,
        Err(StoreError::RestoreTarget)
    ));

    let mut empty = database.config.clone();
    empty.address.database.push_str("_restored");
    let (restored, _) = Store::open(empty.clone()).await.unwrap();
    let mut target = administrator(&empty).await;
    drop_checks(&mut target).await;
    drop_references(&mut target).await;
    restored.restore(&file).await.unwrap();
    assert_eq!(everything(&empty).await, before);
    // It goes on from there: the next tenant gets a schema of its own.
    let new = tenant_below(&restored, database.root, database.root, "next").await;
    restored
        .tenant_tx(new, async |tx| tx.compartment_create("first", None).await)
        .await
        .unwrap();
    Store::open(empty).await.unwrap();
}

/// Rows that are made up by type refer to nothing.
async fn drop_references(administrator: &mut sqlx::PgConnection) {
    execute(
        administrator,
        "DO $$ DECLARE c record; BEGIN
             FOR c IN SELECT conrelid::regclass AS place, conname FROM pg_constraint k
                      JOIN pg_class t ON t.oid = k.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
                      WHERE k.contype = 'f' AND n.nspname = 'nimbus_core' AND t.relname <> 'tenants'
             LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.place, c.conname); END LOOP;
         END $$",
    )
    .await
    .unwrap();
}

crate::for_both_isolations!(one_tenant_goes_back_while_others_go_on, one_tenant);
async fn one_tenant(database: TestDatabase) {
    let store = &database.store;
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let add = async |tenant, name: &str| {
        store
            .tenant_tx(tenant, async |tx| tx.compartment_create(name, None).await)
            .await
            .unwrap()
    };
    let names = async |tenant| {
        let list = store
            .tenant_tx(tenant, async |tx| tx.compartment_list().await)
            .await
            .unwrap();
        list.into_iter()
            .map(|compartment| compartment.name)
            .collect::<Vec<_>>()
    };
    add(a, "kept").await;
    add(b, "other").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alpha.tar.gz");
    store.backup(BackupScope::Tenant(a), &file).await.unwrap();
    add(a, "mistake").await;
    add(b, "later").await;
    store.restore_tenant(&file).await.unwrap();
    assert_eq!(
        (names(a).await, names(b).await),
        (
            vec!["kept".to_owned()],
            vec!["later".to_owned(), "other".to_owned()]
        )
    );
    // Even if it was deleted for good.
    store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(a, std::time::Duration::ZERO).await
        })
        .await
        .unwrap();
    store.tenant_purge(a).await.unwrap();
    store.restore_tenant(&file).await.unwrap();
    assert_eq!(names(a).await, ["kept"]);
    assert_eq!(names(b).await, ["later", "other"]);
}

crate::for_both_isolations!(a_damaged_backup_changes_nothing, damaged);
async fn damaged(database: TestDatabase) {
    let store = &database.store;
    let a = tenant(&database, "alpha").await;
    store
        .tenant_tx(a, async |tx| tx.compartment_create("kept", None).await)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alpha.tar.gz");
    store.backup(BackupScope::Tenant(a), &file).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 10, whole.len() / 2, whole.len() - 30] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(
            store.restore_tenant(&file).await.is_err(),
            "{length} of {}",
            whole.len()
        );
    }
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    assert!(store.restore_tenant(&file).await.is_err());
    let left = store
        .tenant_tx(a, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(left.len(), 1);
}
