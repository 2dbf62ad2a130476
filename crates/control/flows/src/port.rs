//! What steps ask of the control plane.

use async_trait::async_trait;
use nimbus_core::{Result, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What old records were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRecords {
    pub notifications: u64,
    pub deliveries: u64,
    /// Tenants that were deleted and can no longer come back.
    pub tenants: u64,
}

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedStates {
    /// Nobody said where to; nothing was written.
    pub off: bool,
    /// States that were written because they changed since.
    pub written: u64,
    /// States that the place has already.
    pub unchanged: u64,
}

/// What the platform does by the clock. Every call bears being repeated.
#[async_trait]
pub trait PlatformWork: Send + Sync + 'static {
    /// Sessions, refresh tokens and sign-ins that ended. How many.
    async fn remove_ended_sessions(&self) -> Result<u64>;
    async fn remove_old_records(&self) -> Result<RemovedRecords>;
    /// Older parts of audit trails. How many entries.
    async fn archive_audit(&self) -> Result<u64>;
    /// Digests whose hour has come. How many people.
    async fn gather_digests(&self) -> Result<u64>;
    async fn export_states(&self) -> Result<ExportedStates>;
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStanding {
    /// `queued`, `running`, `paused` or `ended`.
    pub status: String,
    pub result: Option<String>,
    /// The approval that it waits for.
    pub approval: Option<Uuid>,
    /// Why it could not go on: a code and a message for people.
    pub problem: Option<(String, String)>,
}

impl RunStanding {
    pub fn is_ended(&self) -> bool {
        self.status == "ended"
    }
}

/// Where a request for approval is, after time has decided what it decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalStanding {
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    pub status: String,
    /// Until time decides again; nothing when it never does.
    pub seconds_left: Option<u64>,
}

/// Runs and approvals, as their rows have them. Nothing here begins or decides anything that a use case does not.
#[async_trait]
pub trait RunRows: Send + Sync + 'static {
    /// Nothing when the run's tenant, or the run, is gone. An earlier life of a run is over.
    async fn run_standing(
        &self,
        tenant: TenantId,
        run: Uuid,
        life: i32,
    ) -> Result<Option<RunStanding>>;

    /// Lets time decide, then says where the request is. Nothing when it is gone.
    async fn approval_standing(
        &self,
        tenant: TenantId,
        approval: Uuid,
    ) -> Result<Option<ApprovalStanding>>;

    /// Somebody cancelled the workflow itself: the run is asked to stop. One that has ended stays as it is.
    async fn stop_run(&self, tenant: TenantId, run: Uuid) -> Result<()>;
}
