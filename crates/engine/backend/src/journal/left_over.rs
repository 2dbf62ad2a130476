//! Journals that nobody finished: reading them, marking them as compacted, putting them away.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_engine_model::SecretsProvider;

use super::frame::{self, FrameKind};
use super::header::{Closed, FORMAT, JournalHeader};
use super::housekeeping::delete_in_order;
use super::{JournalReadError, closed, objects};
use crate::clock::unix_nanos;
use crate::digest::Digest;
use crate::layout::StackKeys;
use crate::location::BackendLocation;
use crate::names::StackRef;
use crate::store::{LocalStorage, Storage, StorageAct, StorageError, blocking, overwrite};

/// A journal that was found.
#[derive(Debug)]
pub(crate) struct LeftOver {
    /// Where it lies: a file, or a folder of objects.
    pub(crate) key: String,
    pub(crate) header: JournalHeader,
    pub(crate) entries: Vec<String>,
    /// How secrets in the entries are encrypted.
    pub(crate) secrets: Option<SecretsProvider>,
    /// Checkpoints into which somebody began to compact it.
    pub(crate) closed: Vec<Digest>,
    /// The end of a batch that was never acknowledged.
    pub(crate) torn: Option<Vec<u8>>,
    /// Length of what is whole.
    whole: u64,
    /// Number of the next line.
    next: u64,
    source: JournalSource,
}

#[derive(Debug)]
enum JournalSource {
    File(LocalStorage),
    Objects {
        storage: Arc<dyn Storage>,
        folder: String,
        /// Everything but seals.
        keys: Vec<String>,
    },
}

impl LeftOver {
    /// The oldest unfinished journal of a stack. A journal without one whole line comes from a
    /// crash before anything was promised, and counts as none.
    pub(crate) async fn find(
        place: &BackendLocation,
        stack: &StackRef,
    ) -> Result<Option<Self>, JournalReadError> {
        match place {
            BackendLocation::Local(storage) => find_file(storage, stack).await,
            BackendLocation::Remote(storage) => find_objects(storage, stack).await,
        }
    }

    /// Saves the torn end as evidence, then cuts it off. Returns the evidence's key.
    pub(crate) async fn cut_torn_end(
        &self,
        stack: &StackRef,
        now: Timestamp,
    ) -> Result<Option<String>, StorageError> {
        let Some(torn) = &self.torn else {
            return Ok(None);
        };
        let key = self.evidence_key(stack, now, "torn");
        match &self.source {
            JournalSource::File(storage) => {
                overwrite(storage, &key, torn.clone()).await?;
                let (storage, key, whole) = (storage.clone(), self.key.clone(), self.whole);
                blocking(move || cut(&storage, &key, whole)).await?;
            }
            // Objects are never half there, and none is ever changed.
            JournalSource::Objects { storage, .. } => {
                overwrite(storage.as_ref(), &key, torn.clone()).await?;
            }
        }
        Ok(Some(key))
    }

    /// Notes that the checkpoint with this digest, about to be written, holds everything.
    pub(crate) async fn close(&self, checkpoint: Digest) -> Result<(), StorageError> {
        let mut line = String::new();
        frame::write(
            &mut line,
            self.next,
            self.next,
            FrameKind::Closed,
            &closed(checkpoint),
        );
        match &self.source {
            JournalSource::File(storage) => {
                let (storage, key) = (storage.clone(), self.key.clone());
                blocking(move || append(&storage, &key, &line)).await
            }
            JournalSource::Objects {
                storage, folder, ..
            } => {
                let epoch = self.header.epoch;
                objects::put_after_seal(storage.as_ref(), folder, epoch, line).await
            }
        }
    }

    /// Puts the journal away as evidence. Returns where.
    pub(crate) async fn archive(
        &self,
        stack: &StackRef,
        now: Timestamp,
    ) -> Result<String, StorageError> {
        let evidence = self.evidence_key(stack, now, "done");
        match &self.source {
            JournalSource::File(storage) => {
                let (storage, key, to) = (storage.clone(), self.key.clone(), evidence.clone());
                blocking(move || storage.move_file(&key, &to)).await?;
            }
            JournalSource::Objects {
                storage,
                folder,
                keys,
            } => {
                let mut all = Vec::new();
                for key in keys {
                    if let Some(object) = storage.get(key).await? {
                        all.extend_from_slice(&object.bytes);
                    }
                }
                overwrite(storage.as_ref(), &evidence, all).await?;
                delete_in_order(storage.as_ref(), keys).await?;
                objects::mark_archived(storage.as_ref(), folder, self.header.epoch).await?;
            }
        }
        Ok(evidence)
    }

    fn evidence_key(&self, stack: &StackRef, now: Timestamp, what: &str) -> String {
        let folder = StackKeys::new(stack).evidence_folder();
        let epoch = self.header.epoch;
        format!("{folder}/{epoch}-{}.jsonl.{what}", unix_nanos(now))
    }
}

async fn find_file(
    storage: &LocalStorage,
    stack: &StackRef,
) -> Result<Option<LeftOver>, JournalReadError> {
    let key = StackKeys::new(stack).journal_file();
    let Some(object) = storage.get(&key).await? else {
        return Ok(None);
    };
    parse(key, &object.bytes, JournalSource::File(storage.clone()))
}

async fn find_objects(
    storage: &Arc<dyn Storage>,
    stack: &StackRef,
) -> Result<Option<LeftOver>, JournalReadError> {
    let folder = StackKeys::new(stack).journal_folder();
    for batches in objects::epochs(storage.as_ref(), &folder).await? {
        if !batches.starts_at_first() {
            continue;
        }
        let key = format!("{folder}/{}", batches.epoch);
        let (storage, keys) = (Arc::clone(storage), batches.keys);
        return parse(
            key,
            &batches.bytes,
            JournalSource::Objects {
                storage,
                folder,
                keys,
            },
        );
    }
    Ok(None)
}

fn parse(
    key: String,
    bytes: &[u8],
    source: JournalSource,
) -> Result<Option<LeftOver>, JournalReadError> {
    let damaged = |source| JournalReadError::Damaged {
        key: key.clone(),
        source,
    };
    let read = frame::read(bytes, 0).map_err(damaged)?;
    let wrong = |reason: String| JournalReadError::Header {
        key: key.clone(),
        reason,
    };
    let Some((first, rest)) = read.frames.split_first() else {
        return Ok(None);
    };
    if first.kind != FrameKind::Header {
        return Err(wrong("the first line is something else".to_owned()));
    }
    let header: JournalHeader =
        serde_json::from_str(first.text).map_err(|e| wrong(e.to_string()))?;
    if header.format != FORMAT {
        return Err(wrong(format!("its format is {}", header.format)));
    }
    let (mut entries, mut closed) = (Vec::new(), Vec::new());
    let mut secrets = header.secrets.clone();
    for frame in rest {
        match frame.kind {
            FrameKind::Entry => entries.push(frame.text.to_owned()),
            FrameKind::Secrets => {
                secrets = serde_json::from_str(frame.text).map_err(|e| wrong(e.to_string()))?;
            }
            FrameKind::Closed => {
                let line: Closed =
                    serde_json::from_str(frame.text).map_err(|e| wrong(e.to_string()))?;
                closed.push(line.checkpoint);
            }
            FrameKind::Header | FrameKind::Sealed => {
                return Err(wrong(format!(
                    "line {} does not belong there",
                    frame.number
                )));
            }
        }
    }
    let torn = read.torn.map(<[u8]>::to_vec);
    let whole = (bytes.len() - torn.as_ref().map_or(0, Vec::len)) as u64;
    let next = read.frames.len() as u64;
    let secrets = secrets.map(SecretsProvider::from);
    Ok(Some(LeftOver {
        key,
        header,
        entries,
        secrets,
        closed,
        torn,
        whole,
        next,
        source,
    }))
}

fn cut(storage: &LocalStorage, key: &str, length: u64) -> Result<(), StorageError> {
    let path = storage.path(key);
    let cut = |file: File| {
        file.set_len(length)?;
        // tidy-allow(copy): a file that is there is cut, none is put in place
        file.sync_all()
    };
    let opened = storage.files().open_to_change(&path);
    opened
        .and_then(cut)
        .map_err(|source| StorageError::io(StorageAct::Write, &path, source))
}

fn append(storage: &LocalStorage, key: &str, line: &str) -> Result<(), StorageError> {
    let path = storage.path(key);
    let append = |mut file: File| {
        file.seek(SeekFrom::End(0))?;
        file.write_all(line.as_bytes())?;
        file.sync_data()
    };
    let opened = storage.files().open_to_change(&path);
    opened
        .and_then(append)
        .map_err(|source| StorageError::io(StorageAct::Write, &path, source))
}
