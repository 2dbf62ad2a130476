//! What is around workflows: start, signal, cancel, look, schedule. Every runtime has one, and it works
//! from any process that reaches the runtime's storage, whether that process executes workflows or not.

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use serde_json::Value;

use crate::durable::{FlowDef, encode};
use crate::fail::{Fail, FlowFailure};
use crate::id::FlowId;
use crate::schedule::{FlowSchedule, ScheduleView};

/// A workflow to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFlow {
    pub id: FlowId,
    pub flow: String,
    pub input: Value,
}

impl NewFlow {
    pub fn of<F: FlowDef>(id: FlowId, input: &F::In) -> Result<Self, Fail> {
        Ok(Self {
            id,
            flow: F::NAME.to_owned(),
            input: encode(F::NAME, input)?,
        })
    }
}

/// What a start did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    New,
    /// The same workflow with the same input had been started before; it runs or ended.
    Before,
}

/// Where a workflow is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// It is waiting to begin, runs, or waits for something.
    Running,
    /// It cannot go on with the code that runs: changed code, unknown names. It goes on with the right
    /// code; nothing is lost.
    Stuck(String),
    Succeeded(Value),
    Failed(FlowFailure),
    /// It failed, and something could not be undone.
    NeedsAttention(FlowFailure),
    Cancelled,
}

impl FlowState {
    /// How a workflow's end looks from outside.
    pub fn ended(outcome: Result<Value, Fail>) -> Self {
        match outcome {
            Ok(value) => Self::Succeeded(value),
            Err(Fail::App(failure)) if failure.attention.is_empty() => Self::Failed(failure),
            Err(Fail::App(failure)) => Self::NeedsAttention(failure),
            Err(Fail::Cancelled) => Self::Cancelled,
            Err(Fail::Stop(reason)) => Self::Stuck(reason),
        }
    }

    pub fn is_ended(&self) -> bool {
        match self {
            Self::Running | Self::Stuck(_) => false,
            Self::Succeeded(_) | Self::Failed(_) | Self::NeedsAttention(_) | Self::Cancelled => {
                true
            }
        }
    }
}

/// A workflow as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    pub id: FlowId,
    pub flow: String,
    pub state: FlowState,
    pub created: Timestamp,
    pub ended: Option<Timestamp>,
}

/// Which workflows to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Names that begin so.
    pub id_prefix: Option<String>,
    /// Workflows of one definition.
    pub flow: Option<String>,
    /// Only those that have ended, or only those that have not.
    pub ended: Option<bool>,
}

/// A piece of a list, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowPage {
    pub flows: Vec<FlowRecord>,
    /// Where the next piece begins; nothing at the end.
    pub next: Option<String>,
}

/// The way to workflows from outside of them.
#[async_trait]
pub trait Control: Send + Sync {
    /// Starts a workflow once: a second start of the same name with the same input finds the first.
    /// With another workflow or input it is refused.
    async fn start(&self, new: NewFlow) -> Result<Started, Error>;

    /// Sends a signal. With a `key`, sending the same again changes nothing.
    async fn signal(
        &self,
        id: &FlowId,
        topic: &str,
        payload: Value,
        key: Option<&str>,
    ) -> Result<(), Error>;

    /// Asks a workflow and its children to end. They undo first, so the end comes later; nothing
    /// happens to one that has ended.
    async fn cancel(&self, id: &FlowId) -> Result<(), Error>;

    async fn status(&self, id: &FlowId) -> Result<FlowRecord, Error>;

    /// What a workflow last said to a query, also after its end; nothing when it said nothing to this one.
    async fn query(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error>;

    /// Waits until a workflow has ended and returns how. One that is stuck is waited for.
    async fn result(&self, id: &FlowId) -> Result<FlowState, Error>;

    /// `limit` at most, beginning where an earlier page said.
    async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error>;

    /// Creates a schedule or changes it, and pauses or resumes it.
    async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error>;

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Error>;

    /// Nothing happens to what it started.
    async fn delete_schedule(&self, name: &str) -> Result<(), Error>;
}

impl FlowRecord {
    /// There is no workflow of this name.
    pub fn unknown(id: &FlowId) -> Error {
        Error::new(
            ErrorCode::WORKFLOW_UNKNOWN,
            format!("there is no workflow {id}"),
        )
    }

    /// Somebody else has the name.
    pub fn taken(id: &FlowId) -> Error {
        Error::new(
            ErrorCode::WORKFLOW_CONFLICT,
            format!("{id} was started before with another workflow or input"),
        )
        .with_help("choose another name, or the same input")
    }
}
