//! Where workers get runs from and give them back to: the rows of a database, or a server that has one.
//!
//! The driver knows this port and nothing of either. Whoever takes a run has it under an epoch; a sign of life
//! says whether that still counts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_metrics::Metrics;
use nimbus_control_store::{
    CmdbSync, EnvironmentKey, HeldRun, RunEnd, Store, StoreError, StoredRun, User, WorkTurn,
};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use crate::carrier::RunCarrier;
use crate::counted;

/// A run that a worker has taken.
#[derive(Debug)]
pub struct TakenRun {
    pub tenant: TenantId,
    /// Whose share of places it counts against.
    pub customer: TenantId,
    pub run: StoredRun,
    /// Why it is not to be carried out any more.
    pub unwanted: Option<Error>,
}

impl TakenRun {
    pub(crate) fn held(&self) -> HeldRun {
        held(&self.run)
    }
}

pub(crate) fn held(run: &StoredRun) -> HeldRun {
    HeldRun {
        deployment: run.deployment.clone(),
        number: run.number,
        epoch: run.epoch,
    }
}

/// What a sign of life was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSign {
    /// The run is still the worker's; what somebody wants of it.
    Ours(Option<String>),
    /// It is somebody else's now.
    Lost,
}

/// Where runs come from.
#[async_trait]
pub trait RunQueue: Send + Sync {
    /// Runs of an earlier process of this worker are nobody's.
    async fn take_back(&self) -> Result<()>;

    /// The next run, of no customer that has all its places here already.
    async fn take(
        &self,
        full: &BTreeSet<TenantId>,
        stop: &CancellationToken,
    ) -> Result<Option<TakenRun>>;

    /// A sign of life.
    async fn renew(&self, taken: &TakenRun) -> Result<RunSign>;

    /// Gives a run back, with how its row is left.
    async fn give_back(&self, taken: &TakenRun, end: &RunEnd, took: Duration) -> Result<()>;

    /// What this worker counts.
    fn metrics(&self) -> Arc<Metrics>;

    /// A run that was taken here is over, however it ended.
    fn ended(&self, _taken: &TakenRun) {}

    /// How long a worker may be without an answer to its signs of life before it has to take its run for lost. A worker
    /// beside its database has the same fate as whoever would take the run.
    fn patience(&self) -> Option<Duration> {
        None
    }
}

/// The rows of a database.
#[derive(Clone)]
pub struct DatabaseQueue {
    store: Store,
    carrier: Arc<dyn RunCarrier>,
    /// Who takes: a server, or a worker on another machine.
    worker: Uuid,
}

impl DatabaseQueue {
    pub fn new(store: Store, carrier: Arc<dyn RunCarrier>, worker: Uuid) -> Self {
        Self {
            store,
            carrier,
            worker,
        }
    }

    /// What somebody asked for who was disabled or deleted before it began is not done any more.
    async fn no_longer_wanted(&self, tenant: TenantId, run: &StoredRun) -> Option<Error> {
        if run.began_at.is_some() {
            return None;
        }
        let why = match self.asked_by(tenant, run).await {
            Ok(Some(user)) if user.disabled_at.is_none() => return None,
            Ok(Some(_)) => "whoever asked for the run was disabled before it began",
            Ok(None) => "whoever asked for the run was deleted before it began",
            // Without the database the run ends by itself.
            Err(error) => {
                let error = Error::from(error);
                warn!(%tenant, error = %error.log_text(), "nobody knows who asked for a run");
                return None;
            }
        };
        let error = Error::new(ErrorCode::NOT_PERMITTED, why);
        Some(error.with_help("somebody who may do it has to ask for it again"))
    }

    /// Whoever asked for a run: somebody of the tenant, or of one above it.
    async fn asked_by(
        &self,
        tenant: TenantId,
        run: &StoredRun,
    ) -> std::result::Result<Option<User>, StoreError> {
        let own = self.store.tenant_tx(tenant, async |tx| {
            let tenant = tx.tenant_get(tenant).await?;
            Ok::<_, StoreError>(tenant.path)
        });
        for place in own.await?.into_iter().rev() {
            let found = self
                .store
                .tenant_tx(place, async |tx| tx.user_get(run.requested_by.into()).await);
            match found.await {
                Err(StoreError::NotFound(_)) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// What a run left, if it left anything. One that goes on elsewhere is looked at when it ends there.
    async fn inventory(&self, taken: &TakenRun, end: &RunEnd) -> Result<Option<CmdbSync>> {
        if taken.run.action == "preview" || end.status == "running" {
            return Ok(None);
        }
        self.carrier.inventory(taken.tenant, &taken.run).await
    }

    /// Gives a run back together with the items that it left. Items that cannot be written keep no run from its end:
    /// that they are behind is noted instead, and the next run of the environment makes up for it.
    async fn release(
        &self,
        taken: &TakenRun,
        end: &RunEnd,
        inventory: Result<Option<CmdbSync>>,
    ) -> std::result::Result<(), StoreError> {
        let (tenant, run, held) = (taken.tenant, &taken.run, taken.held());
        let failed = match inventory {
            Ok(None) => {
                let released = self
                    .store
                    .tenant_tx(tenant, async |tx| tx.run_release(&held, end).await);
                return released.await;
            }
            Ok(Some(sync)) => {
                let together = self.store.tenant_tx(tenant, async |tx| {
                    tx.run_release(&held, end).await?;
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
            tx.run_release(&held, end).await?;
            tx.cmdb_sync_failed(&of, run.id, &problem).await
        });
        released.await
    }
}

#[async_trait]
impl RunQueue for DatabaseQueue {
    async fn take_back(&self) -> Result<()> {
        self.store.work_note_all().await?;
        for WorkTurn { tenant, .. } in self.store.work_turns().await? {
            match self.store.runs_orphan(tenant, self.worker).await {
                Ok(0) => {}
                Ok(count) => info!(%tenant, count, "runs go on that an earlier process left"),
                Err(StoreError::TenantUnknown) => self.store.work_forget(tenant).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn take(
        &self,
        full: &BTreeSet<TenantId>,
        stop: &CancellationToken,
    ) -> Result<Option<TakenRun>> {
        for WorkTurn { tenant, customer } in self.store.work_turns().await? {
            // There may be thousands of tenants, and whoever stops the server waits.
            if stop.is_cancelled() {
                return Ok(None);
            }
            if full.contains(&customer) {
                continue;
            }
            let taken = self.store.tenant_tx(tenant, async |tx| {
                if !tx.work_turn().await? {
                    return Ok(None);
                }
                let taken = tx.run_take(self.worker).await?;
                if taken.is_none() && !tx.runs_unfinished().await? {
                    tx.work_none().await?;
                }
                Ok(taken)
            });
            match taken.await {
                Ok(None) => {}
                Ok(Some(run)) => {
                    return Ok(Some(TakenRun {
                        tenant,
                        customer,
                        unwanted: self.no_longer_wanted(tenant, &run).await,
                        run,
                    }));
                }
                Err(StoreError::TenantUnknown) => self.store.work_forget(tenant).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    async fn renew(&self, taken: &TakenRun) -> Result<RunSign> {
        let held = taken.held();
        let renewed = self
            .store
            .tenant_tx(taken.tenant, async |tx| tx.run_renew(&held).await);
        match renewed.await {
            Ok(wish) => Ok(RunSign::Ours(wish)),
            Err(StoreError::Stale(_) | StoreError::TenantUnknown) => Ok(RunSign::Lost),
            Err(error) => Err(error.into()),
        }
    }

    async fn give_back(&self, taken: &TakenRun, end: &RunEnd, took: Duration) -> Result<()> {
        let inventory = self.inventory(taken, end).await;
        self.release(taken, end, inventory).await?;
        counted::count_end(self.store.metrics(), &taken.run.action, end, took);
        self.carrier.given_back(taken.tenant, &taken.run);
        Ok(())
    }

    fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(self.store.metrics())
    }
}

impl std::fmt::Debug for DatabaseQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DatabaseQueue({})", self.worker)
    }
}
