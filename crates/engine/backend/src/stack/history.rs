//! The updates of a stack, each with the state that it left.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use nimbus_core::StackOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Stack, Stored};
use crate::clock::unix_nanos;
use crate::error::BackendError;
use crate::layout::Compression;
use crate::store::{Put, WriteCondition};

/// What is recorded of an update. Names and order of fields are the official ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateInfo {
    pub kind: UpdateKind,
    /// Seconds since 1970.
    pub start_time: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub environment: Option<BTreeMap<String, String>>,
    /// Secrets encrypted, as in the stack's settings.
    #[serde(default)]
    pub config: Value,
    /// Always 0 in self-managed backends; versions are counted by position.
    #[serde(default)]
    pub version: i64,
    pub result: UpdateResult,
    pub end_time: i64,
    /// How many resources each operation touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_changes: Option<BTreeMap<String, i64>>,
}

/// What an update was, in the words of Pulumi's history files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateKind {
    Update,
    Preview,
    Refresh,
    Rename,
    Destroy,
    /// A whole state was imported.
    Import,
    /// Single resources were imported.
    ResourceImport,
    #[serde(untagged)]
    Other(String),
}

/// Pulumi has no word for going back to a recorded state: it is an update like any other.
impl From<StackOperation> for UpdateKind {
    fn from(operation: StackOperation) -> Self {
        match operation {
            StackOperation::Update | StackOperation::Restore => Self::Update,
            StackOperation::Destroy => Self::Destroy,
            StackOperation::Refresh => Self::Refresh,
            StackOperation::Import => Self::ResourceImport,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateResult {
    InProgress,
    Succeeded,
    Failed,
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for UpdateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Update => "update",
            Self::Preview => "preview",
            Self::Refresh => "refresh",
            Self::Rename => "rename",
            Self::Destroy => "destroy",
            Self::Import => "import",
            Self::ResourceImport => "resource-import",
            Self::Other(other) => other,
        })
    }
}

/// A state that the stack had, and the update that left it.
#[derive(Clone, Debug, PartialEq)]
pub struct StackVersion {
    /// 1 is the oldest that is kept.
    pub number: usize,
    pub at: Timestamp,
    pub update: UpdateInfo,
    /// Where the state is; an update whose state was lost has none.
    pub(crate) checkpoint: Option<String>,
}

impl StackVersion {
    /// Whether its state can still be read.
    pub fn is_kept(&self) -> bool {
        self.checkpoint.is_some()
    }
}

const HISTORY: &str = ".history.json";
const CHECKPOINT: &str = ".checkpoint.json";

impl Stack {
    /// Every update that is kept, oldest first.
    pub async fn history(&self) -> Result<Vec<StackVersion>, BackendError> {
        let storage = self.backend.storage();
        let listed = storage.list(&self.keys.history_folder()).await?;
        let mut bases: BTreeMap<i128, Files> = BTreeMap::new();
        for entry in listed {
            if let Some((nanos, kind)) = self.parse_history_key(&entry.key) {
                let files = bases.entry(nanos).or_default();
                match kind {
                    FileKind::Update => files.update = Some(entry.key),
                    FileKind::Checkpoint => files.checkpoint = Some(entry.key),
                }
            }
        }
        let mut versions = Vec::new();
        for (nanos, files) in bases {
            let Some(key) = files.update else { continue };
            let Some(update) = self.read_update(&key).await? else {
                continue;
            };
            versions.push(StackVersion {
                number: versions.len() + 1,
                at: Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::UNIX_EPOCH),
                update,
                checkpoint: files.checkpoint,
            });
        }
        Ok(versions)
    }

    /// The checkpoint that an update left, as it is stored, uncompressed.
    pub async fn version_bytes(&self, version: &StackVersion) -> Result<Vec<u8>, BackendError> {
        let lost = || BackendError::History {
            key: format!("version {} of {}", version.number, self.stack),
            reason: "its state is not kept".to_owned(),
        };
        let key = version.checkpoint.clone().ok_or_else(lost)?;
        let object = self.backend.storage().get(&key).await?.ok_or_else(lost)?;
        let (_, compression) = Compression::split(&key);
        let bytes = super::checkpoint::unpack(&object.bytes, compression);
        bytes
            .map(|bytes| bytes.to_vec())
            .map_err(|source| BackendError::Packed { key, source })
    }

    /// Records an update and the state that it left, and backs that state up.
    pub(crate) async fn record(
        &self,
        update: &UpdateInfo,
        stored: &Stored,
    ) -> Result<(), BackendError> {
        let storage = self.backend.storage();
        let now = self.now();
        let bytes = serde_json::to_vec(update).expect("a record has only text keys");
        let mut nanos = unix_nanos(now);
        // Two updates in one tick of a coarse clock.
        loop {
            let key = format!("{}{HISTORY}", self.keys.history_base(nanos));
            let put = storage
                .put(&key, bytes.clone().into(), WriteCondition::Absent)
                .await?;
            if matches!(put, Put::Stored(_)) {
                break;
            }
            nanos += 1;
        }
        let extension = stored.compression.extension();
        let kept = format!("{}{CHECKPOINT}{extension}", self.keys.history_base(nanos));
        storage.copy(&stored.key, &kept).await?;
        if self.backend.options().backups {
            let backup = self.keys.backup(now, stored.compression);
            storage.copy(&stored.key, &backup).await?;
        }
        Ok(())
    }

    /// Whether the last entry of the history is about this very state.
    pub(crate) async fn is_recorded(&self, stored: &Stored) -> Result<bool, BackendError> {
        let history = self.history().await?;
        let Some(last) = history.last().filter(|last| last.checkpoint.is_some()) else {
            return Ok(false);
        };
        Ok(self.version_bytes(last).await? == stored.bytes)
    }

    async fn read_update(&self, key: &str) -> Result<Option<UpdateInfo>, BackendError> {
        let Some(object) = self.backend.storage().get(key).await? else {
            return Ok(None);
        };
        let (_, compression) = Compression::split(key);
        let bytes = super::checkpoint::unpack(&object.bytes, compression).map_err(|source| {
            BackendError::Packed {
                key: key.to_owned(),
                source,
            }
        })?;
        let update = serde_json::from_slice(&bytes).map_err(|error| BackendError::History {
            key: key.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Some(update))
    }

    fn parse_history_key(&self, key: &str) -> Option<(i128, FileKind)> {
        let file = key
            .strip_prefix(&self.keys.history_folder())?
            .strip_prefix('/')?;
        let (plain, _) = Compression::split(file);
        let (base, kind) = match (plain.strip_suffix(HISTORY), plain.strip_suffix(CHECKPOINT)) {
            (Some(base), _) => (base, FileKind::Update),
            (None, Some(base)) => (base, FileKind::Checkpoint),
            (None, None) => return None,
        };
        let nanos = base.strip_prefix(self.stack.stack())?.strip_prefix('-')?;
        Some((nanos.parse().ok()?, kind))
    }
}

#[derive(Default)]
struct Files {
    update: Option<String>,
    checkpoint: Option<String>,
}

enum FileKind {
    Update,
    Checkpoint,
}
