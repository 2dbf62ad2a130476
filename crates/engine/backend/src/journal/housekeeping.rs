//! Keeping the places tidy where journals lie.

use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::Epoch;

use super::frame;
use super::header::JournalSeal;
use super::objects;
use crate::clock::unix_nanos;
use crate::layout::{SCRATCH, StackKeys};
use crate::location::BackendLocation;
use crate::names::StackRef;
use crate::store::{LocalStorage, Storage, StorageError, blocking, overwrite};

/// A temporary file of this age belongs to nobody any more.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes sure that writers of these epochs are refused from now on. Local writers are refused by
/// the lease's record.
pub(crate) async fn seal_abandoned(
    place: &BackendLocation,
    stack: &StackRef,
    epochs: &[Epoch],
    by: &JournalSeal,
) -> Result<(), StorageError> {
    let BackendLocation::Remote(storage) = place else {
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
    place: &BackendLocation,
    stack: &StackRef,
    epoch: Epoch,
) -> Result<(), StorageError> {
    let keys = StackKeys::new(stack);
    match place {
        BackendLocation::Local(storage) => storage.delete(&keys.journal_file()).await,
        BackendLocation::Remote(storage) => {
            let folder = format!("{}/{epoch}", keys.journal_folder());
            let listed = storage.list(&folder).await?;
            let keys: Vec<String> = listed.into_iter().map(|entry| entry.key).collect();
            delete_in_order(storage.as_ref(), &keys).await
        }
    }
}

/// Moves whatever lies where a journal would lie to the evidence, readable or not.
pub(crate) async fn put_away(
    place: &BackendLocation,
    stack: &StackRef,
    now: Timestamp,
) -> Result<Option<String>, StorageError> {
    let keys = StackKeys::new(stack);
    let evidence = format!("{}/aside-{}.jsonl", keys.evidence_folder(), unix_nanos(now));
    match place {
        BackendLocation::Local(storage) => {
            let (from, to) = (keys.journal_file(), evidence.clone());
            if !storage.files().exists(&storage.path(&from)) {
                return Ok(None);
            }
            let storage = storage.clone();
            blocking(move || storage.move_file(&from, &to)).await?;
        }
        BackendLocation::Remote(storage) => {
            let folder = keys.journal_folder();
            let epochs = objects::epochs(storage.as_ref(), &folder).await?;
            if epochs.is_empty() {
                return Ok(None);
            }
            let all = epochs.iter().flat_map(|batches| batches.bytes.clone());
            overwrite(storage.as_ref(), &evidence, all.collect::<Vec<u8>>()).await?;
            for batches in &epochs {
                delete_in_order(storage.as_ref(), &batches.keys).await?;
                objects::mark_archived(storage.as_ref(), &folder, batches.epoch).await?;
            }
        }
    }
    Ok(Some(evidence))
}

/// Clears away what is no journal: a file in which no line was finished, objects that were left
/// when a deletion was interrupted, temporary files of the dead. Only for who holds the lease.
pub(crate) async fn sweep(
    place: &BackendLocation,
    stack: &StackRef,
    now: Timestamp,
) -> Result<(), StorageError> {
    let keys = StackKeys::new(stack);
    match place {
        BackendLocation::Local(storage) => {
            let (storage, keys) = (storage.clone(), keys.clone());
            blocking(move || sweep_files(&storage, &keys, now)).await
        }
        BackendLocation::Remote(storage) => {
            for batches in objects::epochs(storage.as_ref(), &keys.journal_folder()).await? {
                if !batches.starts_at_first() {
                    delete_in_order(storage.as_ref(), &batches.keys).await?;
                }
            }
            Ok(())
        }
    }
}

fn sweep_files(
    storage: &LocalStorage,
    keys: &StackKeys,
    now: Timestamp,
) -> Result<(), StorageError> {
    for entry in storage.list_sync(SCRATCH)? {
        if entry.modified + FORGOTTEN < Timestamp::now() {
            storage.remove(&entry.key)?;
        }
    }
    let key = keys.journal_file();
    let Some(object) = storage.read(&key)? else {
        return Ok(());
    };
    let nothing_whole = frame::read(&object.bytes, 0).is_ok_and(|read| read.frames.is_empty());
    if nothing_whole {
        let evidence = format!("{}/unstarted-{}", keys.evidence_folder(), unix_nanos(now));
        storage.move_file(&key, &evidence)?;
    }
    Ok(())
}

/// From the first on, so that what a crash leaves is recognised by its missing start.
pub(super) async fn delete_in_order(
    storage: &dyn Storage,
    keys: &[String],
) -> Result<(), StorageError> {
    for key in keys {
        storage.delete(key).await?;
    }
    Ok(())
}
