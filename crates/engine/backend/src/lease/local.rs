//! A lease on local disk: an flock that the kernel gives back when its holder dies, and a record
//! that says who holds it and under which epoch.
//!
//! Holding the flock proves that no other process of this machine writes. On a file system that
//! several machines share, the record decides: a holder elsewhere is believed to live until
//! somebody says otherwise with `nimbus state unlock`.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use nimbus_core::Epoch;
use uuid::Uuid;

use super::owner::{self, Liveness, Owner, liveness};
use super::record::LeaseRecord;
use super::{HeldBy, LeaseError};
use crate::layout::StackKeys;
use crate::names::StackRef;
use crate::store::{LocalStorage, StorageAct, StorageError};

/// The locked file and what was written about it.
#[derive(Debug)]
pub(super) struct LocalHold {
    storage: LocalStorage,
    stack: StackRef,
    flock: Flock,
    pub(super) epoch: Epoch,
    pub(super) id: Uuid,
    /// Lock of the official layout that a dead holder left behind.
    pub(super) stale_pulumi_lock: Option<String>,
}

impl LocalHold {
    pub(super) fn acquire(
        storage: &LocalStorage,
        stack: &StackRef,
        owner: Owner,
        now: Timestamp,
    ) -> Result<Self, LeaseError> {
        let flock = lock(storage, stack, now)?;
        let previous = read(storage, stack)?;
        if let Some(holder) = previous.as_ref().and_then(|record| record.holder.as_ref()) {
            let liveness = liveness(&holder.owner, &owner, owner::process);
            if liveness != Liveness::Dead {
                return Err(held(storage, stack, previous.as_ref(), now));
            }
        }
        let id = Uuid::new_v4();
        let mut record = LeaseRecord::held(previous.as_ref(), id, owner, now);
        // The record itself refuses earlier writers here; there is nothing to shut.
        record.abandoned.clear();
        storage.write(&StackKeys::new(stack).lease(), &record.to_bytes())?;
        Ok(Self {
            storage: storage.clone(),
            stack: stack.clone(),
            flock,
            epoch: record.epoch,
            id,
            stale_pulumi_lock: previous.and_then(|record| record.pulumi_lock),
        })
    }

    /// Reads the record: it is ours, or somebody took over.
    pub(super) fn check(&self) -> Result<(), LeaseError> {
        let lost = |holder| LeaseError::Lost {
            stack: self.stack.clone(),
            holder,
        };
        match read(&self.storage, &self.stack)? {
            Some(record) if record.epoch == self.epoch && record.is_held_by(self.id) => Ok(()),
            Some(record) => Err(lost(record.describe_holder())),
            None => Err(lost("nobody: the lease's record was deleted".to_owned())),
        }
    }

    /// A sign of life, for people who look from elsewhere. Nothing is decided by it.
    pub(super) fn touch(&self) {
        let _ = self.flock.0.set_modified(SystemTime::now());
    }

    pub(super) fn release(&self) -> Result<(), LeaseError> {
        let written = self.write_release();
        self.flock.unlock();
        written
    }

    fn write_release(&self) -> Result<(), LeaseError> {
        self.check()?;
        let keys = StackKeys::new(&self.stack);
        self.storage
            .remove(&keys.pulumi_lock(&self.id.to_string()))?;
        if let Some(record) = read(&self.storage, &self.stack)? {
            self.storage
                .write(&keys.lease(), &record.freed().to_bytes())?;
        }
        Ok(())
    }
}

/// A locked file. It is unlocked explicitly, not by being closed: a process that is just being
/// started has a copy of every open file for a moment, and would keep the lock for that long.
#[derive(Debug)]
struct Flock(File);

impl Flock {
    fn unlock(&self) {
        // Fails only for files that were never locked.
        let _ = self.0.unlock();
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// Ends whatever lease there is, unless its holder is alive on this machine.
pub(super) fn unlock(
    storage: &LocalStorage,
    stack: &StackRef,
    here: &Owner,
    now: Timestamp,
) -> Result<Epoch, LeaseError> {
    let _flock = match lock(storage, stack, now) {
        Err(LeaseError::Held { stack, holder }) => {
            return Err(LeaseError::HolderAlive { stack, holder });
        }
        other => other?,
    };
    let key = StackKeys::new(stack).lease();
    let (previous, unreadable) = match read(storage, stack) {
        Ok(previous) => (previous, false),
        Err(LeaseError::Unreadable { .. }) => (None, true),
        Err(error) => return Err(error),
    };
    if let Some(holder) = previous.as_ref().and_then(|record| record.holder.as_ref())
        && liveness(&holder.owner, here, owner::process) == Liveness::Alive
    {
        let holder = held_by(storage, stack, previous.as_ref(), now).map(Box::new);
        return Err(LeaseError::HolderAlive {
            stack: stack.clone(),
            holder,
        });
    }
    let record = LeaseRecord::unlocked(previous.as_ref(), unreadable, now);
    storage.write(&key, &record.to_bytes())?;
    Ok(record.epoch)
}

/// Who holds the lease, if anybody does.
pub(super) fn inspect(
    storage: &LocalStorage,
    stack: &StackRef,
    now: Timestamp,
) -> Result<Option<HeldBy>, LeaseError> {
    let record = read(storage, stack)?;
    Ok(held_by(storage, stack, record.as_ref(), now))
}

/// Opens and locks the lock file, or says who has it.
fn lock(storage: &LocalStorage, stack: &StackRef, now: Timestamp) -> Result<Flock, LeaseError> {
    let path = storage.path(&StackKeys::new(stack).lock());
    let error = |source| StorageError::io(StorageAct::Write, &path, source);
    if let Some(folder) = path.parent() {
        storage.make_folders(folder)?;
    }
    // A file that was deleted between open and lock excludes nobody; then there is a new one.
    for _ in 0..10 {
        let file = storage.files().open_lock(&path).map_err(error)?;
        match file.try_lock() {
            Ok(()) if same_file(storage, &file, &path) => return Ok(Flock(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let record = read(storage, stack).ok().flatten();
                return Err(held(storage, stack, record.as_ref(), now));
            }
            Err(TryLockError::Error(source)) => return Err(error(source).into()),
        }
    }
    Err(error(std::io::Error::other("the lock file keeps being replaced")).into())
}

fn same_file(storage: &LocalStorage, file: &File, path: &Path) -> bool {
    match (file.metadata(), storage.files().metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn read(storage: &LocalStorage, stack: &StackRef) -> Result<Option<LeaseRecord>, LeaseError> {
    let key = StackKeys::new(stack).lease();
    let Some(object) = storage.read(&key)? else {
        return Ok(None);
    };
    let record = LeaseRecord::from_bytes(&object.bytes);
    record
        .map(Some)
        .map_err(|source| LeaseError::Unreadable { key, source })
}

fn held(
    storage: &LocalStorage,
    stack: &StackRef,
    record: Option<&LeaseRecord>,
    now: Timestamp,
) -> LeaseError {
    let holder = held_by(storage, stack, record, now).map(Box::new);
    LeaseError::Held {
        stack: stack.clone(),
        holder,
    }
}

fn held_by(
    storage: &LocalStorage,
    stack: &StackRef,
    record: Option<&LeaseRecord>,
    now: Timestamp,
) -> Option<HeldBy> {
    let holder = record?.holder.as_ref()?;
    let lock = storage.path(&StackKeys::new(stack).lock());
    let touched = storage.files().metadata(&lock);
    let touched = touched.and_then(|metadata| metadata.modified());
    let seen = touched
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .map_or(holder.renewed, |touched| touched.max(holder.renewed));
    let silence = now.duration_since(seen);
    Some(HeldBy {
        owner: holder.owner.clone(),
        since: holder.acquired,
        silence: Duration::try_from(silence).unwrap_or_default(),
    })
}
