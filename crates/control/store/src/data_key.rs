//! Data keys of tenants, in the form in which they may be stored.

use nimbus_control_vault::{KekId, VaultError, WrappedKey};
use nimbus_core::TenantId;
use sqlx::{Connection as _, FromRow};
use uuid::Uuid;

use crate::{Store, StoreError, TenantTx};

#[derive(FromRow)]
struct DataKeyRow {
    number: i32,
    kek_id: String,
    wrapped: Vec<u8>,
}

impl Store {
    /// Every outer key that some data key is wrapped by: without all of them nothing may start.
    pub async fn outer_keys(&self) -> Result<Vec<KekId>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let mut tx = sqlx::Connection::begin(&mut *connection).await?;
        let ids: Vec<String> =
            sqlx::query_scalar("SELECT DISTINCT * FROM nimbus_core.outer_keys()")
                .fetch_all(&mut *tx)
                .await?;
        tx.rollback().await?;
        ids.iter()
            .map(|id| KekId::parse(id).map_err(damaged))
            .collect()
    }
}

impl Store {
    /// Wraps every data key again that `rewrap` has another form for, tenant by tenant, those of deleted
    /// tenants included: they can still come back. How many there were.
    pub async fn data_keys_rewrap(
        &self,
        rewrap: impl Fn(&WrappedKey) -> Result<Option<WrappedKey>, VaultError>,
    ) -> Result<usize, StoreError> {
        let mut connection = self.owner_connection().await?;
        let tenants: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM nimbus_core.tenants")
            .fetch_all(&mut connection)
            .await?;
        let mut rewrapped = 0;
        for tenant in tenants {
            let mut tx = connection.begin().await?;
            sqlx::query("SELECT set_config('nimbus.tenant_id', $1, true)")
                .bind(tenant.to_string())
                .execute(&mut *tx)
                .await?;
            let rows: Vec<DataKeyRow> = sqlx::query_as(
                "SELECT number, kek_id, wrapped FROM nimbus_core.data_keys FOR UPDATE",
            )
            .fetch_all(&mut *tx)
            .await?;
            for row in rows {
                let key = row.key(tenant.into())?;
                if let Some(again) = rewrap(&key).map_err(damaged)? {
                    sqlx::query("UPDATE nimbus_core.data_keys SET kek_id = $2, wrapped = $3 WHERE number = $1")
                        .bind(again.number.cast_signed())
                        .bind(again.kek.as_str())
                        .bind(&again.bytes)
                        .execute(&mut *tx)
                        .await?;
                    rewrapped += 1;
                }
            }
            tx.commit().await?;
        }
        connection.close().await?;
        Ok(rewrapped)
    }
}

impl DataKeyRow {
    fn key(self, tenant: TenantId) -> Result<WrappedKey, StoreError> {
        Ok(WrappedKey {
            tenant,
            number: self.number.unsigned_abs(),
            kek: KekId::parse(&self.kek_id).map_err(damaged)?,
            bytes: self.wrapped,
        })
    }
}

impl TenantTx {
    /// The tenant's data keys, the newest first.
    pub async fn data_keys(&mut self) -> Result<Vec<WrappedKey>, StoreError> {
        let rows: Vec<DataKeyRow> = sqlx::query_as(
            "SELECT number, kek_id, wrapped FROM nimbus_core.data_keys ORDER BY number DESC",
        )
        .fetch_all(self.connection())
        .await?;
        let tenant = self.tenant();
        rows.into_iter().map(|row| row.key(tenant)).collect()
    }

    /// Stores a new data key. False if one of its number is there already, which stays.
    pub async fn data_key_add(&mut self, key: &WrappedKey) -> Result<bool, StoreError> {
        let added = sqlx::query(
            "INSERT INTO nimbus_core.data_keys (number, kek_id, wrapped) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        )
        .bind(key.number.cast_signed())
        .bind(key.kek.as_str())
        .bind(&key.bytes)
        .execute(self.connection())
        .await?;
        Ok(added.rows_affected() == 1)
    }
}

fn damaged(error: VaultError) -> StoreError {
    StoreError::Invalid {
        what: "a stored data key".to_owned(),
        why: error.to_string(),
    }
}
