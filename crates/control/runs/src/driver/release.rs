//! How a worker gives a run back: with the configuration items that it left, in one transaction.

use nimbus_control_store::{CmdbSync, EnvironmentKey, HeldRun, RunEnd, StoreError, StoredRun};
use nimbus_core::{Error, Result, TenantId};
use tracing::warn;

use super::Shared;

impl Shared {
    /// What a run left, if it left anything. One that goes on elsewhere is looked at when it ends there.
    pub(super) async fn inventory(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        end: &RunEnd,
    ) -> Result<Option<CmdbSync>> {
        if run.action == "preview" || end.status == "running" {
            return Ok(None);
        }
        self.carrier.inventory(tenant, run).await
    }

    /// Gives a run back together with the items that it left. Items that cannot be written keep no run from its end:
    /// that they are behind is noted instead, and the next run of the environment makes up for it.
    pub(super) async fn release(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        held: &HeldRun,
        end: &RunEnd,
        inventory: Result<Option<CmdbSync>>,
    ) -> std::result::Result<(), StoreError> {
        let failed = match inventory {
            Ok(None) => {
                let released = self
                    .store
                    .tenant_tx(tenant, async |tx| tx.run_release(held, end).await);
                return released.await;
            }
            Ok(Some(sync)) => {
                let together = self.store.tenant_tx(tenant, async |tx| {
                    tx.run_release(held, end).await?;
                    tx.cmdb_sync(&sync).await.map(drop)
                });
                match together.await {
                    Ok(()) => return Ok(()),
                    // Nothing would be written in another way either.
                    Err(
                        error @ (StoreError::Stale(_)
                        | StoreError::TenantUnknown
                        | StoreError::Unavailable(_)),
                    ) => return Err(error),
                    Err(error) => Error::from(error),
                }
            }
            Err(error) => error,
        };
        warn!(%tenant, run = %run.id, error = %failed.log_text(), "a run left items that are not recorded");
        let of = EnvironmentKey {
            deployment: run.deployment.clone(),
            environment: run.environment.clone(),
            rehearsal: run.rehearsal,
        };
        let problem = format!("{}: items could not be recorded", failed.code());
        let released = self.store.tenant_tx(tenant, async |tx| {
            tx.run_release(held, end).await?;
            tx.cmdb_sync_failed(&of, run.id, &problem).await
        });
        released.await
    }
}
