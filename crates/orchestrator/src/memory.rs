//! What is remembered of a unit between runs: its fingerprint, how its last run ended, and values
//! that were made up once and must stay the same.
//!
//! Secret ones are kept as ciphertext; whoever uses them brings the key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fingerprint::{Fingerprint, LastRun};

/// The remembered things of one unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitMemory {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RememberedRun>,
    /// What calculations made, by name and parameters; secrets encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RememberedRun {
    pub succeeded: bool,
    #[serde(default)]
    pub drifted: bool,
    /// Seconds that it took; plans learn from it.
    pub seconds: u64,
    pub resources: u64,
    pub fingerprint: Fingerprint,
}

impl UnitMemory {
    pub fn last(&self) -> Option<LastRun> {
        self.last_run.as_ref().map(|run| LastRun {
            succeeded: run.succeeded,
            drifted: run.drifted,
            fingerprint: run.fingerprint.clone(),
        })
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.inputs()
                .map(|(input, digest)| (input.to_string(), digest)),
        )
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let inputs = BTreeMap::<String, String>::deserialize(deserializer)?;
        Fingerprint::from_parts(inputs).map_err(serde::de::Error::custom)
    }
}
