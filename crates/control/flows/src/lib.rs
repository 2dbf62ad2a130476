//! The control plane's durable workflows, written once for every runtime.
//!
//! Rows of runs stay the queue of engine operations, and the workers of servers take them, with epochs (ADR 0260). A
//! workflow is what is around such a row: it waits for people, for the row's end and for the clock, and it carries neither
//! state nor logs. Everything that it does outside is a step whose body calls a use case through a port.
//!
//! Reading order: `port`, `platform`, `schedules`, `approval`, `run`. No runtime and no engine is named here.

mod approval;
mod platform;
mod port;
mod run;
mod schedules;

use std::sync::Arc;

use nimbus_workflows::Definitions;

pub use approval::{APPROVAL_DECISION, ApprovalChainWorkflow, ApprovalFlowInput, approval_flow_of};
pub use platform::{
    AuditArchiveWorkflow, NotificationDigestWorkflow, RetentionWorkflow, StateExportWorkflow,
    TokenCleanupWorkflow,
};
pub use port::{
    ApprovalStanding, ExportedStates, PlatformWork, RemovedRecords, RunRows, RunStanding,
};
pub use run::{RUN_CHANGED, RunFlowInput, RunFlowOutput, new_run_flow};
pub use schedules::{ensure_platform_schedules, platform_schedules};

/// Every workflow and step, with bodies that call these ports.
pub fn definitions(platform: &Arc<dyn PlatformWork>, runs: &Arc<dyn RunRows>) -> Definitions {
    let mut definitions = Definitions::default();
    platform::define(&mut definitions, platform);
    approval::define(&mut definitions, runs);
    run::define(&mut definitions, runs);
    definitions
}
