//! What the API's requests and answers look like, for the server and for its clients.
//!
//! Types and nothing else: no I/O, no decision, no other crate of ours. A field that is added has a default, so that an
//! older client reads a newer server's answers.

mod deployment;
mod detail;
mod event;
mod frame;
mod run;
mod state;
mod workspace;

pub use deployment::{
    Deployment, Environment, EnvironmentVersion, Environments, ManifestText, NewDeployment,
    StackStanding, StartRun,
};
pub use detail::{
    FailureCause, PropertyRow, ResourceCounts, RunCheck, RunDetail, RunLogLine, RunLogPage,
    RunTotals, RunUnit, UnitResource, UnitResources,
};
pub use event::{NumberedEvent, RunEvents, event_kind};
pub use frame::{CloseCode, ProgressFrame};
pub use run::{Run, RunLinks, RunProblem};
pub use state::{DeploymentOutputs, DeploymentState, ResourceView, StateExport, UnitStateView};
pub use workspace::{
    WorkspaceChange, WorkspaceContents, WorkspaceEntry, WorkspaceFiles, WorkspaceTag,
};
