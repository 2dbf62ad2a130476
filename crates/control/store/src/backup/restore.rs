//! Writing the rows of a backup.
//!
//! Rows go through a temporary table, because PostgreSQL copies into no table that has row-level
//! security: from there they are inserted like any other, and every check applies.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::archive::{self, Opened};
use super::dump::act_as;
use super::{BackupManifest, DumpedTable, TablePlace, unusable};
use crate::bootstrap::quoted;
use crate::catalog;
use crate::migrate::{CORE, provision};
use crate::migrations::{GLOBAL, TENANT};
use crate::store::run_script;
use crate::{Store, StoreError};

pub(super) async fn everything(store: &Store, source: &Path) -> Result<BackupManifest, StoreError> {
    let opened = archive::open(source)?;
    check(&opened.manifest, store)?;
    if opened.manifest.tenant.is_some() {
        return Err(unusable("it is of one tenant, not of an installation"));
    }
    let mut connection = store.owner_connection().await?;
    let taken: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM nimbus_core.tenants)")
        .fetch_one(&mut connection)
        .await?;
    if taken {
        return Err(StoreError::RestoreTarget);
    }
    let mut tx = connection.begin().await?;
    // The first start wrote one; the backup's takes its place.
    run_script(&mut tx, "DELETE FROM nimbus_core.installation".to_owned()).await?;
    for table in opened
        .manifest
        .files
        .iter()
        .filter(|file| file.place == TablePlace::Installation)
    {
        load(&mut tx, &opened, table, CORE).await?;
    }
    numbers_go_on(&mut tx).await?;
    tx.commit().await?;
    let tenants: Vec<(Uuid, String)> =
        sqlx::query_as("SELECT id, schema_name FROM nimbus_core.tenants ORDER BY path")
            .fetch_all(&mut connection)
            .await?;
    for (tenant, schema) in &tenants {
        let mut tx = connection.begin().await?;
        provision(&mut tx, store, schema).await?;
        rows_of(&mut tx, &opened, *tenant, schema).await?;
        tx.commit().await?;
    }
    connection.close().await?;
    Ok(opened.manifest)
}

pub(super) async fn one_tenant(store: &Store, source: &Path) -> Result<BackupManifest, StoreError> {
    let opened = archive::open(source)?;
    check(&opened.manifest, store)?;
    let tenant = opened
        .manifest
        .tenant
        .ok_or_else(|| unusable("it is of an installation, not of one tenant"))?;
    let mut connection = store.owner_connection().await?;
    let mut tx = connection.begin().await?;
    let schema: Option<String> =
        sqlx::query_scalar("SELECT schema_name FROM nimbus_core.tenants WHERE id = $1 FOR UPDATE")
            .bind(tenant)
            .fetch_optional(&mut *tx)
            .await?;
    let schema = match schema {
        Some(schema) => {
            delete_rows(&mut tx, tenant, &schema).await?;
            schema
        }
        None => {
            for table in opened
                .manifest
                .files
                .iter()
                .filter(|file| file.table == "tenants")
            {
                load(&mut tx, &opened, table, CORE).await?;
            }
            let schema: String =
                sqlx::query_scalar("SELECT schema_name FROM nimbus_core.tenants WHERE id = $1")
                    .bind(tenant)
                    .fetch_one(&mut *tx)
                    .await?;
            provision(&mut tx, store, &schema).await?;
            schema
        }
    };
    rows_of(&mut tx, &opened, tenant, &schema).await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(opened.manifest)
}

/// A backup of a newer version may have rows that have no place here.
fn check(manifest: &BackupManifest, store: &Store) -> Result<(), StoreError> {
    let newest = |migrations: &[crate::migrations::Migration]| {
        migrations.last().map_or(0, |last| last.version)
    };
    if manifest.core_version > newest(&GLOBAL) || manifest.tenant_version > newest(&TENANT) {
        return Err(unusable("it was made by a newer version of Nimbus"));
    }
    if manifest.isolation != store.isolation().as_str() {
        return Err(StoreError::IsolationChanged {
            recorded: manifest.isolation.clone(),
            wanted: store.isolation().as_str(),
        });
    }
    Ok(())
}

async fn rows_of(
    connection: &mut PgConnection,
    opened: &Opened,
    tenant: Uuid,
    schema: &str,
) -> Result<(), StoreError> {
    act_as(connection, &tenant.to_string()).await?;
    for table in &opened.manifest.files {
        match table.place {
            TablePlace::Core { tenant: of } if of == tenant => {
                load(connection, opened, table, CORE).await?;
            }
            TablePlace::Own { tenant: of } if of == tenant => {
                load(connection, opened, table, schema).await?;
            }
            _ => {}
        }
    }
    act_as(connection, "").await
}

async fn delete_rows(
    connection: &mut PgConnection,
    tenant: Uuid,
    schema: &str,
) -> Result<(), StoreError> {
    act_as(connection, &tenant.to_string()).await?;
    let mut tables = catalog::tenant_tables(connection, CORE).await?;
    tables.extend(catalog::tenant_tables(connection, schema).await?);
    for table in tables.iter().rev() {
        let delete = format!("DELETE FROM {} WHERE tenant_id = $1", table.qualified());
        sqlx::query(sqlx::AssertSqlSafe(delete))
            .bind(tenant)
            .execute(&mut *connection)
            .await?;
    }
    act_as(connection, "").await
}

async fn load(
    connection: &mut PgConnection,
    opened: &Opened,
    table: &DumpedTable,
    schema: &str,
) -> Result<(), StoreError> {
    if table.rows == 0 {
        return Ok(());
    }
    let target = format!("{}.{}", quoted(schema), quoted(&table.table));
    let columns: Vec<_> = table.columns.iter().map(|column| quoted(column)).collect();
    let columns = columns.join(", ");
    let prepare = format!(
        "CREATE TEMP TABLE restoring ON COMMIT DROP AS SELECT {columns} FROM {target} WITH NO DATA"
    );
    run_script(connection, prepare).await?;
    let mut file = File::open(opened.file(&table.file)).map_err(unusable)?;
    let mut copy = connection
        .copy_in_raw("COPY pg_temp.restoring FROM STDIN")
        .await?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(unusable)?;
        if read == 0 {
            break;
        }
        copy.send(&buffer[..read]).await?;
    }
    copy.finish().await?;
    let insert =
        format!("INSERT INTO {target} ({columns}) SELECT {columns} FROM pg_temp.restoring");
    let inserted = sqlx::query(sqlx::AssertSqlSafe(insert))
        .execute(&mut *connection)
        .await?;
    if inserted.rows_affected() != table.rows {
        return Err(unusable(format!(
            "{} has another number of rows than it says",
            table.table
        )));
    }
    run_script(connection, "DROP TABLE pg_temp.restoring".to_owned()).await?;
    Ok(())
}

/// Numbers that were given out are not given out again.
async fn numbers_go_on(connection: &mut PgConnection) -> Result<(), StoreError> {
    let row = sqlx::query(
        "SELECT COALESCE(max(substring(schema_name FROM 'nimbus_tenant_([0-9]+)')::bigint), 0) FROM nimbus_core.tenants",
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query("SELECT setval('nimbus_core.tenant_numbers', greatest($1, 1), $1 > 0)")
        .bind(row.get::<i64, _>(0))
        .execute(connection)
        .await?;
    Ok(())
}
