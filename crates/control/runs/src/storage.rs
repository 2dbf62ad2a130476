//! State in the database, behind the interface that the engine's backend has for buckets: conditional writes
//! and the database's own clock, so that journals, leases with epochs and histories work as they do there.

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use nimbus_control_store::{HeldRun, StateExpectation, StoreError, TenantTx};
use nimbus_control_vault::FieldPath;
use nimbus_engine_backend::store::{
    ListedObject, Put, Storage, StorageAct, StorageError, StoredObject, Tag, WriteCondition,
};
use uuid::Uuid;

use crate::vault::TenantVault;

/// Objects of one tenant below a key.
#[derive(Clone, Debug)]
pub struct DatabaseStorage {
    vault: TenantVault,
    /// Ends with `/`.
    root: String,
    /// The run whose worker writes: under an epoch that is over, nothing is.
    writer: Option<HeldRun>,
}

impl DatabaseStorage {
    pub fn new(vault: TenantVault, root: &str) -> Self {
        Self {
            vault,
            root: format!("{}/", root.trim_end_matches('/')),
            writer: None,
        }
    }

    /// For the worker of a run, for as long as the run is its own.
    #[must_use]
    pub fn written_by(self, run: HeldRun) -> Self {
        Self {
            writer: Some(run),
            ..self
        }
    }

    /// Writes under a tag that the writer has chosen.
    pub(crate) async fn put_as(
        &self,
        key: &str,
        bytes: &[u8],
        expect: WriteCondition,
        given: Uuid,
    ) -> Result<Put, StorageError> {
        let (place, field) = self.place(key);
        let expected = match expect {
            WriteCondition::Anything => StateExpectation::Anything,
            WriteCondition::Absent => StateExpectation::Absent,
            WriteCondition::Unchanged(Tag::Entity(tag)) => match tag.parse() {
                Ok(tag) => StateExpectation::Tag(tag),
                Err(_) => return Ok(Put::Refused),
            },
            // Nothing here was ever given such a tag.
            WriteCondition::Unchanged(Tag::Digest(_)) => return Ok(Put::Refused),
        };
        let sealed = self.vault.seal(&field, bytes);
        let sealed = sealed.map_err(failed(StorageAct::Write, key))?;
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let put = self.vault.tx(async |tx| {
            self.require_writer(tx).await?;
            tx.state_put_as(&place, &sealed, size, expected, given)
                .await
        });
        Ok(match put.await.map_err(failed(StorageAct::Write, key))? {
            Some(tag) => Put::Stored(Tag::Entity(tag.to_string())),
            None => Put::Refused,
        })
    }

    async fn require_writer(&self, tx: &mut TenantTx) -> Result<(), StoreError> {
        match &self.writer {
            Some(run) => tx.run_require_shared(run).await,
            None => Ok(()),
        }
    }

    fn place(&self, key: &str) -> (String, FieldPath) {
        let place = format!("{}{key}", self.root);
        let field = FieldPath::new("state_objects", &place, "sealed");
        (place, field)
    }
}

/// Every object has one, and nobody else's.
fn failed(act: StorageAct, key: &str) -> impl FnOnce(nimbus_core::Error) -> StorageError {
    let key = key.to_owned();
    move |source| StorageError::Given { act, key, source }
}

#[async_trait]
impl Storage for DatabaseStorage {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        let (place, field) = self.place(key);
        let found = self.vault.tx(async |tx| tx.state_get(&place).await).await;
        let Some(object) = found.map_err(failed(StorageAct::Read, key))? else {
            return Ok(None);
        };
        let bytes = self.vault.open_sealed(&field, &object.sealed);
        Ok(Some(StoredObject {
            bytes: bytes.map_err(failed(StorageAct::Read, key))?.into(),
            tag: Tag::Entity(object.tag.to_string()),
            modified: object.modified_at.into(),
        }))
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError> {
        self.put_as(key, &bytes, expect, Uuid::new_v4()).await
    }

    /// What is sealed for one key does not open under another, so it is sealed again.
    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let Some(object) = self.get(from).await? else {
            return Err(StorageError::Io {
                act: StorageAct::Read,
                path: from.to_owned(),
                source: std::io::ErrorKind::NotFound.into(),
            });
        };
        self.put(to, object.bytes, WriteCondition::Anything)
            .await
            .map(drop)
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let (place, _) = self.place(key);
        let deleted = self.vault.tx(async |tx| {
            self.require_writer(tx).await?;
            tx.state_delete(&place).await
        });
        deleted.await.map_err(failed(StorageAct::Delete, key))
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let prefix = format!("{}{folder}/", self.root);
        let listed = self.vault.tx(async |tx| tx.state_list(&prefix).await).await;
        let listed = listed.map_err(failed(StorageAct::List, folder))?;
        let entry = |object: nimbus_control_store::ListedStateObject| ListedObject {
            key: object.key[self.root.len()..].to_owned(),
            size: object.size.unsigned_abs(),
            modified: object.modified_at.into(),
        };
        Ok(listed.into_iter().map(entry).collect())
    }

    async fn time(&self) -> Result<Timestamp, StorageError> {
        let now = self.vault.tx(async |tx| tx.database_time().await).await;
        Ok(now.map_err(failed(StorageAct::Read, "the time"))?.into())
    }
}
