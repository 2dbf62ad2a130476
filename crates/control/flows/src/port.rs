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

/// Which schedule of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledRunInput {
    pub tenant: TenantId,
    pub schedule: String,
}

/// What a tenant's schedule came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledRun {
    /// The run that was queued.
    pub run: Option<Uuid>,
    /// Why none was.
    pub refused: Option<String>,
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
    /// Asks for the run of a tenant's schedule, in the name of whoever made it. `key` is the same in every attempt, and
    /// gets the same run.
    async fn start_scheduled(&self, input: &ScheduledRunInput, key: &str) -> Result<ScheduledRun>;
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
    /// How far it is; nothing before it began.
    #[serde(default)]
    pub progress: Option<RunProgress>,
}

/// How many resources a run has changed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    pub created: u64,
    pub updated: u64,
    pub deleted: u64,
    pub failed: u64,
    /// All that it is about, as far as it is known.
    pub total: u64,
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
    /// Who approved, by their ids.
    #[serde(default)]
    pub approved: Vec<String>,
    /// Who is waited for: `user:ID` or `group:ID`.
    #[serde(default)]
    pub pending: Vec<String>,
}

/// Where an environment of a landing zone is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapStanding {
    /// `provisioning`, `configuring`, `active`, `failed`, `deleting` or `deleted`.
    pub status: String,
    /// What it waits for, or what failed.
    pub run: Option<Uuid>,
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

    /// Where an environment is on its way to being used. Nothing when it is gone, or was begun anew since.
    async fn bootstrap_standing(
        &self,
        tenant: TenantId,
        environment: Uuid,
        attempt: i32,
    ) -> Result<Option<BootstrapStanding>>;

    /// Configures the resolvers of a landing zone whose services are there, and opens its environment. Once more does
    /// nothing.
    async fn configure_resolvers(&self, tenant: TenantId, environment: Uuid) -> Result<()>;

    /// Somebody cancelled the workflow itself: the run is asked to stop. One that has ended stays as it is.
    async fn stop_run(&self, tenant: TenantId, run: Uuid) -> Result<()>;
}
