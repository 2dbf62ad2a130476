//! What is kept of a run, as values: who asked for what, and what happened since, in order.
//!
//! A record is enough to show a run, to follow it and to go on with it after an interruption. The
//! same events are what `--json` prints. Whoever writes them to a disk or a table does so one by
//! one, so a record that ends in the middle is still a record.

mod earlier;
mod event;
mod version;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::graph::Name;
use crate::run::OnFailure;

pub use earlier::{Standing, standing};
pub use event::{CheckStatus, Level, PlannedEvent, ResourceStatus, RunEvent, RunStatus};
pub use version::{UnitVersion, VersionRecord};

/// `R0001`: counted within a deployment, so that no clock can put runs out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a run; runs are called R0001, R0002 and so on")]
pub struct NotARun {
    pub text: String,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{:04}", self.0)
    }
}

impl FromStr for RunId {
    type Err = NotARun;

    fn from_str(text: &str) -> Result<Self, NotARun> {
        let digits = text.strip_prefix(['R', 'r']).unwrap_or(text);
        let number = digits.parse().ok().filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| NotARun {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Deploy,
    Destroy,
    Rollback,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Destroy => "destroy",
            Self::Rollback => "rollback",
        }
    }
}

/// What was asked for. It does not change once the run has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RunRecord {
    pub run: RunId,
    pub kind: RunKind,
    pub deployment: String,
    pub environment: Environment,
    pub rehearsal: bool,
    /// RFC 3339, seconds.
    pub started: String,
    pub user: String,
    pub host: String,
    pub options: RunChoices,
    /// Digest of the manifest that the run was planned from.
    pub manifest: String,
    /// Digest over every unit's decision.
    pub plan: String,
    /// `YYYYMMDD-HHMMSS`, part of the names of its log files.
    pub stamp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RunChoices {
    pub force: bool,
    pub parallel: usize,
    pub on_failure: OnFailure,
    /// Only these units; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Vec<Name>>,
    /// Where state is kept, when not in the deployment's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The version that a rollback returns to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<u32>,
}

impl Serialize for Environment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
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
}
