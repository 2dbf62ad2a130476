//! What happens during a run, one value for each thing.

use std::collections::BTreeMap;

use nimbus_core::ComponentName;
use serde::{Deserialize, Serialize};

use super::RunId;
use crate::run::{RollbackTrigger, RunResult, UnitState};

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
        /// What made it undo its work, where it begins to. Without it a run that goes on after an
        /// interruption could not say why it undoes anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<RollbackTrigger>,
        /// The version of the environment that it left, where it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        /// What is worth a warning and is of no unit, where it ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
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
        unit: ComponentName,
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
        /// It waits for a person to look for what it may have created.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open_creates: bool,
    },
    /// A step on one resource.
    Resource {
        at: String,
        unit: ComponentName,
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
        /// What it changes, where that is known when it is planned or begins.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        properties: Vec<ChangedProperty>,
    },
    /// A check of what was deployed: it begins, says something, ends.
    Check {
        at: String,
        check: String,
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
        unit: Option<ComponentName>,
        level: DiagnosticLevel,
        message: String,
    },
}

/// One property that a step changes, as people review it: values are JSON, without any secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedProperty {
    pub path: String,
    /// Absent when it is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Absent when it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Not known before something else was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// It is why the resource has to be replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

/// One unit of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEvent {
    pub unit: ComponentName,
    pub priority: i64,
    /// `run`, `skip`, or `depends`: on whether outputs of a unit before it change.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it should take in the cloud; absent when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
    /// Whether `minutes` is what its last real run took, and not what its template says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
    /// What its last rehearsal took, in the plan of a rehearsal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsed_seconds: Option<u64>,
    /// How many resources it should have; absent when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// Units of the plan that have to be done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ComponentName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Started,
    Resumed,
    /// It takes too long: nothing more starts. Recorded at once, because whoever goes on with the run
    /// has a new clock.
    Late,
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
pub enum DiagnosticLevel {
    Debug,
    Info,
    Warning,
    Error,
}

impl DiagnosticLevel {
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
    /// The run has a new status; what belongs to some of them only is added by whoever knows it.
    pub fn run(at: String, run: RunId, status: RunStatus) -> Self {
        Self::Run {
            at,
            run,
            status,
            result: None,
            message: None,
            trigger: None,
            version: None,
            warnings: Vec::new(),
        }
    }

    /// A unit's new state; what is known of its work is added by whoever did it.
    pub fn unit(at: String, unit: &ComponentName, state: &UnitState) -> Self {
        Self::Unit {
            at,
            unit: unit.to_owned(),
            status: state.word().to_owned(),
            message: state.message().map(str::to_owned),
            reason: None,
            seconds: None,
            changes: BTreeMap::new(),
            attention: matches!(state, UnitState::Stuck { .. }),
            open_creates: false,
        }
    }

    /// Whose it is; `None` for the run's own.
    pub fn unit_name(&self) -> Option<&ComponentName> {
        match self {
            Self::Run { .. } | Self::Plan { .. } | Self::Check { .. } => None,
            Self::Unit { unit, .. } | Self::Resource { unit, .. } => Some(unit),
            Self::Diagnostic { unit, .. } => unit.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ComponentName {
        text.parse().unwrap()
    }

    fn word(event: &RunEvent) -> String {
        let json = serde_json::to_value(event).unwrap();
        json["event"].as_str().unwrap().to_owned()
    }

    /// Records outlive the program that wrote them, and scripts read `--json`.
    #[test]
    fn events_keep_the_words_that_records_and_scripts_know() {
        let at = || "t".to_owned();
        let run = RunEvent::Run {
            at: at(),
            run: RunId(1),
            status: RunStatus::Undoing,
            result: None,
            message: None,
            trigger: Some(RollbackTrigger::ServiceLimit),
            version: None,
            warnings: Vec::new(),
        };
        assert_eq!(
            serde_json::to_string(&run).unwrap(),
            r#"{"event":"run","at":"t","run":"R0001","status":"undoing","trigger":"service_limit"}"#
        );
        let plan = RunEvent::Plan {
            at: at(),
            layers: Vec::new(),
            minutes: 0,
        };
        let check = RunEvent::Check {
            at: at(),
            check: "smoke".to_owned(),
            status: CheckStatus::Output,
            message: None,
            seconds: None,
        };
        let diagnostic = RunEvent::Diagnostic {
            at: at(),
            unit: None,
            level: DiagnosticLevel::Info,
            message: String::new(),
        };
        let unit = RunEvent::unit(at(), &name("a"), &UnitState::Running);
        assert_eq!(
            [&plan, &unit, &check, &diagnostic].map(word),
            ["plan", "unit", "check", "diagnostic"]
        );
        assert_eq!(
            serde_json::to_value(&check).unwrap()["status"],
            CheckStatus::Output.word()
        );
    }

    #[test]
    fn a_record_from_before_there_were_triggers_is_read() {
        let line = r#"{"event":"run","at":"t","run":"R0001","status":"undoing"}"#;
        let event: RunEvent = serde_json::from_str(line).unwrap();
        assert!(matches!(event, RunEvent::Run { trigger: None, .. }));
    }
}
