//! Operations on a program: preview, up, destroy, refresh, import.
//!
//! This crate puts the engine's parts together and decides in which order they are used; it has no
//! rules about resources of its own. Reading order: `request` and `report` (what goes in and comes
//! out), `engine` (the interface), `embedded` (the order of things), `runtime` and `processes` (what
//! an operation works with), `workspace` (which stack is meant), `plan` (saved plans), `official`
//! (the same through an installed `pulumi`).

mod assets;
mod broadcast;
mod callback_servers;
mod cancel;
mod embedded;
mod enclosed;
mod engine;
mod factory;
mod given;
mod host;
mod import;
mod isolation;
mod notices;
mod official;
mod plan;
mod processes;
mod project_parts;
mod redact;
mod report;
mod request;
mod required;
mod restore;
mod runtime;
mod scratch;
mod secrets_seen;
mod selection;
mod spans;
mod stack_grant;
mod stacks;
mod state_edits;
mod unknown;
mod unmarked;
mod web;
mod workspace;

pub use broadcast::BroadcastSink;
pub use cancel::{CancelStage, Cancellation};
pub use embedded::EmbeddedEngine;
pub use enclosed::{EnclosedCommand, enclose};
pub use engine::Engine;
pub use factory::{EngineKind, ProviderSource, engine_for};
pub use given::GivenConfig;
/// How programs are kept from everything else.
pub use nimbus_engine_language::translate_if_asked;
pub use nimbus_engine_sandbox::{
    Allowances, Helper, IsolationMode, Probe, ProgramNetwork, SandboxSettings,
};
pub use notices::{describe as describe_interruption, recovered as announce_recovery};
pub use official::OfficialEngine;
pub use plan::{PlanError, SealedPart};
pub use processes::Processes;
pub use report::OperationReport;
pub use request::{
    ImportItem, OperationOptions, OperationRequest, PackagePolicy, PolicyPackRequest,
    ResourceSelection, StackLocation, StateLocation,
};
pub use required::{plugin_folder, refused_provider, required_plugins};
pub use runtime::{OperationRuntime, RuntimeLauncher, RuntimeSetup};
pub use selection::{StackSelection, selected_stack};
pub use stack_grant::StackGrant;
pub use stacks::{NeighbourOutputs, stack_outputs};
pub use state_edits::{PreparedEdit, PreparedMove};
pub use unknown::unknown_outcomes_help;
pub use workspace::{
    BACKEND_VARIABLE, DEFAULT_BACKEND, GrantedBackend, StackAccess, StackWorkspace,
    backend_address, backend_of, find_project, key_services, refuse_secrets_service,
};
