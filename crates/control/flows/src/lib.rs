//! The control plane's durable workflows, written once for every runtime.
//!
//! Rows of runs stay the queue of engine operations, and the workers of servers take them, with epochs (ADR 0260). A
//! workflow is what is around such a row: it waits for people, for the row's end and for the clock, and it carries neither
//! state nor logs. Everything that it does outside is a step whose body calls a use case through a port.
//!
//! Reading order: `port`, `platform`, `schedules`, `approval`, `run`, `zone`. No runtime and no engine is named here.

mod approval;
mod platform;
mod port;
mod run;
mod schedules;
mod tenant_schedule;
mod zone;

use std::sync::Arc;

use nimbus_workflows::Definitions;

pub use approval::{
    APPROVAL_DECISION, ApprovalChainWorkflow, ApprovalFlowInput, GET_APPROVAL_STATUS,
    approval_flow_of,
};
pub use platform::{
    AuditArchiveWorkflow, NotificationDigestWorkflow, RetentionWorkflow, StateExportWorkflow,
    TokenCleanupWorkflow,
};
pub use port::{
    ApprovalStanding, BootstrapStanding, ExportedStates, PlatformWork, RemovedRecords, RunProgress,
    RunRows, RunStanding, ScheduledRun, ScheduledRunInput,
};
pub use run::{GET_DEPLOYMENT_PROGRESS, RUN_CHANGED, RunFlowInput, RunFlowOutput, new_run_flow};
pub use schedules::{ensure_platform_schedules, platform_schedules};
pub use tenant_schedule::{ScheduledRunWorkflow, ensure_tenant_schedules, tenant_schedule};
pub use zone::{BootstrapInput, LandingZoneBootstrapWorkflow};

/// Every workflow and step, with bodies that call these ports.
pub fn definitions(platform: &Arc<dyn PlatformWork>, runs: &Arc<dyn RunRows>) -> Definitions {
    let mut definitions = Definitions::default();
    platform::define(&mut definitions, platform);
    tenant_schedule::define(&mut definitions, platform);
    approval::define(&mut definitions, runs);
    run::define(&mut definitions, runs);
    zone::define(&mut definitions, runs);
    definitions
}
