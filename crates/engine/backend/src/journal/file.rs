//! A journal as one append-only file.
//!
//! The lease is checked before the write and again after the sync. A successor raises the epoch
//! before it reads the journal; so if the epoch is still ours after the sync, the successor will
//! find these lines, and if it is not, nobody is told that they were accepted.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use async_trait::async_trait;
use nimbus_engine_ports::JournalError;

use super::group::Sink;
use super::{lease_problem, store_problem};
use crate::lease::Lease;
use crate::store::{LocalStorage, StorageAct, StorageError};

pub(super) struct FileSink {
    storage: LocalStorage,
    key: String,
    lease: Lease,
    state: JournalFileState,
}

enum JournalFileState {
    /// Nothing was written yet.
    New,
    Open(JournalFileWriter),
    /// What is on disk is no longer certain, so nothing more is promised.
    Broken(String),
}

struct JournalFileWriter {
    file: File,
    /// Bytes that are durable.
    length: u64,
}

impl FileSink {
    pub(super) fn new(storage: LocalStorage, key: String, lease: Lease) -> Self {
        Self {
            storage,
            key,
            lease,
            state: JournalFileState::New,
        }
    }
}

#[async_trait]
impl Sink for FileSink {
    async fn commit(&mut self, lines: String) -> Result<(), JournalError> {
        let interrupted = JournalFileState::Broken("an earlier write was interrupted".to_owned());
        let state = std::mem::replace(&mut self.state, interrupted);
        let (storage, lease) = (self.storage.clone(), self.lease.clone());
        let key = self.key.clone();
        let work = move || commit(state, &storage, &key, &lease, &lines);
        match tokio::task::spawn_blocking(work).await {
            Ok((state, result)) => {
                self.state = state;
                result
            }
            Err(stopped) => Err(JournalError::Unwritable {
                message: stopped.to_string(),
            }),
        }
    }

    /// Nobody can write to the file without the flock, so an empty journal needs no end.
    fn closes_when_empty(&self) -> bool {
        false
    }
}

fn commit(
    state: JournalFileState,
    storage: &LocalStorage,
    key: &str,
    lease: &Lease,
    lines: &str,
) -> (JournalFileState, Result<(), JournalError>) {
    let path = &storage.path(key);
    if let Err(error) = lease.check_blocking() {
        return (state, Err(lease_problem(error)));
    }
    let mut writer = match state {
        JournalFileState::Open(writer) => writer,
        JournalFileState::New => match create(storage, path) {
            Ok(file) => JournalFileWriter { file, length: 0 },
            Err(error) => return (JournalFileState::New, Err(store_problem(error))),
        },
        JournalFileState::Broken(message) => {
            let error = JournalError::Unwritable {
                message: message.clone(),
            };
            return (JournalFileState::Broken(message), Err(error));
        }
    };
    let error = |source| store_problem(StorageError::io(StorageAct::Write, path, source));
    if let Err(source) = writer.file.write_all(lines.as_bytes()) {
        // Part of a line may be there. If it can be taken back, the next append may succeed, for
        // instance when somebody has made room on the disk.
        let state = match writer.file.set_len(writer.length) {
            Ok(()) => JournalFileState::Open(writer),
            Err(again) => {
                JournalFileState::Broken(format!("a half-written line cannot be removed: {again}"))
            }
        };
        return (state, Err(error(source)));
    }
    if let Err(source) = writer.file.sync_data() {
        // After a failed sync the kernel may drop what it could not write and say so only once.
        return (
            JournalFileState::Broken(source.to_string()),
            Err(error(source)),
        );
    }
    writer.length += lines.len() as u64;
    let result = lease.check_blocking().map_err(lease_problem);
    (JournalFileState::Open(writer), result)
}

fn create(storage: &LocalStorage, path: &Path) -> Result<File, StorageError> {
    let folder = path.parent().unwrap_or(path);
    storage.make_folders(folder)?;
    let file = storage
        .files()
        .append_new(path)
        .map_err(|source| StorageError::io(StorageAct::Write, path, source))?;
    storage.sync(folder)?;
    Ok(file)
}
