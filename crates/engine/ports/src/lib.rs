//! The traits through which the engine meets the world: providers, programs, journal, events.
//!
//! The deployment core knows these and nothing behind them: no gRPC, no files, no processes. Each
//! adapter crate implements one of them, and tests implement all of them in memory.

mod analyzer;
mod events;
mod failure_cause;
mod hooks;
mod journal;
mod program;
mod provider;
mod registrar;

pub use analyzer::{
    AnalyzeRequest, Analyzer, AnalyzerError, AnalyzerProvider, AnalyzerResource, EnforcementLevel,
    PolicyDiagnostic, PolicyInfo, Remediation,
};
pub use events::{
    Diagnostic, EngineEvent, EventSink, PolicyViolation, Severity, StepEvent, Summary,
};
pub use failure_cause::FailureCause;
pub use hooks::{HookError, HookRequest, HookRunner};
pub use journal::{Journal, JournalError};
pub use program::{Program, ProgramError};
pub use provider::{
    CallRequest, CallResponse, CheckFailure, CheckRequest, CheckResponse, ConfigureRequest,
    ConstructOptions, ConstructRequest, ConstructResponse, CreateRequest, CreateResponse,
    DeleteRequest, DeploymentContext, DiffKind, DiffRequest, DiffResponse, Diffs, InitFailure,
    InvokeRequest, InvokeResponse, LoadError, PropertyDiff, Provider, ProviderError, ProviderHost,
    ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
pub use registrar::{ReadGoal, RegisterError, RegisterResult, RegisterStatus, Registrar};
