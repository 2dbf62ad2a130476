//! Objects in memory, with a clock that can be turned by hand: a bucket for tests and rehearsals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{
    ListedObject, Put, Storage, StorageAct, StorageError, StoredObject, Tag, WriteCondition,
};
use crate::clock::LeaseClock;

#[derive(Clone, Debug)]
pub struct MemoryStorage {
    clock: Arc<dyn LeaseClock>,
    content: Arc<Mutex<MemoryContent>>,
}

#[derive(Debug, Default)]
struct MemoryContent {
    objects: BTreeMap<String, StoredObject>,
    writes: u64,
}

impl MemoryStorage {
    pub fn new(clock: Arc<dyn LeaseClock>) -> Self {
        Self {
            clock,
            content: Arc::default(),
        }
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        Ok(self.content.lock().objects.get(key).cloned())
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError> {
        let mut content = self.content.lock();
        let current = content.objects.get(key).map(|object| &object.tag);
        let met = match &expect {
            WriteCondition::Anything => true,
            WriteCondition::Absent => current.is_none(),
            WriteCondition::Unchanged(tag) => current == Some(tag),
        };
        if !met {
            return Ok(Put::Refused);
        }
        content.writes += 1;
        let tag = Tag::Entity(format!("\"{}\"", content.writes));
        let modified = self.clock.now();
        let object = StoredObject {
            bytes,
            tag: tag.clone(),
            modified,
        };
        content.objects.insert(key.to_owned(), object);
        Ok(Put::Stored(tag))
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let Some(object) = self.get(from).await? else {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(StorageError::io(StorageAct::Read, from.as_ref(), source));
        };
        super::overwrite(self, to, object.bytes).await.map(drop)
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.content.lock().objects.remove(key);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let prefix = format!("{folder}/");
        let content = self.content.lock();
        let below = content.objects.range(prefix.clone()..);
        Ok(below
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(key, object)| ListedObject {
                key: key.clone(),
                size: object.bytes.len() as u64,
                modified: object.modified,
            })
            .collect())
    }

    async fn time(&self) -> Result<Timestamp, StorageError> {
        Ok(self.clock.now())
    }
}
