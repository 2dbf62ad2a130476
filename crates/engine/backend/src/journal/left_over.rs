//! Journals that nobody finished: reading them, marking them as compacted, putting them away.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::Epoch;
use nimbus_engine_model::SecretsProvider;

use super::frame::{self, Kind};
use super::header::{Closed, FORMAT, Header, Sealed};
use super::{JournalReadError, closed, objects};
use crate::clock::unix_nanos;
use crate::digest::Digest;
use crate::layout::StackKeys;
use crate::names::StackRef;
use crate::place::Place;
use crate::store::{
    Act, LocalStorage, Storage, StoreError, blocking, create_folders, overwrite, sync_folder,
};

/// A journal that was found.
#[derive(Debug)]
pub(crate) struct LeftOver {
    /// Where it lies: a file, or a folder of objects.
    pub(crate) key: String,
    pub(crate) header: Header,
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
    source: Source,
}

#[derive(Debug)]
enum Source {
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
    /// crash before anything was promised, and counts as none; [`sweep`] puts it away.
    pub(crate) async fn find(
        place: &Place,
        stack: &StackRef,
    ) -> Result<Option<Self>, JournalReadError> {
        match place {
            Place::Local(storage) => find_file(storage, stack).await,
            Place::Remote(storage) => find_objects(storage, stack).await,
        }
    }

    /// Saves the torn end as evidence, then cuts it off. Returns the evidence's key.
    pub(crate) async fn cut_torn_end(
        &self,
        stack: &StackRef,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let Some(torn) = &self.torn else {
            return Ok(None);
        };
        let key = self.evidence_key(stack, now, "torn");
        match &self.source {
            Source::File(storage) => {
                overwrite(storage, &key, torn.clone()).await?;
                let (path, whole) = (storage.path(&self.key), self.whole);
                blocking(move || cut(&path, whole)).await?;
            }
            // Objects are never half there, and none is ever changed.
            Source::Objects { storage, .. } => {
                overwrite(storage.as_ref(), &key, torn.clone()).await?;
            }
        }
        Ok(Some(key))
    }

    /// Notes that the checkpoint with this digest, about to be written, holds everything.
    pub(crate) async fn close(&self, checkpoint: Digest) -> Result<(), StoreError> {
        let mut line = String::new();
        frame::write(
            &mut line,
            self.next,
            self.next,
            Kind::Closed,
            &closed(checkpoint),
        );
        match &self.source {
            Source::File(storage) => {
                let path = storage.path(&self.key);
                blocking(move || append(&path, &line)).await
            }
            Source::Objects {
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
    ) -> Result<String, StoreError> {
        let evidence = self.evidence_key(stack, now, "done");
        match &self.source {
            Source::File(storage) => {
                let (from, to) = (storage.path(&self.key), storage.path(&evidence));
                blocking(move || move_file(&from, &to)).await?;
            }
            Source::Objects { storage, keys, .. } => {
                let mut all = Vec::new();
                for key in keys {
                    if let Some(object) = storage.get(key).await? {
                        all.extend_from_slice(&object.bytes);
                    }
                }
                overwrite(storage.as_ref(), &evidence, all).await?;
                delete_in_order(storage.as_ref(), keys).await?;
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

/// Makes sure that writers of these epochs are refused from now on. Local writers are refused by
/// the lease's record.
pub(crate) async fn seal_abandoned(
    place: &Place,
    stack: &StackRef,
    epochs: &[Epoch],
    by: &Sealed,
) -> Result<(), StoreError> {
    let Place::Remote(storage) = place else {
        return Ok(());
    };
    let folder = StackKeys::new(stack).journal_folder();
    for epoch in epochs {
        objects::put_seal(storage.as_ref(), &folder, *epoch, by).await?;
    }
    Ok(())
}

/// Deletes the journal of an epoch whose checkpoint is durable.
pub(crate) async fn discard(
    place: &Place,
    stack: &StackRef,
    epoch: Epoch,
) -> Result<(), StoreError> {
    let keys = StackKeys::new(stack);
    match place {
        Place::Local(storage) => storage.delete(&keys.journal_file()).await,
        Place::Remote(storage) => {
            let folder = format!("{}/{epoch}", keys.journal_folder());
            let listed = storage.list(&folder).await?;
            let keys: Vec<String> = listed.into_iter().map(|entry| entry.key).collect();
            delete_in_order(storage.as_ref(), &keys).await
        }
    }
}

/// Moves whatever lies where a journal would lie to the evidence, readable or not.
pub(crate) async fn put_away(
    place: &Place,
    stack: &StackRef,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let keys = StackKeys::new(stack);
    let evidence = format!("{}/aside-{}.jsonl", keys.evidence_folder(), unix_nanos(now));
    match place {
        Place::Local(storage) => {
            let key = keys.journal_file();
            if storage.get(&key).await?.is_none() {
                return Ok(None);
            }
            let (from, to) = (storage.path(&key), storage.path(&evidence));
            blocking(move || move_file(&from, &to)).await?;
        }
        Place::Remote(storage) => {
            let epochs = epochs(storage.as_ref(), &keys.journal_folder()).await?;
            if epochs.is_empty() {
                return Ok(None);
            }
            let all: Vec<u8> = epochs
                .iter()
                .flat_map(|batches| batches.bytes.clone())
                .collect();
            overwrite(storage.as_ref(), &evidence, all).await?;
            for batches in &epochs {
                delete_in_order(storage.as_ref(), &batches.keys).await?;
            }
        }
    }
    Ok(Some(evidence))
}

/// Clears away what is no journal: a file in which no line was finished, and objects that were
/// left when a deletion was interrupted. Only for who holds the lease.
pub(crate) async fn sweep(
    place: &Place,
    stack: &StackRef,
    now: Timestamp,
) -> Result<(), StoreError> {
    let keys = StackKeys::new(stack);
    match place {
        Place::Local(storage) => {
            let key = keys.journal_file();
            let Some(object) = storage.get(&key).await? else {
                return Ok(());
            };
            let nothing_whole =
                frame::read(&object.bytes, 0).is_ok_and(|read| read.frames.is_empty());
            if nothing_whole {
                let evidence = format!("{}/unstarted-{}", keys.evidence_folder(), unix_nanos(now));
                let (from, to) = (storage.path(&key), storage.path(&evidence));
                blocking(move || move_file(&from, &to)).await?;
            }
            Ok(())
        }
        Place::Remote(storage) => {
            for batches in epochs(storage.as_ref(), &keys.journal_folder()).await? {
                if !batches.starts_at_first() {
                    delete_in_order(storage.as_ref(), &batches.keys).await?;
                }
            }
            Ok(())
        }
    }
}

/// From the first on, so that what a crash leaves is recognised by its missing start.
async fn delete_in_order(storage: &dyn Storage, keys: &[String]) -> Result<(), StoreError> {
    for key in keys {
        storage.delete(key).await?;
    }
    Ok(())
}

/// The objects of one epoch, seals left out.
struct Batches {
    epoch: Epoch,
    first: u64,
    keys: Vec<String>,
    bytes: Vec<u8>,
}

impl Batches {
    fn starts_at_first(&self) -> bool {
        self.first == 1
    }
}

async fn epochs(storage: &dyn Storage, folder: &str) -> Result<Vec<Batches>, StoreError> {
    let mut numbered: Vec<_> = storage
        .list(folder)
        .await?
        .into_iter()
        .filter_map(|entry| Some((objects::parse_key(folder, &entry.key)?, entry.key)))
        .collect();
    numbered.sort();
    let mut epochs: Vec<Batches> = Vec::new();
    for ((epoch, number), key) in numbered {
        let Some(object) = storage.get(&key).await? else {
            continue;
        };
        if objects::seal(&object.bytes).is_some() {
            continue;
        }
        if epochs.last().is_none_or(|batches| batches.epoch != epoch) {
            epochs.push(Batches {
                epoch,
                first: number,
                keys: Vec::new(),
                bytes: Vec::new(),
            });
        }
        if let Some(batches) = epochs.last_mut() {
            batches.bytes.extend_from_slice(&object.bytes);
            batches.keys.push(key);
        }
    }
    Ok(epochs)
}

async fn find_file(
    storage: &LocalStorage,
    stack: &StackRef,
) -> Result<Option<LeftOver>, JournalReadError> {
    let key = StackKeys::new(stack).journal_file();
    let Some(object) = storage.get(&key).await? else {
        return Ok(None);
    };
    parse(key, &object.bytes, Source::File(storage.clone()))
}

async fn find_objects(
    storage: &Arc<dyn Storage>,
    stack: &StackRef,
) -> Result<Option<LeftOver>, JournalReadError> {
    let folder = StackKeys::new(stack).journal_folder();
    for batches in epochs(storage.as_ref(), &folder).await? {
        if !batches.starts_at_first() {
            continue;
        }
        let key = format!("{folder}/{}", batches.epoch);
        let (storage, keys) = (Arc::clone(storage), batches.keys);
        return parse(
            key,
            &batches.bytes,
            Source::Objects {
                storage,
                folder,
                keys,
            },
        );
    }
    Ok(None)
}

fn parse(key: String, bytes: &[u8], source: Source) -> Result<Option<LeftOver>, JournalReadError> {
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
    if first.kind != Kind::Header {
        return Err(wrong("the first line is something else".to_owned()));
    }
    let header: Header = serde_json::from_str(first.text).map_err(|e| wrong(e.to_string()))?;
    if header.format != FORMAT {
        return Err(wrong(format!("its format is {}", header.format)));
    }
    let (mut entries, mut closed) = (Vec::new(), Vec::new());
    let mut secrets = header.secrets.clone();
    for frame in rest {
        match frame.kind {
            Kind::Entry => entries.push(frame.text.to_owned()),
            Kind::Secrets => {
                secrets = serde_json::from_str(frame.text).map_err(|e| wrong(e.to_string()))?;
            }
            Kind::Closed => {
                let line: Closed =
                    serde_json::from_str(frame.text).map_err(|e| wrong(e.to_string()))?;
                closed.push(line.checkpoint);
            }
            Kind::Header | Kind::Sealed => {
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

fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| {
            file.set_len(length)?;
            file.sync_all()
        })
        .map_err(|source| StoreError::io(Act::Write, path, source))
}

fn append(path: &Path, line: &str) -> Result<(), StoreError> {
    OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_data()
        })
        .map_err(|source| StoreError::io(Act::Write, path, source))
}

fn move_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let error = |source| StoreError::io(Act::Write, to, source);
    for path in [to, from] {
        create_folders(path.parent().unwrap_or(path))?;
    }
    std::fs::rename(from, to).map_err(error)?;
    for path in [to, from] {
        sync_folder(path.parent().unwrap_or(path))?;
    }
    Ok(())
}
