//! What is remembered of a unit between runs: its fingerprint, how its last run ended, and values
//! that were made up once and must stay the same.
//!
//! Secret ones are kept as ciphertext; whoever uses them brings the key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fingerprint::{Fingerprint, LastOutcome, LastRun};
use crate::record::RunId;

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

/// How a unit was last touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "RememberedRunForm", into = "RememberedRunForm")]
pub struct RememberedRun {
    pub outcome: LastOutcome,
    pub drifted: bool,
    /// Seconds that its last deploy took; plans learn from it.
    pub seconds: u64,
    pub resources: u64,
    pub fingerprint: Fingerprint,
    /// Which state it left, so that any other is noticed; `None` in records of versions before this
    /// was kept.
    pub state: Option<String>,
    /// Under which name that state is found; `None` in records of versions before this was kept.
    pub stack: Option<String>,
    /// Which run touched it; `None` in records of versions before this was kept.
    pub run: Option<RunId>,
    /// What was remembered before that run first touched it: what a rollback of the run leads to.
    pub before: Option<Box<RememberedRun>>,
}

/// As it is written. `succeeded` is what earlier versions read: for them a unit that was rolled
/// back is one to run again, which is safe.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RememberedRunForm {
    succeeded: bool,
    #[serde(default)]
    drifted: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rolled_back: bool,
    seconds: u64,
    resources: u64,
    fingerprint: Fingerprint,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<RememberedRun>>,
}

impl From<RememberedRunForm> for RememberedRun {
    fn from(form: RememberedRunForm) -> Self {
        let outcome = match (form.succeeded, form.rolled_back) {
            (true, _) => LastOutcome::Succeeded,
            (false, true) => LastOutcome::RolledBack,
            (false, false) => LastOutcome::Unfinished,
        };
        Self {
            outcome,
            drifted: form.drifted,
            seconds: form.seconds,
            resources: form.resources,
            fingerprint: form.fingerprint,
            state: form.state,
            stack: form.stack,
            run: form.run,
            before: form.before,
        }
    }
}

impl From<RememberedRun> for RememberedRunForm {
    fn from(run: RememberedRun) -> Self {
        Self {
            succeeded: run.outcome == LastOutcome::Succeeded,
            drifted: run.drifted,
            rolled_back: run.outcome == LastOutcome::RolledBack,
            seconds: run.seconds,
            resources: run.resources,
            fingerprint: run.fingerprint,
            state: run.state,
            stack: run.stack,
            run: run.run,
            before: run.before,
        }
    }
}

impl UnitMemory {
    /// The word for where the unit stands.
    pub fn standing(&self) -> &'static str {
        match &self.last_run {
            None => "not_deployed",
            Some(run) if run.drifted => "drifted",
            Some(run) => match run.outcome {
                LastOutcome::Succeeded => "deployed",
                LastOutcome::RolledBack => "rolled_back",
                LastOutcome::Unfinished => "incomplete",
            },
        }
    }

    /// What counts of its last run, where `state` is what is recorded of the unit now.
    pub fn last(&self, state: Option<&str>) -> Option<LastRun> {
        self.last_run.as_ref().map(|run| LastRun {
            outcome: run.outcome,
            drifted: run.drifted,
            state_moved: run.state.as_deref().is_some_and(|left| state != Some(left)),
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
