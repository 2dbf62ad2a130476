//! Storage of a backend: named objects in a folder or in a bucket.
//!
//! A write is durable and whole when it returns, and until then the previous content is there:
//! locally a file is written aside, synced and renamed over; remotely it is one request. Nothing
//! is ever moved away before its replacement exists.

mod address;
mod local;
mod memory;
mod remote;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;

pub use address::{GIVEN, S3Address, StorageAddress};
pub use local::LocalStorage;
pub(crate) use local::blocking;
pub use memory::MemoryStorage;
pub use remote::RemoteStorage;

use crate::digest::Digest;

/// Names one version of an object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The content's own digest, where storage keeps no versions.
    Digest(Digest),
    /// The storage's own tag.
    Entity(String),
}

#[derive(Clone, Debug)]
pub struct StoredObject {
    pub bytes: Bytes,
    pub tag: Tag,
    /// By the storage's clock.
    pub modified: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    pub key: String,
    pub size: u64,
    pub modified: Timestamp,
}

/// What a write requires of the object that is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCondition {
    Anything,
    Absent,
    Unchanged(Tag),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    Stored(Tag),
    /// The object is not as expected; nothing was written.
    Refused,
}

/// Keys are `/`-separated and relative to the backend's root.
#[async_trait]
pub trait Storage: Send + Sync + fmt::Debug {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError>;

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError>;

    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError>;

    /// An object that is not there counts as deleted.
    async fn delete(&self, key: &str) -> Result<(), StorageError>;

    /// Every object below a folder, by key.
    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError>;

    /// What the storage's clock says, the same one that [`StoredObject::modified`] is read from.
    async fn time(&self) -> Result<Timestamp, StorageError>;
}

/// Overwrites whatever is there.
pub(crate) async fn overwrite(
    storage: &dyn Storage,
    key: &str,
    bytes: impl Into<Bytes>,
) -> Result<Tag, StorageError> {
    match storage
        .put(key, bytes.into(), WriteCondition::Anything)
        .await?
    {
        Put::Stored(tag) => Ok(tag),
        Put::Refused => Err(StorageError::NotStored {
            key: key.to_owned(),
            detail: "an unconditional write was refused".to_owned(),
        }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageAct {
    Read,
    Write,
    Delete,
    List,
}

impl fmt::Display for StorageAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::List => "list",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("`{address}` does not say where state is kept: {reason}")]
    Address { address: String, reason: String },
    #[error("state in `{scheme}` is not supported")]
    Unsupported { scheme: String },
    #[error("cannot {act} {path}")]
    Io {
        act: StorageAct,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("there is no room left to write {path}")]
    Full {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot {act} {key} in the bucket")]
    Remote {
        act: StorageAct,
        key: String,
        #[source]
        source: object_store::Error,
    },
    #[error("cannot {act} {key} in the server's storage")]
    Given {
        act: StorageAct,
        key: String,
        #[source]
        source: nimbus_core::Error,
    },
    #[error("{key} was not stored as it was sent: {detail}")]
    NotStored { key: String, detail: String },
    #[error(
        "the bucket does not honour conditional writes, without which two writers cannot be kept apart: {reason}"
    )]
    Unconditional { reason: String },
}

impl StorageError {
    pub(crate) fn io(act: StorageAct, path: &std::path::Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.display().to_string();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full { path, source },
            _ => Self::Io { act, path, source },
        }
    }
}
