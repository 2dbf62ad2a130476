//! The whole recorded state of one stack.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::hex::sha256_hex;
use crate::package::Parameterization;
use crate::resource::{PendingOperation, ResourceState};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Snapshot {
    pub manifest: SnapshotManifest,
    /// How secrets in the file are encrypted; `None` when there was no need yet.
    pub secrets_provider: Option<SecretsProvider>,
    /// Dependencies before dependants.
    pub resources: Vec<Arc<ResourceState>>,
    /// Acts whose outcome is unknown.
    pub pending_operations: Vec<PendingOperation>,
    /// The extensions that resources belong to, by [`Parameterization::reference`].
    pub extensions: BTreeMap<String, Arc<Parameterization>>,
    /// Left by an engine that had to write a state which it knew to be broken.
    pub integrity_error: Option<IntegrityRecord>,
    /// Parts of the file that this version does not interpret; kept as they were.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Snapshot {
    /// Forgets extensions that nothing belongs to.
    pub fn drop_unused_extensions(&mut self) {
        let pending = self.pending_operations.iter().map(|one| &one.resource);
        let used: BTreeSet<&str> = self
            .resources
            .iter()
            .chain(pending)
            .filter_map(|resource| resource.extension_ref.as_deref())
            .collect();
        self.extensions
            .retain(|reference, _| used.contains(reference.as_str()));
    }
}

/// Who wrote the state and when.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotManifest {
    pub time: Timestamp,
    /// The clock of the writer's place. The official engine writes its local time; the offset is
    /// kept so that a file which is only copied does not change.
    pub offset: Offset,
    pub magic: String,
    pub version: String,
    pub plugins: Vec<PluginRecord>,
    /// Fields of the file that this version does not know; kept as they were.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Default for SnapshotManifest {
    fn default() -> Self {
        Self {
            time: Timestamp::default(),
            offset: Offset::UTC,
            magic: String::new(),
            version: String::new(),
            plugins: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }
}

impl SnapshotManifest {
    /// What an engine of `version` writes at `time`.
    pub fn new(version: impl Into<String>, time: Timestamp) -> Self {
        let version = version.into();
        Self {
            time,
            magic: Self::magic_of(&version),
            version,
            ..Self::default()
        }
    }

    /// The checksum that a manifest of this version must carry: hex sha256 of the version, and
    /// nothing when there is no version.
    pub fn magic_of(version: &str) -> String {
        if version.is_empty() {
            return String::new();
        }
        sha256_hex(version.as_bytes())
    }
}

/// What the official engine notes about a state that it found to be broken while writing it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IntegrityRecord {
    pub version: String,
    pub command: String,
    pub error: String,
    pub env_vars: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRecord {
    pub name: String,
    pub path: String,
    pub kind: String,
    pub version: String,
}

/// A secrets manager's kind and its own, opaque state.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretsProvider {
    pub kind: String,
    pub state: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_magic_is_the_hash_of_the_version_and_empty_without_one() {
        assert_eq!(
            SnapshotManifest::new("v3.0.0", Timestamp::UNIX_EPOCH).magic,
            "7b869d3b91a5a44252a7ad88e94dc424bf208a19f711cc73676ae04ca1494233"
        );
        assert_eq!(SnapshotManifest::new("", Timestamp::UNIX_EPOCH).magic, "");
    }
}
