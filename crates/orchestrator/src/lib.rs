//! Many Pulumi programs as one deployment, decided without touching anything.
//!
//! Manifests and templates are read from documents, placeholders are parsed and resolved through a
//! port, the graph, the plan and the fingerprints are computed, and a run is a state machine that is
//! told what happened and says what to do next. Nothing here names a file system, a network or a
//! process: whoever carries a run out is in `crates/runs`, files are in `crates/workspace`.

pub mod calculate;
mod config_files;
pub mod edit;
mod fingerprint;
pub mod gate;
mod graph;
mod identity;
pub mod init_file;
mod manifest;
mod memory;
pub mod naming;
mod needed_values;
mod network;
mod origin;
mod parameters;
mod placeholder;
mod plan;
mod promotion;
mod record;
mod render;
mod resolve;
mod run;
pub mod schema;
mod shared_values;
mod spot;
mod template;
pub mod validate;
mod variables;
pub mod yaml;

pub use config_files::{
    CONFIG_FOLDER, ConfigFiles, ConfigOverrides, MergedConfigs, WRITTEN_FILE, WrittenConfigs,
    config_file, configs, merge_configs, written_configs,
};
pub use fingerprint::{
    DigestKey, Fingerprint, FingerprintInput, InputChange, InputDifference, LastOutcome, LastRun,
    RunReason, UnknownInput, must_run,
};
pub use graph::{GraphError, GraphUnit, UnitGraph};
pub use identity::{PulumiIdentity, PulumiStack, is_name};
pub use manifest::{
    CheckCommand, ComponentEntry, EnvironmentTarget, FILE_NAME, Manifest, ManifestMetadata,
    referenced,
};
pub use memory::{RememberedRun, UnitMemory};
pub use needed_values::{NeededInput, NeededValue, needed_inputs};
pub use network::NetworkAccess;
pub use origin::{PlacedValue, ValueLayer, placed_values};
pub use parameters::{RepeatedParameter, own_parameter, whole_key};
pub use placeholder::{Placeholder, PlaceholderError, PlaceholderSource, TemplateText, TextPart};
pub use plan::{PlanSubject, PlanText, PlannedUnit, RunPlan, UnitDecision};
pub use promotion::sort_by_usual_promotion;
pub use record::{
    ChangedProperty, CheckStatus, DiagnosticLevel, InvalidRunId, PlannedEvent, ResourceStatus,
    RunAction, RunEvent, RunId, RunProgress, RunStatus, RunTally, TalliedCheck, TalliedUnit,
    UnitVersion, VersionRecord, progress_of,
};
pub use render::{InitAnswers, RenderedDeployment, TemplateLibrary, account_variable, render};
pub use resolve::{
    LookupValue, ResolveError, ResolvedUnitConfig, UnitConfigValue, ValueLookup, ValueLookupError,
    resolve, secret_name,
};
pub use run::{
    EarlierAttempt, OnFailure, RollbackTrigger, Run, RunCommand, RunDirection, RunResult,
    UnitOutcome, UnitState,
};
pub use shared_values::SharedValues;
pub use spot::ManifestSpot;
pub use template::{
    ComponentChoice, ComponentTemplate, Estimate, ManifestTemplate, OutputContract,
    VariableDeclaration, read_defaults,
};
pub use variables::{TemplateVariables, UnknownVariable, variables_in};
