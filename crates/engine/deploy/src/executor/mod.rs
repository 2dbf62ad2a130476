//! Carries steps out: records them, calls providers and hooks, and tells the audience.
//!
//! Every act of a provider is written down before it happens and again when its outcome is known.
//! What only changes the record (components, providers, sames) is written once. An outcome that
//! nobody knows stays pending; it is never retried and never taken for a failure.

mod create;
mod delete;
mod events;
mod hooks;
mod import;
mod lookup;
mod read;
mod refresh;
mod resource_states;
mod same;
mod secrets;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{
    ActId, JournalChange, OperationKind, PendingOperation, ProviderRef, ResourceState, StateRef,
    StepOp,
};
use nimbus_engine_ports::{
    EngineEvent, EventSink, FailureCause, HookRunner, JournalError, Provider, ProviderError,
};
use parking_lot::Mutex;
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};

use crate::error::DeployError;
use crate::known::RecordedResource;
use crate::recorder::JournalRecorder;
use crate::registry::Registry;
use crate::steps::Step;
use crate::time::Clock;

pub(crate) use hooks::Views;
pub(crate) use refresh::Refreshed;
pub(crate) use resource_states::{AwaitedOutputs, ResourceStates};
pub(crate) use secrets::mark_secret_outputs;

pub(crate) struct Executor {
    pub registry: Registry,
    pub recorder: JournalRecorder,
    pub states: ResourceStates,
    pub events: Arc<dyn EventSink>,
    pub hooks: Arc<dyn HookRunner>,
    pub clock: Arc<dyn Clock>,
    pub rules: ExecutorRules,
    changes: Mutex<BTreeMap<StepOp, usize>>,
    /// Hooks that failed after their step was done.
    late_failures: Mutex<Vec<DeployError>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExecutorRules {
    pub dry_run: bool,
    pub ignore_protect: bool,
    /// The operation is a refresh and nothing else: what it finds are its changes.
    pub refresh_only: bool,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    /// The resource as it is now.
    State(RecordedResource),
    Gone,
    Refreshed(Box<Refreshed>),
    /// Nothing that is kept: a step that only tells, or a create that was left out.
    Told,
}

/// Why a step was not carried out, or not fully.
#[derive(Clone, Debug)]
pub(crate) enum StepError {
    Failed {
        cause: FailureCause,
        message: String,
    },
    /// The object exists but is not as it should be; that is recorded.
    HalfDone {
        message: String,
        state: Arc<ResourceState>,
    },
    /// Nobody knows whether it happened.
    Unknown {
        message: String,
    },
    /// A rule forbids it, and nothing was tried.
    Protected {
        message: String,
    },
    Journal(JournalError),
}

impl StepError {
    /// Nothing was done, for a reason that nobody acts on.
    fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            cause: FailureCause::Other,
            message: message.into(),
        }
    }

    /// A provider did not do it, and nothing is left of the attempt.
    fn refused(error: &ProviderError) -> Self {
        Self::Failed {
            cause: error.cause(),
            message: error.to_string(),
        }
    }

    pub(crate) fn cause(&self) -> FailureCause {
        match self {
            Self::Failed { cause, .. } => *cause,
            Self::HalfDone { .. }
            | Self::Unknown { .. }
            | Self::Protected { .. }
            | Self::Journal(_) => FailureCause::Other,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Failed { message, .. }
            | Self::HalfDone { message, .. }
            | Self::Unknown { message }
            | Self::Protected { message } => message.clone(),
            Self::Journal(error) => error.to_string(),
        }
    }

    /// The word for it in traces, which have no messages.
    fn word(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "failed",
            Self::HalfDone { .. } => "half-made",
            Self::Unknown { .. } => "unknown",
            Self::Protected { .. } => "protected",
            Self::Journal(_) => "not-recorded",
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl From<JournalError> for StepError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// What is known after a provider was asked to change something.
enum ProviderAnswer<T> {
    Done(T),
    /// The object exists; `message` says what is wrong with it.
    HalfDone {
        message: String,
        value: T,
    },
    /// Nothing changed.
    Failed {
        cause: FailureCause,
        message: String,
    },
    Unknown {
        message: String,
    },
}

impl<T> ProviderAnswer<T> {
    fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            cause: FailureCause::Other,
            message: message.into(),
        }
    }

    fn refused(error: &ProviderError) -> Self {
        Self::Failed {
            cause: error.cause(),
            message: error.to_string(),
        }
    }
}

impl Executor {
    pub(crate) fn new(
        registry: Registry,
        recorder: JournalRecorder,
        events: Arc<dyn EventSink>,
        hooks: Arc<dyn HookRunner>,
        clock: Arc<dyn Clock>,
        rules: ExecutorRules,
    ) -> Self {
        Self {
            registry,
            recorder,
            states: ResourceStates::default(),
            events,
            hooks,
            clock,
            rules,
            changes: Mutex::default(),
            late_failures: Mutex::default(),
        }
    }

    /// Carries out one step and tells about it.
    pub(crate) async fn execute(&self, step: &Step) -> Result<Done, StepError> {
        self.announce(step);
        let span = info_span!(
            target: "nimbus_trace",
            "step",
            op = %step.op(),
            urn = %step.urn(),
            outcome = Empty,
            cause = Empty,
        );
        let result = self.perform(step).instrument(span.clone()).await;
        if !span.is_disabled() {
            match &result {
                Ok(_) => span.record("outcome", "ok"),
                Err(error) => span
                    .record("outcome", error.word())
                    .record("cause", error.cause().as_str()),
            };
        }
        match &result {
            Ok(done) => self.tell_done(step, done),
            Err(error) => self.tell_failed(step, error),
        }
        result
    }

    async fn perform(&self, step: &Step) -> Result<Done, StepError> {
        match step {
            Step::Same(step) => self.same(step).await.map(Done::State),
            Step::Create(step) => self.create(step).await.map(Done::State),
            Step::Update(step) => self.update(step).await.map(Done::State),
            Step::Read(step) => self.read(step).await.map(Done::State),
            Step::Import(step) => self.import(step).await.map(Done::State),
            Step::Delete(step) => self.delete(step).await.map(|()| Done::Gone),
            Step::RemovePendingReplace(step) => {
                let change = JournalChange {
                    remove: Some(step.old().key),
                    ..JournalChange::default()
                };
                self.record(None, change).await?;
                Ok(Done::Gone)
            }
            Step::Refresh(step) => self
                .refresh(step)
                .await
                .map(|r| Done::Refreshed(Box::new(r))),
            Step::Replace(_) | Step::SkippedCreate(_) => Ok(Done::Told),
        }
    }

    /// How many steps of each kind ended well, as users count them.
    pub(crate) fn changes(&self) -> BTreeMap<StepOp, usize> {
        self.changes.lock().clone()
    }

    pub(crate) fn take_late_failures(&self) -> Vec<DeployError> {
        std::mem::take(&mut *self.late_failures.lock())
    }

    pub(crate) fn emit(&self, event: EngineEvent) {
        self.events.emit(event);
    }

    /// The provider that serves a resource, with the extension that the resource belongs to.
    async fn provider(&self, resource: &ResourceState) -> Result<Arc<dyn Provider>, StepError> {
        let urn = &resource.urn;
        let failed = |message: String| StepError::failed(message);
        let reference = ProviderRef::parse(&resource.provider)
            .map_err(|error| failed(format!("the provider of {urn} is not valid: {error}")))?;
        let Some(handle) = self.registry.get(&reference) else {
            return Err(failed(format!(
                "the provider {reference} of {urn} is not there"
            )));
        };
        let extended = self.registry.extend(&handle, resource).await;
        extended.map_err(|error| failed(error.to_string()))?;
        Ok(handle.provider)
    }

    async fn begin(
        &self,
        kind: OperationKind,
        resource: &Arc<ResourceState>,
    ) -> Result<ActId, StepError> {
        let operation = PendingOperation {
            kind,
            resource: Arc::clone(resource),
        };
        Ok(self.recorder.begin(operation).await?)
    }

    /// Writes a success, of an act or of a change of the record alone.
    async fn record(&self, act: Option<ActId>, change: JournalChange) -> Result<ActId, StepError> {
        self.states.apply(&change);
        match act {
            Some(act) => {
                self.recorder.success(act, change).await?;
                Ok(act)
            }
            None => Ok(self.recorder.change(change).await?),
        }
    }

    /// Writes what is known after an act: `change` turns its value into a change of the record.
    /// What is half done goes there too, or nobody would ever update or delete it; what is unknown
    /// changes nothing, and its intent stays open.
    async fn conclude<T>(
        &self,
        act: ActId,
        answer: ProviderAnswer<T>,
        change: impl FnOnce(T) -> (JournalChange, Arc<ResourceState>),
    ) -> Result<RecordedResource, StepError> {
        match answer {
            ProviderAnswer::Done(value) => {
                let (change, state) = change(value);
                self.record(Some(act), change).await?;
                Ok(RecordedResource {
                    key: StateRef::New(act),
                    state,
                })
            }
            ProviderAnswer::HalfDone { message, value } => {
                let (change, state) = change(value);
                self.states.apply(&change);
                self.recorder.failure(act, change).await?;
                Err(StepError::HalfDone { message, state })
            }
            ProviderAnswer::Failed { cause, message } => {
                self.recorder.failure(act, JournalChange::default()).await?;
                Err(StepError::Failed { cause, message })
            }
            ProviderAnswer::Unknown { message } => {
                self.recorder.unknown(act, message.clone()).await?;
                Err(StepError::Unknown { message })
            }
        }
    }
}

/// An error after which nothing can have changed, or nobody knows.
fn known_or_unknown<T>(error: ProviderError) -> ProviderAnswer<T> {
    match error {
        ProviderError::Unknown { message } => ProviderAnswer::Unknown { message },
        ProviderError::Failed { .. }
        | ProviderError::InitFailed(_)
        | ProviderError::Unimplemented { .. }
        | ProviderError::Cancelled => ProviderAnswer::refused(&error),
    }
}
