//! Reading every row, in one snapshot.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use tempfile::TempDir;
use uuid::Uuid;

use super::archive;
use super::{BackupManifest, BackupScope, DumpedTable, FORMAT, TablePlace, unusable};
use crate::bootstrap::quoted;
use crate::catalog::{self, CatalogTable};
use crate::migrate::CORE;
use crate::store::run_script;
use crate::{Store, StoreError};

/// Made anew by whoever restores, or of no use anywhere else.
pub(super) const LEDGERS: [&str; 12] = [
    "migrations",
    "tenant_migrations",
    "heartbeat",
    "live_outbox",
    "live_relays",
    "live_shards",
    "room",
    "purges",
    "resolvers",
    "restores",
    "restored_tenants",
    "sign_ins",
];

/// What was told live: a log that is restored begins anew, so that whoever watched it knows.
const PASSING: [&str; 2] = ["live_events", "live_heads"];

pub(super) async fn run(
    store: &Store,
    scope: BackupScope,
    target: &Path,
) -> Result<BackupManifest, StoreError> {
    let mut connection = store.owner_connection().await?;
    let mut tx = connection.begin().await?;
    run_script(
        &mut tx,
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned(),
    )
    .await?;
    let mut dump = Dump {
        folder: tempfile::tempdir().map_err(unusable)?,
        files: Vec::new(),
    };
    let tenants = tenants(&mut tx, scope).await?;
    dump.installation(&mut tx, scope).await?;
    for (tenant, schema) in &tenants {
        dump.tenant(&mut tx, *tenant, schema).await?;
    }
    let manifest = dump.manifest(&mut tx, scope).await?;
    tx.rollback().await?;
    connection.close().await?;
    archive::write(dump.folder.path(), &manifest, target)?;
    Ok(manifest)
}

/// Deleted ones as well: their time of grace goes on.
async fn tenants(
    connection: &mut PgConnection,
    scope: BackupScope,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    let only = match scope {
        BackupScope::Everything => None,
        BackupScope::Tenant(tenant) => Some(Uuid::from(tenant)),
    };
    let found: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, schema_name FROM nimbus_core.tenants WHERE $1::uuid IS NULL OR id = $1 ORDER BY path",
    )
    .bind(only)
    .fetch_all(connection)
    .await?;
    if found.is_empty() && only.is_some() {
        return Err(StoreError::TenantUnknown);
    }
    Ok(found)
}

struct Dump {
    folder: TempDir,
    files: Vec<DumpedTable>,
}

impl Dump {
    async fn installation(
        &mut self,
        connection: &mut PgConnection,
        scope: BackupScope,
    ) -> Result<(), StoreError> {
        let tables = catalog::tables(connection, CORE).await?;
        for table in &tables {
            let of_tenants = table.columns.iter().any(|column| column == "tenant_id");
            if of_tenants || LEDGERS.contains(&table.name.as_str()) {
                continue;
            }
            let filter = match scope {
                BackupScope::Everything => String::new(),
                // The registry's row comes along, so that a tenant that is gone can be made again.
                BackupScope::Tenant(tenant) if table.name == "tenants" => {
                    format!("WHERE id = '{tenant}'")
                }
                BackupScope::Tenant(_) => continue,
            };
            self.table(connection, table, TablePlace::Installation, &filter)
                .await?;
        }
        Ok(())
    }

    async fn tenant(
        &mut self,
        connection: &mut PgConnection,
        tenant: Uuid,
        schema: &str,
    ) -> Result<(), StoreError> {
        act_as(connection, &tenant.to_string()).await?;
        let filter = format!("WHERE tenant_id = '{tenant}'");
        for table in catalog::tenant_tables(connection, CORE).await? {
            if PASSING.contains(&table.name.as_str()) {
                continue;
            }
            self.table(connection, &table, TablePlace::Core { tenant }, &filter)
                .await?;
        }
        for table in catalog::tenant_tables(connection, schema).await? {
            self.table(connection, &table, TablePlace::Own { tenant }, &filter)
                .await?;
        }
        act_as(connection, "").await
    }

    async fn table(
        &mut self,
        connection: &mut PgConnection,
        table: &CatalogTable,
        place: TablePlace,
        filter: &str,
    ) -> Result<(), StoreError> {
        let columns: Vec<_> = table.columns.iter().map(|column| quoted(column)).collect();
        let copy = format!(
            "COPY (SELECT {} FROM {} {filter}) TO STDOUT",
            columns.join(", "),
            table.qualified()
        );
        let name = format!("{:05}.copy", self.files.len());
        let mut file = File::create_new(self.folder.path().join(&name)).map_err(unusable)?;
        let mut digest = Sha256::new();
        let mut rows = 0;
        let mut stream = connection.copy_out_raw(&copy).await?;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            // A line break inside a value is escaped, so every one ends a row.
            rows += chunk.iter().filter(|&&byte| byte == b'\n').count() as u64;
            digest.update(&chunk);
            file.write_all(&chunk).map_err(unusable)?;
        }
        self.files.push(DumpedTable {
            file: name,
            place,
            table: table.name.clone(),
            columns: table.columns.clone(),
            rows,
            sha256: hex::encode(digest.finalize()),
        });
        Ok(())
    }

    async fn manifest(
        &mut self,
        connection: &mut PgConnection,
        scope: BackupScope,
    ) -> Result<BackupManifest, StoreError> {
        let row = sqlx::query(
            "SELECT id, isolation, (SELECT max(version) FROM nimbus_core.migrations),
                    (SELECT COALESCE(max(version), 0) FROM nimbus_core.tenant_migrations) FROM nimbus_core.installation",
        )
        .fetch_one(connection)
        .await?;
        Ok(BackupManifest {
            format: FORMAT,
            created_at: jiff::Timestamp::now().to_string(),
            installation: row.get(0),
            isolation: row.get(1),
            tenant: match scope {
                BackupScope::Everything => None,
                BackupScope::Tenant(tenant) => Some(tenant.into()),
            },
            core_version: row.get(2),
            tenant_version: row.get(3),
            files: std::mem::take(&mut self.files),
        })
    }
}

/// The owner is held to row-level security as well.
pub(super) async fn act_as(connection: &mut PgConnection, tenant: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT set_config('nimbus.tenant_id', $1, true)")
        .bind(tenant)
        .execute(connection)
        .await?;
    Ok(())
}
