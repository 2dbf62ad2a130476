//! A journal as numbered objects in a bucket, one per batch, none ever overwritten.
//!
//! A writer of epoch 7 puts `7/0000000001.jsonl`, `7/0000000002.jsonl` and so on, each on the
//! condition that it does not exist. A successor seals epoch 7 by putting the next number itself.
//! From then on the former writer is refused by the bucket, whatever it believes about its lease,
//! and everything that it was promised lies before the seal. The seal stays for ever.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::Epoch;
use nimbus_engine_ports::JournalError;

use super::frame::{self, FrameKind};
use super::group::Sink;
use super::header::JournalSeal;
use super::{lease_problem, store_problem};
use crate::lease::Lease;
use crate::store::{Put, Storage, StorageError, WriteCondition, overwrite};

pub(super) struct ObjectSink {
    storage: Arc<dyn Storage>,
    folder: String,
    lease: Lease,
    next: u64,
    broken: Option<JournalError>,
}

impl ObjectSink {
    pub(super) fn new(storage: Arc<dyn Storage>, folder: String, lease: Lease) -> Self {
        Self {
            storage,
            folder,
            lease,
            next: 1,
            broken: None,
        }
    }

    async fn put(&self, lines: String) -> Result<(), JournalError> {
        self.lease.check().await.map_err(lease_problem)?;
        let key = object_key(&self.folder, self.lease.epoch(), self.next);
        let put = self
            .storage
            .put(&key, lines.into(), WriteCondition::Absent)
            .await;
        match put.map_err(store_problem)? {
            Put::Stored(_) => Ok(()),
            Put::Refused => {
                let object = self.storage.get(&key).await.map_err(store_problem)?;
                let sealed = object.and_then(|object| seal(&object.bytes));
                let holder = sealed.map_or_else(
                    || "somebody who writes under the same epoch".to_owned(),
                    |sealed| sealed.by,
                );
                Err(JournalError::LeaseLost { holder })
            }
        }
    }
}

#[async_trait]
impl Sink for ObjectSink {
    async fn commit(&mut self, lines: String) -> Result<(), JournalError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let result = self.put(lines).await;
        match &result {
            Ok(()) => self.next += 1,
            // A request that failed may have arrived all the same; what lies under this number
            // is then uncertain.
            Err(error) => self.broken = Some(error.clone()),
        }
        result
    }

    /// The end of a journal is what keeps a successor and a slow predecessor apart.
    fn closes_when_empty(&self) -> bool {
        true
    }
}

/// The objects of one epoch, seals left out.
pub(super) struct Batches {
    pub(super) epoch: Epoch,
    /// Number of the first that is there.
    first: u64,
    pub(super) keys: Vec<String>,
    pub(super) bytes: Vec<u8>,
}

impl Batches {
    /// Deletion goes from the first to the last; what has no first is a remainder.
    pub(super) fn starts_at_first(&self) -> bool {
        self.first == 1
    }
}

/// What is left of journals, oldest epoch first. Epochs of which only a seal is left are marked,
/// so that they cost nothing however many there are.
pub(super) async fn epochs(
    storage: &dyn Storage,
    folder: &str,
) -> Result<Vec<Batches>, StorageError> {
    let listed = storage.list(folder).await?;
    let archived = |epoch: Epoch| {
        let mark = archived_key(folder, epoch);
        listed.iter().any(|entry| entry.key == mark)
    };
    let mut numbered: Vec<_> = listed
        .iter()
        .filter_map(|entry| Some((parse_key(folder, &entry.key)?, entry.key.clone())))
        .filter(|((epoch, _), _)| !archived(*epoch))
        .collect();
    numbered.sort();
    let mut epochs: Vec<Batches> = Vec::new();
    for ((epoch, number), key) in numbered {
        let Some(object) = storage.get(&key).await? else {
            continue;
        };
        if seal(&object.bytes).is_some() {
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

/// Notes that nothing but a seal is left of an epoch.
pub(super) async fn mark_archived(
    storage: &dyn Storage,
    folder: &str,
    epoch: Epoch,
) -> Result<(), StorageError> {
    overwrite(storage, &archived_key(folder, epoch), "").await?;
    Ok(())
}

fn archived_key(folder: &str, epoch: Epoch) -> String {
    format!("{folder}/{epoch}/archived")
}

/// Puts an end to an epoch's journal.
pub(super) async fn put_seal(
    storage: &dyn Storage,
    folder: &str,
    epoch: Epoch,
    by: &JournalSeal,
) -> Result<(), StorageError> {
    let mut number = last_number(storage, folder, epoch).await? + 1;
    let text = serde_json::to_string(by).expect("a seal has only text keys");
    let mut line = String::new();
    frame::write(&mut line, 0, 0, FrameKind::Sealed, &text);
    loop {
        let key = object_key(folder, epoch, number);
        match storage
            .put(&key, line.clone().into(), WriteCondition::Absent)
            .await?
        {
            Put::Stored(_) => return Ok(()),
            // The writer was quicker, or another successor was.
            Put::Refused => match storage.get(&key).await? {
                Some(object) if seal(&object.bytes).is_some() => return Ok(()),
                _ => number += 1,
            },
        }
    }
}

/// Appends a batch behind a seal, as only who holds the lease may.
pub(super) async fn put_after_seal(
    storage: &dyn Storage,
    folder: &str,
    epoch: Epoch,
    line: String,
) -> Result<(), StorageError> {
    let number = last_number(storage, folder, epoch).await? + 1;
    let key = object_key(folder, epoch, number);
    match storage
        .put(&key, line.into(), WriteCondition::Absent)
        .await?
    {
        Put::Stored(_) => Ok(()),
        Put::Refused => Err(StorageError::NotStored {
            key,
            detail: "somebody else has written it".to_owned(),
        }),
    }
}

pub(super) fn seal(bytes: &[u8]) -> Option<JournalSeal> {
    let read = frame::read(bytes, 0).ok()?;
    match read.frames[..] {
        [frame] if frame.kind == FrameKind::Sealed => serde_json::from_str(frame.text).ok(),
        _ => None,
    }
}

/// Epoch and number of a journal object.
fn parse_key(folder: &str, key: &str) -> Option<(Epoch, u64)> {
    let rest = key.strip_prefix(folder)?.strip_prefix('/')?;
    let (epoch, file) = rest.split_once('/')?;
    let number = file.strip_suffix(".jsonl")?.parse().ok()?;
    Some((Epoch::from_stored(epoch.parse().ok()?), number))
}

fn object_key(folder: &str, epoch: Epoch, number: u64) -> String {
    format!("{folder}/{epoch}/{number:010}.jsonl")
}

async fn last_number(
    storage: &dyn Storage,
    folder: &str,
    epoch: Epoch,
) -> Result<u64, StorageError> {
    let listed = storage.list(&format!("{folder}/{epoch}")).await?;
    let numbers = listed
        .iter()
        .filter_map(|entry| parse_key(folder, &entry.key));
    Ok(numbers.map(|(_, number)| number).max().unwrap_or(0))
}
