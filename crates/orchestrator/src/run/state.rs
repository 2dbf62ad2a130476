//! The words of a run: where units stand, how their work ends, and what a failure leads to.

use std::fmt;
use std::str::FromStr;

use nimbus_core::ComponentName;
use serde::{Deserialize, Serialize};

use crate::graph::UnitGraph;

/// What a failed run does once nothing is running any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Roll back when one of the triggers fired, otherwise hold.
    Automatic,
    /// Return every unit that this run changed to its last good state, in reverse order.
    Rollback,
    /// Stop and leave everything as it is.
    Hold,
    /// Also run what does not depend on the failure, then stop.
    Continue,
}

/// What makes a run undo its work unless it was told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollbackTrigger {
    /// A resource could not be made.
    Creation,
    /// The cloud allows no more of something.
    ServiceLimit,
    /// What is recorded contradicts itself or could not be saved.
    StateCorruption,
    /// A step was begun, and nobody knows what became of it. What is recorded says so, and is not damaged.
    UnknownOutcome,
    /// The run takes more than twice as long as planned.
    Overtime,
}

impl fmt::Display for RollbackTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creation => "a resource could not be created",
            Self::ServiceLimit => "a limit of the cloud was reached",
            Self::StateCorruption => "the recorded state is damaged",
            Self::UnknownOutcome => "nobody knows what became of a step, whose answer was lost",
            Self::Overtime => "the run took more than twice its estimate",
        })
    }
}

/// Which way the graph is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDirection {
    /// What is needed comes first: deploy, preview, refresh.
    Forward,
    /// What needs comes first: destroy.
    Reverse,
}

impl RunDirection {
    /// Places of the units that must be done before the one at `place`.
    pub(super) fn before(self, graph: &UnitGraph, place: usize) -> &[usize] {
        match self {
            Self::Forward => graph.needs_at(place),
            Self::Reverse => graph.needed_by_at(place),
        }
    }

    pub(super) fn after(self, graph: &UnitGraph, place: usize) -> &[usize] {
        match self {
            Self::Forward => graph.needed_by_at(place),
            Self::Reverse => graph.needs_at(place),
        }
    }
}

/// Where a unit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitState {
    Waiting,
    Running,
    Succeeded,
    Skipped,
    Failed {
        message: String,
    },
    /// Never started: something it needs failed, or the run was stopped.
    NotStarted {
        because: String,
    },
    RollingBack,
    RolledBack,
    /// Its last good state could not be restored.
    Stuck {
        message: String,
    },
}

impl UnitState {
    /// Whether units that need it may start.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }

    /// The word for it in records and in JSON. A unit that could not be rolled back has failed;
    /// that a person must look is said by the run.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Skipped => "skipped",
            Self::Failed { .. } | Self::Stuck { .. } => "failed",
            Self::NotStarted { .. } => "not_started",
            Self::RollingBack => "rolling_back",
            Self::RolledBack => "rolled_back",
        }
    }

    /// What went wrong, or why it was not started.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message } | Self::Stuck { message } => Some(message),
            Self::NotStarted { because } => Some(because),
            Self::Waiting
            | Self::Running
            | Self::Succeeded
            | Self::Skipped
            | Self::RollingBack
            | Self::RolledBack => None,
        }
    }
}

/// How a unit's work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitOutcome {
    Succeeded,
    /// Nothing had changed, so nothing was done.
    Skipped,
    Failed {
        message: String,
        /// Whether this is a failure that undoes the run by itself.
        trigger: Option<RollbackTrigger>,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    Succeeded,
    Failed,
    /// Somebody stopped it; it can go on.
    Interrupted,
    RolledBack,
    /// Something could not be undone; a person must look.
    NeedsAttention,
}

impl RunResult {
    pub fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::RolledBack => "rolled_back",
            Self::NeedsAttention => "needs_attention",
        }
    }
}

impl FromStr for RunResult {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [
            Self::Succeeded,
            Self::Failed,
            Self::Interrupted,
            Self::RolledBack,
            Self::NeedsAttention,
        ];
        all.into_iter().find(|one| one.word() == text).ok_or(())
    }
}

/// What an earlier attempt at the same run left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// Units in the order in which they last changed.
    pub units: Vec<(ComponentName, UnitState)>,
    /// Whether it had begun to undo its work.
    pub undoing: bool,
    /// What made it do so, if it was one of the triggers.
    pub trigger: Option<RollbackTrigger>,
}
