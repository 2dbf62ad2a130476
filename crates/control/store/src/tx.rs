//! The one way to a tenant's rows.

use std::ops::{AsyncFnOnce, Deref, DerefMut};
use std::sync::Arc;

use nimbus_control_audit::AuditRecord;
use nimbus_control_metrics::Metrics;
use nimbus_core::TenantId;
use sqlx::postgres::Postgres;
use sqlx::{PgConnection, PgPool, Transaction};
use uuid::Uuid;

use crate::audit::ChainHead;
use crate::measured::MeasuredConnection;
use crate::{Store, StoreError};

/// A transaction for one tenant. Queries are its methods, one file per resource.
#[derive(Debug)]
pub struct TenantTx {
    inner: Transaction<'static, Postgres>,
    tenant: TenantId,
    /// The last entry of the audit trail that this transaction wrote.
    pub(crate) head: Option<ChainHead>,
    /// Actions and kinds of the entries that it wrote, to be counted once it is committed.
    pub(crate) recorded: Vec<(String, String)>,
    /// Reads that are recorded after it, together with others.
    pub(crate) later: Vec<(jiff::Timestamp, AuditRecord)>,
    /// It left something in the outbox, for the relay.
    pub(crate) told: bool,
    /// It left something to be sent.
    pub(crate) delivers: bool,
    /// Whether this server sends mail.
    pub(crate) mails: bool,
    metrics: Arc<Metrics>,
}

impl TenantTx {
    /// For whom this acts.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// For one statement, whose time is measured.
    pub(crate) fn connection(&mut self) -> MeasuredConnection<'_> {
        MeasuredConnection::new(&mut self.inner, &self.metrics)
    }

    /// For work of several statements that is shared with transactions of other kinds.
    pub(crate) fn raw_connection(&mut self) -> &mut PgConnection {
        &mut self.inner
    }

    async fn begin(pool: &PgPool, tenant: TenantId, store: &Store) -> Result<Self, StoreError> {
        let (metrics, line, mails) = (store.metrics(), store.line(), store.sends_mail());
        let waiting = line.wait();
        let inner = pool.begin().await?;
        drop(waiting);
        let mut tx = Self {
            inner,
            tenant,
            head: None,
            recorded: Vec::new(),
            later: Vec::new(),
            told: false,
            delivers: false,
            mails,
            metrics: Arc::clone(metrics),
        };
        sqlx::query("SELECT nimbus_core.enter_tenant($1)")
            .bind(Uuid::from(tenant))
            .execute(tx.connection())
            .await?;
        Ok(tx)
    }

    /// Commits, and passes on what counts only then.
    async fn finish(self, store: &Store) -> Result<(), StoreError> {
        self.inner.commit().await?;
        store.note_head(self.tenant, self.head);
        for (action, kind) in &self.recorded {
            self.metrics.audit_event(action, kind);
        }
        if self.told {
            store.live_wakeup.notify_one();
        }
        if self.delivers {
            store.delivery_wakeup.notify_one();
        }
        for (now, record) in self.later {
            store.audit_later(self.tenant, now, record);
        }
        Ok(())
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
        // A connection that is made first is the largest part of it; every use case would carry its room along.
        let mut tx = Box::pin(TenantTx::begin(self.app(), tenant, self)).await?;
        // What is not committed is rolled back when it is dropped.
        let value = work(&mut tx).await?;
        tx.finish(self).await?;
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
            inner: Box::pin(TenantTx::begin(self.owner(), acting, self)).await?,
            store: self.clone(),
        };
        let value = work(&mut tx).await?;
        tx.inner.finish(self).await?;
        Ok(value)
    }
}
