//! What is kept of a run, as values: who asked for what, and what happened since, in order.
//!
//! A record is enough to show a run, to follow it and to go on with it after an interruption. The
//! same events are what `--json` prints. Whoever writes them to a disk or a table does so one by
//! one, so a record that ends in the middle is still a record.

mod event;
mod progress;
mod tally;
mod version;

use std::fmt;
use std::str::FromStr;

use nimbus_core::StackOperation;
use serde::{Deserialize, Serialize};

pub use event::{
    ChangedProperty, CheckStatus, DiagnosticLevel, PlannedEvent, ResourceStatus, RunEvent,
    RunStatus,
};
pub use progress::{RunProgress, progress_of};
pub use tally::{RunTally, TalliedCheck, TalliedUnit};
pub use version::{UnitVersion, VersionRecord};

/// `R0001`: counted within a deployment, so that no clock can put runs out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a run; runs are called R0001, R0002 and so on")]
pub struct InvalidRunId {
    pub text: String,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{:04}", self.0)
    }
}

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, InvalidRunId> {
        let digits = text.strip_prefix(['R', 'r']).unwrap_or(text);
        let number = digits.parse().ok().filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| InvalidRunId {
            text: text.to_owned(),
        })
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a run does with its units, in the words of a run's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAction {
    Preview,
    Deploy,
    Destroy,
    Refresh,
    /// Back to an earlier version of the environment.
    Rollback,
}

impl RunAction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::Deploy => "deploy",
            Self::Destroy => "destroy",
            Self::Refresh => "refresh",
            Self::Rollback => "rollback",
        }
    }
}

impl FromStr for RunAction {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [
            Self::Preview,
            Self::Deploy,
            Self::Destroy,
            Self::Refresh,
            Self::Rollback,
        ];
        all.into_iter().find(|one| one.as_str() == text).ok_or(())
    }
}

impl From<RunAction> for StackOperation {
    fn from(action: RunAction) -> Self {
        match action {
            RunAction::Preview | RunAction::Deploy => Self::Update,
            RunAction::Destroy => Self::Destroy,
            RunAction::Refresh => Self::Refresh,
            RunAction::Rollback => Self::Restore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_as_people_write_them() {
        for text in ["R0012", "r12", "12"] {
            assert_eq!(text.parse(), Ok(RunId(12)), "{text}");
        }
        for text in ["", "R", "R0", "latest", "-3"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
        assert_eq!(RunId(7).to_string(), "R0007");
    }

    #[test]
    fn what_a_run_does_is_read_as_it_is_recorded() {
        for action in [
            RunAction::Preview,
            RunAction::Deploy,
            RunAction::Destroy,
            RunAction::Refresh,
            RunAction::Rollback,
        ] {
            assert_eq!(action.as_str().parse(), Ok(action));
            let recorded = serde_json::to_value(action).unwrap();
            assert_eq!(recorded, action.as_str());
        }
        assert_eq!("restore".parse::<RunAction>(), Err(()));
    }
}
