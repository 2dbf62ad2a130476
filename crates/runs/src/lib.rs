//! The use cases of a run over ports: plan, seal, deploy, resume, roll back, checks and gates.
//!
//! A run goes through typed stages. [`RunSession::open`] takes the environment and reads the manifest,
//! once and under the lock; [`RunSession::plan`] decides what would happen and refuses what moved;
//! [`PlannedRun::carry_out`] records the whole request before anything starts, drives the state
//! machine of `crates/orchestrator` and says how it ended. Everything outside is behind a trait of
//! [`ports`]: files in `crates/local`, memory in `crates/runs/testing`.

mod bus;
mod checks;
mod context;
mod execute;
mod leases;
mod lock_wait;
mod lookups;
mod manifest_parts;
mod planning;
pub mod ports;
mod preview;
mod progress;
mod promotion;
mod readiness;
mod record;
mod resume;
mod rollback;
mod rotate;
mod seal;
mod session;
mod spans;
mod unit;
mod versions;
mod worker;

/// The scheduler by itself, for whoever measures it. Runs go through [`RunSession`].
#[doc(hidden)]
pub mod scheduler {
    pub use crate::execute::{ExecutionReport, RunLimits, RunListener, UnitWorker, execute};
}

pub use bus::{EventBus, RunObserver, timestamp};
pub use checks::CheckResult;
pub use context::RunContext;
pub use leases::{ShownLease, settlements_of_record};
pub use lock_wait::{LockWait, take_environment};
pub use planning::require_needs;
pub use preview::{PreviewReport, PreviewRequest, preview};
pub use progress::{FinishedRun, UnitSummary};
pub use promotion::{
    LastChange, LastChangeSearch, PromotionGates, changes_environment, gate_status,
    require_signable,
};
pub use record::{
    EngineChoice, NamedText, PolicyPackChoice, RehearsalChoice, RunChoices, RunRecord, RunRequest,
    SandboxChoice, SandboxLimits,
};
pub use resume::{ResumeRequest, resume};
pub use rollback::{RestoreTarget, RestoreTargets, UnsettledUnits, restore_targets};
pub use rotate::{RotateRequest, rotate};
pub use seal::{SealedPlan, SealedUnit};
pub use session::{PlannedRun, RunSession};
pub use unit::{
    DeployedUnit, FORGET_CREATES, PreparedUnit, PreviewedUnit, Recovery, RestorePoint, UnitAddress,
    UnitFailure, UnitJob, UnitOperation, UnitReport,
};
