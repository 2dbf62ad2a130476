//! Objects in memory, with a clock that can be turned by hand: a bucket for tests and rehearsals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Act, Expect, Listed, Object, Put, Storage, StoreError, Tag};
use crate::clock::Clock;

#[derive(Clone, Debug)]
pub struct MemoryStorage {
    clock: Arc<dyn Clock>,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    objects: BTreeMap<String, Object>,
    writes: u64,
}

impl MemoryStorage {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            content: Arc::default(),
        }
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        Ok(self.content.lock().objects.get(key).cloned())
    }

    async fn put(&self, key: &str, bytes: Bytes, expect: Expect) -> Result<Put, StoreError> {
        let mut content = self.content.lock();
        let current = content.objects.get(key).map(|object| &object.tag);
        let met = match &expect {
            Expect::Anything => true,
            Expect::Absent => current.is_none(),
            Expect::Unchanged(tag) => current == Some(tag),
        };
        if !met {
            return Ok(Put::Refused);
        }
        content.writes += 1;
        let tag = Tag::Entity(format!("\"{}\"", content.writes));
        let modified = self.clock.now();
        let object = Object {
            bytes,
            tag: tag.clone(),
            modified,
        };
        content.objects.insert(key.to_owned(), object);
        Ok(Put::Stored(tag))
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let Some(object) = self.get(from).await? else {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(StoreError::io(Act::Read, from.as_ref(), source));
        };
        super::overwrite(self, to, object.bytes).await.map(drop)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.content.lock().objects.remove(key);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix = format!("{folder}/");
        let content = self.content.lock();
        let below = content.objects.range(prefix.clone()..);
        Ok(below
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(key, object)| Listed {
                key: key.clone(),
                size: object.bytes.len() as u64,
                modified: object.modified,
            })
            .collect())
    }

    async fn time(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }
}
