//! Numbers about the whole installation, for whoever runs it.

use crate::{Store, StoreError};

impl Store {
    /// Tenants that are not deleted, with the operator's own.
    pub async fn active_tenants(&self) -> Result<u64, StoreError> {
        let root = self.tenant_find(&[]).await?;
        let count: i64 = self
            .tenant_tx(root, async |tx| {
                let count = sqlx::query_scalar(
                    "SELECT count(*) FROM nimbus_core.tenants WHERE deleted_at IS NULL",
                );
                Ok::<_, StoreError>(count.fetch_one(tx.connection()).await?)
            })
            .await?;
        Ok(count.unsigned_abs())
    }
}
