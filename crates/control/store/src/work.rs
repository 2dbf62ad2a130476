//! Whose turn it is to have runs carried out: workers go round the tenants that have some.

use nimbus_core::TenantId;
use uuid::Uuid;

use crate::{Store, StoreError, TenantTx};

/// A tenant that may have runs to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTurn {
    pub tenant: TenantId,
    /// The tenant below the operator's that it is, or is below; those below one share what it may have.
    pub customer: TenantId,
}

impl Store {
    /// Tenants that may have runs to carry out, whoever waits longest for a turn first.
    pub async fn work_turns(&self) -> Result<Vec<WorkTurn>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let rows: Vec<(Uuid, Uuid)> =
            sqlx::query_as("SELECT tenant, customer FROM nimbus_core.work_turns_next()")
                .fetch_all(&mut *connection)
                .await?;
        let turn = |(tenant, customer): (Uuid, Uuid)| WorkTurn {
            tenant: tenant.into(),
            customer: customer.into(),
        };
        Ok(rows.into_iter().map(turn).collect())
    }

    /// Makes workers look at every tenant: after a start, when nobody knows who has work.
    pub async fn work_note_all(&self) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.work_note_all()")
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// A tenant that is gone has no turn any more.
    pub async fn work_forget(&self, tenant: TenantId) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.work_forget($1)")
            .bind(Uuid::from(tenant))
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Takes back the runs that an earlier process of the same server had: it is gone, for the data directory
    /// is ours. How many there were.
    pub async fn runs_orphan(&self, tenant: TenantId, server: Uuid) -> Result<u64, StoreError> {
        self.tenant_tx(tenant, async |tx| {
            Ok(sqlx::query(
                "UPDATE runs SET server = NULL, expires_at = NULL WHERE server = $1 AND status = 'running'",
            )
            .bind(server)
            .execute(tx.connection())
            .await?
            .rows_affected())
        })
        .await
    }
}

impl TenantTx {
    /// The tenant has work, once this transaction is committed.
    pub async fn work_note(&mut self) -> Result<(), StoreError> {
        self.work("SELECT nimbus_core.work_note()").await
    }

    /// Takes the tenant's turn. False when somebody else is at it, or there is no work.
    pub async fn work_turn(&mut self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT nimbus_core.work_turn()")
            .fetch_one(self.connection())
            .await?)
    }

    pub(crate) async fn work_taken(&mut self) -> Result<(), StoreError> {
        self.work("SELECT nimbus_core.work_taken()").await
    }

    /// The tenant has nothing to carry out; after [`work_turn`](Self::work_turn).
    pub async fn work_none(&mut self) -> Result<(), StoreError> {
        self.work("SELECT nimbus_core.work_none()").await
    }

    /// Whether a run of this tenant, or of one below it, is under way. None begins until the transaction ends.
    pub async fn work_is_running(&mut self, above: TenantId) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT nimbus_core.work_is_running($1)")
            .bind(Uuid::from(above))
            .fetch_one(self.connection())
            .await?)
    }

    async fn work(&mut self, call: &'static str) -> Result<(), StoreError> {
        sqlx::query(call).execute(self.connection()).await?;
        // Whoever has work or loses it has a run that changed.
        self.told = true;
        Ok(())
    }
}
