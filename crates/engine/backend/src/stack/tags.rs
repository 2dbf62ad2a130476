//! Tags of a stack, in the official file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Stack;
use crate::error::BackendError;
use crate::store::overwrite;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct TagsFile {
    version: u32,
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
}

impl Stack {
    pub async fn tags(&self) -> Result<BTreeMap<String, String>, BackendError> {
        let key = self.keys.tags();
        let Some(object) = self.backend.storage().get(&key).await? else {
            return Ok(BTreeMap::new());
        };
        let wrong = |reason: String| BackendError::Layout {
            key: key.clone(),
            reason,
        };
        let file: TagsFile =
            serde_json::from_slice(&object.bytes).map_err(|error| wrong(error.to_string()))?;
        if file.version != VERSION {
            return Err(wrong(format!(
                "its version is {}, and {VERSION} is known",
                file.version
            )));
        }
        Ok(file.tags.unwrap_or_default())
    }

    /// Replaces all tags. A stack without tags has no file.
    pub async fn set_tags(&self, tags: &BTreeMap<String, String>) -> Result<(), BackendError> {
        let (storage, key) = (self.backend.storage(), self.keys.tags());
        if tags.is_empty() {
            return Ok(storage.delete(&key).await?);
        }
        let file = TagsFile {
            version: VERSION,
            tags: Some(tags.clone()),
        };
        let bytes = serde_json::to_vec(&file).expect("tags are text");
        overwrite(storage, &key, bytes).await?;
        Ok(())
    }
}
