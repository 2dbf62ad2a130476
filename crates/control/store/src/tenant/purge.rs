//! Deleting for good: nothing of the tenant stays.
//!
//! Which tables have rows of a tenant comes from the catalog, so a new table cannot be forgotten.
//! One tenant per transaction, children before parents: a process that dies in between leaves whole
//! tenants, and locks on the tables of one schema at a time.

use nimbus_core::TenantId;
use sqlx::{Connection as _, PgConnection};
use tracing::info;
use uuid::Uuid;

use crate::bootstrap::quoted;
use crate::catalog;
use crate::migrate::{CORE, SHARED};
use crate::store::run_script;
use crate::{Store, StoreError};

const DUE: &str = "purge_after <= now() AND $1::uuid IS NULL";

impl Store {
    /// Tenants whose time of grace is over.
    pub async fn tenants_due(&self) -> Result<Vec<TenantId>, StoreError> {
        let mut connection = self.owner_connection().await?;
        let select = format!("SELECT id FROM nimbus_core.tenants WHERE {DUE}");
        let due: Vec<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(select))
            .bind(None::<Uuid>)
            .fetch_all(&mut connection)
            .await?;
        connection.close().await?;
        Ok(due.into_iter().map(TenantId::from).collect())
    }

    /// Deletes for good every tenant whose time of grace is over. Returns how many.
    pub async fn tenant_purge_due(&self) -> Result<usize, StoreError> {
        self.purge(DUE, None).await
    }

    /// Deletes a tenant that is deleted already, and everything below it, for good and at once.
    pub async fn tenant_purge(&self, id: TenantId) -> Result<usize, StoreError> {
        let purged = self
            .purge("deleted_at IS NOT NULL AND path @> ARRAY[$1]", Some(id))
            .await?;
        if purged == 0 {
            Err(StoreError::NotDeleted)
        } else {
            Ok(purged)
        }
    }

    async fn purge(&self, which: &str, id: Option<TenantId>) -> Result<usize, StoreError> {
        let mut connection = self.owner_connection().await?;
        let select = format!(
            "SELECT id, schema_name, path FROM nimbus_core.tenants WHERE {which} ORDER BY cardinality(path) DESC"
        );
        let due: Vec<(Uuid, String, Vec<Uuid>)> = sqlx::query_as(sqlx::AssertSqlSafe(select))
            .bind(id.map(Uuid::from))
            .fetch_all(&mut connection)
            .await?;
        for (id, schema, path) in &due {
            let mut tx = connection.begin().await?;
            purge_one(&mut tx, *id, schema, path).await?;
            tx.commit().await?;
            info!(tenant = %id, "a tenant was deleted for good");
        }
        connection.close().await?;
        Ok(due.len())
    }
}

async fn purge_one(
    connection: &mut PgConnection,
    id: Uuid,
    schema: &str,
    path: &[Uuid],
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE nimbus_core.quota_usage up SET used = up.used - own.used FROM nimbus_core.quota_usage own
         WHERE own.tenant_id = $1 AND own.resource = up.resource AND up.tenant_id = ANY ($2) AND up.tenant_id <> $1",
    )
    .bind(id)
    .bind(path)
    .execute(&mut *connection)
    .await?;
    let mut tables = catalog::tenant_tables(connection, CORE).await?;
    if schema == SHARED {
        tables.extend(catalog::tenant_tables(connection, SHARED).await?);
    } else {
        run_script(
            connection,
            format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(schema)),
        )
        .await?;
        sqlx::query("DELETE FROM nimbus_core.tenant_migrations WHERE schema_name = $1")
            .bind(schema)
            .execute(&mut *connection)
            .await?;
    }
    act_as(connection, &id.to_string()).await?;
    for table in tables.iter().rev() {
        let delete = format!("DELETE FROM {} WHERE tenant_id = $1", table.qualified());
        sqlx::query(sqlx::AssertSqlSafe(delete))
            .bind(id)
            .execute(&mut *connection)
            .await?;
    }
    act_as(connection, "").await?;
    sqlx::query("DELETE FROM nimbus_core.tenants WHERE id = $1")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The owner is held to row-level security as well. A deleted tenant has no other door.
async fn act_as(connection: &mut PgConnection, tenant: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT set_config('nimbus.tenant_id', $1, true)")
        .bind(tenant)
        .execute(connection)
        .await?;
    Ok(())
}
