//! The operator and the root of the tree.

use nimbus_core::TenantId;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::change::insert;
use super::name::check_name;
use crate::bootstrap::{SETUP_LOCK, lock};
use crate::{Store, StoreError};

impl Store {
    /// The operator's own tenant; creates the operator on the first call.
    pub async fn operator_ensure(&self, name: &str) -> Result<TenantId, StoreError> {
        check_name(name)?;
        let mut connection = self.owner_connection().await?;
        let mut tx = connection.begin().await?;
        lock(&mut tx, SETUP_LOCK).await?;
        let root = match root(&mut tx).await? {
            Some(root) => root,
            None => self.operator_create(&mut tx, name).await?,
        };
        tx.commit().await?;
        connection.close().await?;
        Ok(root)
    }

    async fn operator_create(
        &self,
        connection: &mut PgConnection,
        name: &str,
    ) -> Result<TenantId, StoreError> {
        let provider = Uuid::new_v4();
        sqlx::query("INSERT INTO nimbus_core.providers (id, name) VALUES ($1, $2)")
            .bind(provider)
            .bind(name)
            .execute(&mut *connection)
            .await?;
        let root = TenantId::random();
        let empty = serde_json::json!({});
        insert(
            connection,
            self,
            root,
            provider,
            &[],
            "root",
            name,
            &empty,
            &empty,
        )
        .await?;
        Ok(root)
    }
}

async fn root(connection: &mut PgConnection) -> Result<Option<TenantId>, StoreError> {
    let root: Option<Uuid> =
        sqlx::query_scalar("SELECT id FROM nimbus_core.tenants WHERE parent_id IS NULL")
            .fetch_optional(connection)
            .await?;
    Ok(root.map(TenantId::from))
}
