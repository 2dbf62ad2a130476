//! The one way to a tenant's rows.

use std::ops::{AsyncFnOnce, Deref, DerefMut};

use nimbus_core::TenantId;
use sqlx::postgres::Postgres;
use sqlx::{PgConnection, PgPool, Transaction};
use uuid::Uuid;

use crate::audit::ChainHead;
use crate::{Store, StoreError};

/// A transaction for one tenant. Queries are its methods, one file per resource.
#[derive(Debug)]
pub struct TenantTx {
    inner: Transaction<'static, Postgres>,
    tenant: TenantId,
    /// The last entry of the audit trail that this transaction wrote.
    pub(crate) head: Option<ChainHead>,
}

impl TenantTx {
    /// For whom this acts.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.inner
    }

    async fn begin(pool: &PgPool, tenant: TenantId) -> Result<Self, StoreError> {
        let mut inner = pool.begin().await?;
        sqlx::query("SELECT nimbus_core.enter_tenant($1)")
            .bind(Uuid::from(tenant))
            .execute(&mut *inner)
            .await?;
        Ok(Self {
            inner,
            tenant,
            head: None,
        })
    }
}

/// A transaction that may also change the registry of tenants within the acting tenant's subtree.
/// It runs as the owner of the tables, who is held to the same row-level security.
#[derive(Debug)]
pub struct RegistryTx {
    inner: TenantTx,
    pub(crate) store: Store,
}

impl Deref for RegistryTx {
    type Target = TenantTx;

    fn deref(&self) -> &TenantTx {
        &self.inner
    }
}

impl DerefMut for RegistryTx {
    fn deref_mut(&mut self) -> &mut TenantTx {
        &mut self.inner
    }
}

impl Store {
    /// Runs `work` for a tenant: all of it, or nothing if it fails, is cancelled or panics.
    ///
    /// A tenant that does not exist or is deleted is [`StoreError::TenantUnknown`].
    pub async fn tenant_tx<T, E>(
        &self,
        tenant: TenantId,
        work: impl AsyncFnOnce(&mut TenantTx) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<StoreError>,
    {
        let mut tx = TenantTx::begin(self.app(), tenant).await?;
        // What is not committed is rolled back when it is dropped.
        let value = work(&mut tx).await?;
        let head = tx.head.take();
        tx.inner.commit().await.map_err(StoreError::from)?;
        self.note_head(tenant, head);
        Ok(value)
    }

    /// As [`tenant_tx`](Self::tenant_tx), for changes of the registry of tenants.
    pub async fn registry_tx<T, E>(
        &self,
        acting: TenantId,
        work: impl AsyncFnOnce(&mut RegistryTx) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<StoreError>,
    {
        let mut tx = RegistryTx {
            inner: TenantTx::begin(self.owner(), acting).await?,
            store: self.clone(),
        };
        let value = work(&mut tx).await?;
        let head = tx.inner.head.take();
        tx.inner.inner.commit().await.map_err(StoreError::from)?;
        self.note_head(acting, head);
        Ok(value)
    }
}
