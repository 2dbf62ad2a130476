//! Keeping the places tidy where journals lie.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::Epoch;

use super::frame;
use super::header::Sealed;
use super::objects;
use crate::clock::unix_nanos;
use crate::layout::{SCRATCH, StackKeys};
use crate::names::StackRef;
use crate::place::Place;
use crate::store::{
    Act, LocalStorage, Storage, StoreError, blocking, create_folders, overwrite, sync_folder,
};

/// A temporary file of this age belongs to nobody any more.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);

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
            let (from, to) = (storage.path(&keys.journal_file()), storage.path(&evidence));
            if !from.exists() {
                return Ok(None);
            }
            blocking(move || move_file(&from, &to)).await?;
        }
        Place::Remote(storage) => {
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
    place: &Place,
    stack: &StackRef,
    now: Timestamp,
) -> Result<(), StoreError> {
    let keys = StackKeys::new(stack);
    match place {
        Place::Local(storage) => {
            let (storage, keys) = (storage.clone(), keys.clone());
            blocking(move || sweep_files(&storage, &keys, now)).await
        }
        Place::Remote(storage) => {
            for batches in objects::epochs(storage.as_ref(), &keys.journal_folder()).await? {
                if !batches.starts_at_first() {
                    delete_in_order(storage.as_ref(), &batches.keys).await?;
                }
            }
            Ok(())
        }
    }
}

fn sweep_files(storage: &LocalStorage, keys: &StackKeys, now: Timestamp) -> Result<(), StoreError> {
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
        move_file(&storage.path(&key), &storage.path(&evidence))?;
    }
    Ok(())
}

/// From the first on, so that what a crash leaves is recognised by its missing start.
pub(super) async fn delete_in_order(
    storage: &dyn Storage,
    keys: &[String],
) -> Result<(), StoreError> {
    for key in keys {
        storage.delete(key).await?;
    }
    Ok(())
}

pub(super) fn move_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let folders = [to, from].map(|path| path.parent().unwrap_or(path));
    create_folders(folders[0])?;
    std::fs::rename(from, to).map_err(|source| StoreError::io(Act::Write, to, source))?;
    folders.into_iter().try_for_each(sync_folder)
}
