//! The state of one unit over time: its versions, what differs between two of them, what an interrupted operation left,
//! and what mending it would change.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::detail::PropertyRow;

/// Every version of a unit's state that is kept, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitHistory {
    pub unit: String,
    /// The name of its Pulumi stack.
    pub stack: String,
    pub versions: Vec<UnitStateVersion>,
}

/// A state that a unit had, and the operation that left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitStateVersion {
    /// 1 is the oldest that is kept.
    pub number: u64,
    pub at: String,
    /// `update`, `destroy`, `refresh`, `import`, …
    pub kind: String,
    /// `succeeded`, `failed` or `in-progress`.
    pub result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many resources each operation touched.
    pub changes: BTreeMap<String, i64>,
    pub seconds: i64,
    /// Whether its state can be looked at.
    pub kept: bool,
}

/// What differs between two versions of a unit's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateDifference {
    pub unit: String,
    /// A number, or `current`.
    pub from: String,
    pub to: String,
    pub resources: Vec<ResourceDifference>,
    /// How many are in both, and are the same.
    pub same: u64,
}

/// A resource that is not the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceDifference {
    pub urn: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub name: String,
    /// `create`, `update` or `delete`.
    pub op: String,
    /// Secrets have no value here, only that they changed.
    pub properties: Vec<PropertyRow>,
}

/// What an operation that did not end has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitJournal {
    /// `update`, `destroy`, …
    pub operation: String,
    pub started_at: String,
    /// Acts whose outcome is recorded, in order.
    pub known: Vec<JournalAct>,
    /// Acts that were begun and whose outcome nobody knows.
    pub unknown: Vec<JournalAct>,
    /// Whether the next operation settles it by itself.
    pub settles: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Something that was done to a resource, or begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalAct {
    /// `creating`, `updating`, `deleting`, `reading` or `importing`; absent for what touched no cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `succeeded`, `failed` or `unknown`.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Whether a unit's state is sound, and what mending it would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitHealth {
    pub unit: String,
    pub stack: String,
    /// Names this very state; a repair is refused when it is another one by then.
    pub version: String,
    pub resources: u64,
    /// Rules that the state breaks.
    pub problems: Vec<String>,
    /// What would be mended, without losing anything.
    pub actions: Vec<String>,
    /// What would still be wrong and needs a person.
    pub remaining: Vec<String>,
    /// What the mended copy differs in.
    pub difference: Vec<ResourceDifference>,
    /// Acts in the state that were begun and whose outcome nobody knows.
    pub pending: Vec<JournalAct>,
    /// What an operation that did not end has left beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<UnitJournal>,
    /// Whether somebody is at work on it.
    pub held: bool,
}

/// One step of a repair. Nothing in the cloud changes, and the state before it stays in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairUnit {
    pub environment: String,
    /// That of the simulated cloud.
    #[serde(default)]
    pub rehearsal: bool,
    /// `version` of what was looked at.
    pub version: String,
    pub act: RepairAct,
    /// The resource, for acts on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urn: Option<String>,
    /// Of `forget`: whatever depends on it too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dependents: bool,
    /// Say what it would change, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairAct {
    /// Mend what can be mended without losing anything.
    Mend,
    /// Take a resource out of the state; what it stands for stays in the cloud.
    Forget,
    /// Let a protected resource be deleted.
    Unprotect,
    /// Say of an act of unknown outcome that it left nothing.
    Settle,
    /// Put the journal of an interrupted operation away without applying it.
    DiscardJournal,
}

impl RepairAct {
    pub fn word(self) -> &'static str {
        match self {
            Self::Mend => "mend",
            Self::Forget => "forget",
            Self::Unprotect => "unprotect",
            Self::Settle => "settle",
            Self::DiscardJournal => "discard_journal",
        }
    }
}

/// What a repair changed, or would.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitRepairReport {
    pub unit: String,
    /// Whether it is the state now.
    pub written: bool,
    pub difference: Vec<ResourceDifference>,
    /// Where a journal was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
}
