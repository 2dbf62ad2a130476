//! What the engine tells its audience while it works.
//!
//! These are the engine's own values; the public JSON form is made from them at the edge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::{PropertyMap, ResourceState, StepOp, TypeToken, Urn};

use crate::analyzer::EnforcementLevel;
use crate::failure_cause::FailureCause;
use crate::provider::PropertyDiff;

/// Receives events in order. It must not block: the engine does not wait for its audience.
pub trait EventSink: Send + Sync {
    fn emit(&self, event: EngineEvent);
}

#[derive(Clone, Debug)]
pub enum EngineEvent {
    /// The operation starts, with the stack's configuration (secrets replaced).
    Prelude {
        config: BTreeMap<String, String>,
    },
    /// A step is about to run.
    ResourcePre {
        step: StepEvent,
        planning: bool,
    },
    /// A step ended well.
    ResourceOutputs {
        step: StepEvent,
        planning: bool,
    },
    /// A step failed.
    ResourceFailed {
        step: StepEvent,
        planning: bool,
        cause: FailureCause,
    },
    Diagnostic(Diagnostic),
    PolicyViolation(PolicyViolation),
    /// A policy changed a resource's inputs.
    PolicyRemediation {
        urn: Urn,
        policy: String,
        pack: String,
        pack_version: String,
        before: PropertyMap,
        after: PropertyMap,
    },
    PolicyLoaded {
        pack: String,
        version: String,
    },
    /// The operation ended.
    Summary(Summary),
    Cancelled,
}

#[derive(Clone, Debug)]
pub struct StepEvent {
    pub op: StepOp,
    pub urn: Urn,
    pub type_: TypeToken,
    pub provider: String,
    pub old: Option<Arc<ResourceState>>,
    pub new: Option<Arc<ResourceState>>,
    /// Keys that force a replacement.
    pub replace_keys: Vec<String>,
    pub changed_keys: Vec<String>,
    pub detailed_diff: Option<BTreeMap<String, PropertyDiff>>,
    /// Part of the logical plan shown to users; a replacement's physical halves are not.
    pub logical: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub urn: Option<Urn>,
    pub message: String,
    /// Lines of one stream belong together; zero when they do not.
    pub stream_id: i32,
    /// Progress text that need not be kept.
    pub ephemeral: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Debug,
    Info,
    /// What the engine itself does that takes a while, such as installing packages: whoever waits is told.
    Notice,
    Warning,
    Error,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PolicyViolation {
    pub urn: Option<Urn>,
    pub message: String,
    pub policy: String,
    pub pack: String,
    pub pack_version: String,
    pub enforcement: EnforcementLevel,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub is_preview: bool,
    pub duration: Duration,
    pub changes: BTreeMap<StepOp, usize>,
    /// Something happened whose outcome was not recorded.
    pub maybe_corrupt: bool,
    pub succeeded: bool,
    pub policy_packs: BTreeMap<String, String>,
}
