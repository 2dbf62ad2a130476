//! The kinds of step that a deployment is made of, with their public names.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOp {
    Same,
    Create,
    Update,
    Delete,
    Replace,
    CreateReplacement,
    DeleteReplaced,
    Read,
    ReadReplacement,
    Refresh,
    #[serde(rename = "discard")]
    ReadDiscard,
    DiscardReplaced,
    RemovePendingReplace,
    Import,
    ImportReplacement,
}

impl StepOp {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::CreateReplacement => "create-replacement",
            Self::DeleteReplaced => "delete-replaced",
            Self::Read => "read",
            Self::ReadReplacement => "read-replacement",
            Self::Refresh => "refresh",
            Self::ReadDiscard => "discard",
            Self::DiscardReplaced => "discard-replaced",
            Self::RemovePendingReplace => "remove-pending-replace",
            Self::Import => "import",
            Self::ImportReplacement => "import-replacement",
        }
    }
}

impl fmt::Display for StepOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
