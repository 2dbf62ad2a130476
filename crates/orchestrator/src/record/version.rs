//! Versions of an environment: what it consisted of after each run that changed it.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, UnitName};
use serde::{Deserialize, Serialize};

use super::{RunAction, RunId};
use crate::fingerprint::Fingerprint;

/// An environment as one run left it. Numbers start at 1 and are never used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    pub version: u32,
    pub run: RunId,
    pub kind: RunAction,
    pub at: String,
    pub user: String,
    pub units: BTreeMap<ComponentName, UnitVersion>,
}

/// One unit in a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitVersion {
    #[serde(rename = "stack")]
    pub unit: UnitName,
    /// Number in the stack's own history, whose state is what a rollback returns to.
    pub state: usize,
    /// Digest of the files of its program.
    pub program: String,
    /// Digest of everything that decided what it became, configuration included.
    pub fingerprint: String,
    /// The same by input, so that what differs from it can be named; empty in older records.
    #[serde(default, skip_serializing_if = "Fingerprint::is_empty")]
    pub inputs: Fingerprint,
    pub needs: BTreeSet<ComponentName>,
}
