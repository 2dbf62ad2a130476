//! Deleting for good: nothing of the tenant stays.
//!
//! Which tables have rows of a tenant comes from the catalog, so a new table cannot be forgotten.
//! One tenant per transaction, children before parents: a process that dies in between leaves whole
//! tenants, and locks on the tables of one schema at a time. Whether a tenant is to go is asked again under
//! the lock of the tree: somebody may have taken the deletion back. What it had outside of the database goes
//! afterwards, and is remembered until then.

use nimbus_core::TenantId;
use sqlx::{Connection as _, PgConnection};
use tracing::{error, info};
use uuid::Uuid;

use super::change::TREE_LOCK;
use crate::bootstrap::{lock, quoted};
use crate::catalog;
use crate::migrate::{CORE, SHARED};
use crate::store::run_script;
use crate::{Store, StoreError};

const DUE: &str = "purge_after <= now() AND $1::uuid IS NULL";

impl Store {
    /// Deletes for good every tenant whose time of grace is over. Returns how many. One that cannot be
    /// deleted keeps no other from it.
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

    /// Tenants that are gone and may have left something outside of the database.
    pub async fn purges_open(&self) -> Result<Vec<TenantId>, StoreError> {
        let mut connection = self.owner().acquire().await?;
        let open: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM nimbus_core.purges ORDER BY at")
            .fetch_all(&mut *connection)
            .await?;
        Ok(open.into_iter().map(TenantId::from).collect())
    }

    /// Nothing of the tenant is left anywhere.
    pub async fn purge_done(&self, id: TenantId) -> Result<(), StoreError> {
        let mut connection = self.owner().acquire().await?;
        sqlx::query("DELETE FROM nimbus_core.purges WHERE id = $1")
            .bind(Uuid::from(id))
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    async fn purge(&self, which: &str, id: Option<TenantId>) -> Result<usize, StoreError> {
        let mut connection = self.owner_connection().await?;
        let select = format!(
            "SELECT id FROM nimbus_core.tenants WHERE {which} ORDER BY cardinality(path) DESC"
        );
        let due: Vec<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(select))
            .bind(id.map(Uuid::from))
            .fetch_all(&mut connection)
            .await?;
        let mut purged = 0;
        for tenant in due {
            match purge_if(&mut connection, which, id, tenant).await {
                Ok(true) => {
                    purged += 1;
                    info!(%tenant, "a tenant was deleted for good");
                }
                Ok(false) => info!(%tenant, "a tenant came back before it was deleted for good"),
                Err(error) => {
                    error!(%error, %tenant, "a tenant could not be deleted for good");
                    // It may be the connection that failed.
                    connection = self.owner_connection().await?;
                }
            }
        }
        connection.close().await?;
        Ok(purged)
    }
}

/// One tenant, if it still is to be deleted now that nobody can change that.
async fn purge_if(
    connection: &mut PgConnection,
    which: &str,
    id: Option<TenantId>,
    tenant: Uuid,
) -> Result<bool, StoreError> {
    let mut tx = connection.begin().await?;
    lock(&mut tx, TREE_LOCK).await?;
    let again = format!(
        "SELECT schema_name FROM nimbus_core.tenants
         WHERE id = $2 AND {which}
           AND NOT EXISTS (SELECT FROM nimbus_core.tenants below WHERE below.parent_id = $2) FOR UPDATE"
    );
    let still: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(again))
        .bind(id.map(Uuid::from))
        .bind(tenant)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(schema) = still else {
        return Ok(false);
    };
    purge_one(&mut tx, tenant, &schema).await?;
    sqlx::query("INSERT INTO nimbus_core.purges (id) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(tenant)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}

async fn purge_one(
    connection: &mut PgConnection,
    id: Uuid,
    schema: &str,
) -> Result<(), StoreError> {
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
    release_leases(connection, id).await?;
    act_as(connection, &id.to_string()).await?;
    for table in tables.iter().rev() {
        let delete = format!("DELETE FROM {} WHERE tenant_id = $1", table.qualified());
        sqlx::query(sqlx::AssertSqlSafe(delete))
            .bind(id)
            .execute(&mut *connection)
            .await?;
    }
    act_as(connection, "").await?;
    // What was on its way to whoever listened.
    sqlx::query("DELETE FROM nimbus_core.live_outbox WHERE tenant = $1")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM nimbus_core.tenants WHERE id = $1")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// What the tenant had from pools of those above it is theirs again, and nothing says that it was the tenant's.
async fn release_leases(connection: &mut PgConnection, id: Uuid) -> Result<(), StoreError> {
    let path: Vec<Uuid> = sqlx::query_scalar("SELECT path FROM nimbus_core.tenants WHERE id = $1")
        .bind(id)
        .fetch_one(&mut *connection)
        .await?;
    for owner in path.into_iter().filter(|owner| *owner != id) {
        act_as(connection, &owner.to_string()).await?;
        sqlx::query(
            "DELETE FROM nimbus_core.resolver_leases WHERE held_by = $1 AND (returned OR base IS NULL)",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
        // A block comes back when somebody next takes from its space; until then the row says where it is.
        sqlx::query(
            "UPDATE nimbus_core.resolver_leases
             SET status = 'released', released_at = clock_timestamp(), expires_at = NULL, sealed = NULL,
                 held_by = '00000000-0000-0000-0000-000000000000', deployment = '', environment = '', component = '',
                 question = '', unique_name = NULL, outputs = '{}'
             WHERE held_by = $1",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
    }
    act_as(connection, "").await
}

/// The owner is held to row-level security as well. A deleted tenant has no other door.
async fn act_as(connection: &mut PgConnection, tenant: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT set_config('nimbus.tenant_id', $1, true)")
        .bind(tenant)
        .execute(connection)
        .await?;
    Ok(())
}
