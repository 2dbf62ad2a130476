//! What the first and the last lines of a journal say.

use jiff::Timestamp;
use nimbus_core::Epoch;
use nimbus_engine_model::SecretsProvider;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::lease::Owner;
use crate::stack::UpdateKind;
use crate::version::StateVersion;

/// Written by this version of Nimbus; another one is refused rather than guessed at.
pub(crate) const FORMAT: u32 = 1;

/// A journal makes sense on one state only, the one that it started from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JournalHeader {
    pub(crate) format: u32,
    /// `organization/<project>/<stack>`.
    pub(crate) stack: String,
    pub(crate) operation: UpdateKind,
    pub(crate) epoch: Epoch,
    pub(crate) base: StateVersion,
    pub(crate) started: Timestamp,
    pub(crate) owner: Owner,
    /// How secrets in the entries are encrypted. The state that the journal starts from may have
    /// had no secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secrets: Option<JournalSecrets>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JournalSecrets {
    #[serde(rename = "type")]
    kind: String,
    state: serde_json::Value,
}

impl From<SecretsProvider> for JournalSecrets {
    fn from(provider: SecretsProvider) -> Self {
        Self {
            kind: provider.kind,
            state: provider.state,
        }
    }
}

impl From<JournalSecrets> for SecretsProvider {
    fn from(secrets: JournalSecrets) -> Self {
        Self {
            kind: secrets.kind,
            state: secrets.state,
        }
    }
}

/// The checkpoint into which everything before was compacted. The line is durable before the
/// checkpoint is, so a crash between the two is recognised by the checkpoint's digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) checkpoint: Digest,
}

/// Written by a successor in the place of the next line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalSeal {
    pub(crate) epoch: Epoch,
    pub(crate) by: String,
}
