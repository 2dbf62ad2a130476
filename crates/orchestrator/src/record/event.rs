//! What happens during a run, one value for each thing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RunId;
use crate::graph::Name;
use crate::run::{RunResult, UnitState};

/// One line of a run's record and of `--json`. Times are RFC 3339 with milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run itself: it starts, goes on, begins to undo its work, ends.
    Run {
        at: String,
        run: RunId,
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<RunResult>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// What is going to happen, before anything does.
    Plan {
        at: String,
        /// Units by layer; a layer needs only those before it.
        layers: Vec<Vec<PlannedEvent>>,
        minutes: u64,
    },
    /// A unit has a new status: `running`, `rolling_back`, or one of the five that it can end with.
    Unit {
        at: String,
        unit: Name,
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Why it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        changes: BTreeMap<String, u64>,
        /// It could not be rolled back: a person must look.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        attention: bool,
    },
    /// A step on one resource.
    Resource {
        at: String,
        unit: Name,
        status: ResourceStatus,
        op: String,
        #[serde(rename = "type")]
        type_: String,
        name: String,
        urn: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<f64>,
    },
    /// A check of what was deployed: it begins, says something, ends.
    Check {
        at: String,
        check: Name,
        status: CheckStatus,
        /// A line of its output, or why it failed or did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
    },
    /// Something that a program, a provider or the engine has to say.
    Diagnostic {
        at: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<Name>,
        level: Level,
        message: String,
    },
}

/// One unit of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEvent {
    pub unit: Name,
    pub priority: i64,
    /// `run`, `skip`, or `depends`: on whether outputs of a unit before it change.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub minutes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Started,
    Resumed,
    Undoing,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Running,
    /// A line of its output.
    Output,
    Passed,
    Failed,
    /// It failed, and the manifest says that this is no reason to fail the run.
    Warned,
    /// It does not run in a rehearsal.
    Skipped,
}

impl CheckStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Output => "output",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Warned => "warned",
            Self::Skipped => "skipped",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceStatus {
    /// A preview would do it.
    Planned,
    Started,
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

impl Level {
    /// As it stands in log lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl RunEvent {
    /// A unit's new state; what is known of its work is added by whoever did it.
    pub fn unit(at: String, unit: &str, state: &UnitState) -> Self {
        Self::Unit {
            at,
            unit: unit.to_owned(),
            status: state.word().to_owned(),
            message: state.message().map(str::to_owned),
            reason: None,
            seconds: None,
            changes: BTreeMap::new(),
            attention: matches!(state, UnitState::Stuck { .. }),
        }
    }

    /// Whose it is; `None` for the run's own.
    pub fn unit_name(&self) -> Option<&str> {
        match self {
            Self::Run { .. } | Self::Plan { .. } | Self::Check { .. } => None,
            Self::Unit { unit, .. } | Self::Resource { unit, .. } => Some(unit),
            Self::Diagnostic { unit, .. } => unit.as_deref(),
        }
    }
}
