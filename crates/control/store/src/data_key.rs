//! Data keys of tenants, in the form in which they may be stored.

use nimbus_control_vault::{KekId, VaultError, WrappedKey};
use sqlx::FromRow;

use crate::{Store, StoreError, TenantTx};

#[derive(FromRow)]
struct Row {
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

impl TenantTx {
    /// The tenant's data keys, the newest first.
    pub async fn data_keys(&mut self) -> Result<Vec<WrappedKey>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT number, kek_id, wrapped FROM nimbus_core.data_keys ORDER BY number DESC",
        )
        .fetch_all(self.connection())
        .await?;
        let tenant = self.tenant();
        rows.into_iter()
            .map(|row| {
                Ok(WrappedKey {
                    tenant,
                    number: row.number.unsigned_abs(),
                    kek: KekId::parse(&row.kek_id).map_err(damaged)?,
                    bytes: row.wrapped,
                })
            })
            .collect()
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

    /// Stores the same data key under another outer key.
    pub async fn data_key_rewrap(&mut self, key: &WrappedKey) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.data_keys SET kek_id = $2, wrapped = $3 WHERE number = $1")
            .bind(key.number.cast_signed())
            .bind(key.kek.as_str())
            .bind(&key.bytes)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}

fn damaged(error: VaultError) -> StoreError {
    StoreError::Invalid {
        what: "a stored data key".to_owned(),
        why: error.to_string(),
    }
}
