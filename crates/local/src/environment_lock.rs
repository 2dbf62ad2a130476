//! One run at a time changes an environment.
//!
//! The lock is a file that the kernel frees when its holder dies, with a record in it of who that
//! is. On a file system that several machines share, the record decides: a holder elsewhere counts
//! as alive while it gives signs of life. The units' own leases stay the last word; this lock keeps
//! two runs from getting in each other's way and tells people whom to ask.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FolderFiles, layout};
use nimbus_engine_backend::Owner;
use nimbus_orchestrator::RunId;
use nimbus_runs::ports::{EnvironmentGuard, EnvironmentLocks, LockAttempt, LockHolder};
use serde::{Deserialize, Serialize};

use crate::place::Records;

/// How often a holder gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After so long without one, a holder on another machine counts as gone.
const SILENCE: Duration = Duration::from_secs(600);

/// Who holds an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    pub owner: Owner,
    pub run: Option<RunId>,
    pub since: Timestamp,
}

/// A holder as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedHolder {
    pub record: LockRecord,
    /// Time since the last sign of life.
    pub silence: Duration,
}

impl RecordedHolder {
    /// How long it has been held. A clock that was put back makes it zero, not negative.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.record.since)).unwrap_or_default()
    }
}

/// The lock of one environment, held until it is dropped.
#[derive(Debug)]
struct EnvironmentLock {
    file: File,
    heartbeat: Option<tokio::task::JoinHandle<()>>,
    record: LockRecord,
}

/// Where the locks of a deployment are.
#[derive(Clone, Debug)]
pub struct EnvironmentLockFiles {
    folder: PathBuf,
    files: FolderFiles,
}

impl EnvironmentLockFiles {
    pub fn new(records: &Records) -> Self {
        Self {
            folder: layout::locks(records.directory()),
            files: records.files().clone(),
        }
    }

    /// Environments that somebody held at some time.
    ///
    /// # Errors
    ///
    /// When the folder of the locks cannot be read.
    pub fn known(&self) -> Result<BTreeSet<EnvironmentName>> {
        let entries = match self.files.entries(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(unusable(&self.folder, &error)),
        };
        let names = entries.iter().filter_map(|entry| {
            let name = entry.file_name()?;
            name.to_str()?.strip_suffix(".lock")?.parse().ok()
        });
        Ok(names.collect())
    }

    /// Who holds an environment, if anybody does.
    pub fn holder(&self, environment: EnvironmentName) -> Result<Option<RecordedHolder>> {
        let path = self.path(environment);
        let mut file = match self.files.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &error)),
        };
        let held = read(&mut file).map_err(|error| unusable(&path, &error))?;
        let free = match file.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        };
        if free {
            // A holder of this machine would have it locked.
            let _ = file.unlock();
        }
        Ok(held.filter(|held| !free || is_alive_elsewhere(held)))
    }

    /// Removes the lock of a holder that is gone. Returns who that was.
    pub fn unlock(&self, environment: EnvironmentName) -> Result<Option<RecordedHolder>> {
        let path = self.path(environment);
        if !self.files.exists(&path) {
            return Ok(None);
        }
        let mut file = self.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let held = read(&mut file).map_err(|error| unusable(&path, &error))?;
                let who = held.map_or_else(
                    || "another process".to_owned(),
                    |held| held.record.owner.to_string(),
                );
                let message = format!("{who} holds {environment} and is running");
                return Err(Error::new(ErrorCode::LOCK_HOLDER_ALIVE, message)
                    .with_help("press Ctrl-C there, or wait for it"));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        }
        let former = read(&mut file).map_err(|error| unusable(&path, &error))?;
        file.set_len(0).map_err(|error| unusable(&path, &error))?;
        let _ = file.unlock();
        Ok(former)
    }

    fn attempt(&self, environment: EnvironmentName, command: &str) -> Result<LockAttempt> {
        let path = self.path(environment);
        let mut file = self.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let held = read(&mut file).map_err(|error| unusable(&path, &error))?;
                return Ok(held_by(held.unwrap_or_else(unknown)));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        }
        // The kernel's lock may reach no further than this machine; then only the record knows.
        let former = read(&mut file).map_err(|error| unusable(&path, &error))?;
        if let Some(held) = former.filter(is_alive_elsewhere) {
            let _ = file.unlock();
            return Ok(held_by(held));
        }
        let record = LockRecord {
            owner: Owner::current(command),
            run: None,
            since: Timestamp::now(),
        };
        write(&mut file, &record).map_err(|error| unusable(&path, &error))?;
        let heartbeat = tokio::runtime::Handle::try_current().ok().map(|runtime| {
            let (path, files) = (path.clone(), self.files.clone());
            runtime.spawn(async move {
                loop {
                    tokio::time::sleep(HEARTBEAT).await;
                    // A sign of life that fails is a silence; nothing else depends on it.
                    if let Ok(file) = files.open_lock(&path) {
                        let _ = file.set_modified(SystemTime::now());
                    }
                }
            })
        });
        Ok(LockAttempt::Taken(Box::new(EnvironmentLock {
            file,
            heartbeat,
            record,
        })))
    }

    fn open(&self, path: &Path) -> Result<File> {
        let open = || {
            self.files.create_folders(&self.folder)?;
            self.files.open_lock(path)
        };
        open().map_err(|error| unusable(path, &error))
    }

    fn path(&self, environment: EnvironmentName) -> PathBuf {
        self.folder.join(format!("{environment}.lock"))
    }
}

#[async_trait]
impl EnvironmentLocks for EnvironmentLockFiles {
    /// Must be called within a runtime.
    async fn try_lock(&self, environment: EnvironmentName, command: &str) -> Result<LockAttempt> {
        self.attempt(environment, command)
    }
}

fn held_by(held: RecordedHolder) -> LockAttempt {
    let RecordedHolder { record, silence } = held;
    LockAttempt::HeldBy(Box::new(LockHolder {
        user: record.owner.username,
        host: record.owner.hostname,
        process: record.owner.pid,
        command: record.owner.command,
        run: record.run,
        since: record.since,
        silence,
    }))
}

#[async_trait]
impl EnvironmentGuard for EnvironmentLock {
    async fn name_run(&mut self, run: RunId) -> Result<()> {
        self.record.run = Some(run);
        write(&mut self.file, &self.record).map_err(|error| unusable(Path::new("lock"), &error))
    }
}

impl Drop for EnvironmentLock {
    fn drop(&mut self) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.abort();
        }
        // Emptied before it is unlocked, or whoever takes it in between would lose its own record.
        // What cannot be emptied names a process that is gone.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Whether a holder may be alive although this machine's kernel knows nothing of its lock.
fn is_alive_elsewhere(held: &RecordedHolder) -> bool {
    let here = Owner::current("").hostname;
    held.record.owner.hostname != here && held.silence < SILENCE
}

fn read(file: &mut File) -> io::Result<Option<RecordedHolder>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    let touched = file.metadata()?.modified()?;
    let silence = SystemTime::now()
        .duration_since(touched)
        .unwrap_or_default();
    // A record that was cut off names nobody.
    let record = serde_json::from_str::<LockRecord>(&text).ok();
    Ok(record.map(|record| RecordedHolder { record, silence }))
}

fn write(file: &mut File, record: &LockRecord) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(record)?)
}

/// Somebody has just locked the file and not yet written its name.
fn unknown() -> RecordedHolder {
    let mut owner = Owner::current("starting");
    owner.pid = 0;
    RecordedHolder {
        record: LockRecord {
            owner,
            run: None,
            since: Timestamp::now(),
        },
        silence: Duration::ZERO,
    }
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot use {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNWRITABLE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: EnvironmentName = EnvironmentName::DEV;

    fn locks() -> (tempfile::TempDir, EnvironmentLockFiles) {
        let temp = tempfile::tempdir().unwrap();
        let locks = EnvironmentLockFiles::new(&Records::real(temp.path()));
        (temp, locks)
    }

    async fn take(
        locks: &EnvironmentLockFiles,
        environment: EnvironmentName,
    ) -> Option<Box<dyn EnvironmentGuard>> {
        match locks.try_lock(environment, "nimbus deploy").await.unwrap() {
            LockAttempt::Taken(guard) => Some(guard),
            LockAttempt::HeldBy(_) => None,
        }
    }

    async fn elsewhere(locks: &EnvironmentLockFiles, silent_for: Duration) {
        drop(take(locks, DEV).await.unwrap());
        let mut owner = serde_json::to_value(Owner::current("nimbus deploy")).unwrap();
        owner["hostname"] = "another-machine".into();
        let record = LockRecord {
            owner: serde_json::from_value(owner).unwrap(),
            run: Some(RunId(3)),
            since: Timestamp::now(),
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .open(locks.path(DEV))
            .unwrap();
        write(&mut file, &record).unwrap();
        file.set_modified(SystemTime::now() - silent_for).unwrap();
    }

    #[tokio::test]
    async fn a_second_run_is_told_of_the_first() {
        let (_temp, locks) = locks();
        let mut first = take(&locks, DEV).await.unwrap();
        first.name_run(RunId(7)).await.unwrap();
        let LockAttempt::HeldBy(holder) = locks.try_lock(DEV, "x").await.unwrap() else {
            panic!("it is held");
        };
        assert_eq!(holder.run, Some(RunId(7)));
        assert_eq!(holder.command, "nimbus deploy");
        let held = locks.holder(DEV).unwrap().unwrap();
        assert_eq!(held.record.run, Some(RunId(7)));
        assert!(
            take(&locks, EnvironmentName::PROD).await.is_some(),
            "environments do not wait for each other"
        );
        drop(first);
        assert_eq!(locks.holder(DEV).unwrap(), None);
        assert!(take(&locks, DEV).await.is_some());
    }

    #[tokio::test]
    async fn a_holder_on_another_machine_counts_until_it_is_silent_or_unlocked() {
        let (_temp, locks) = locks();
        elsewhere(&locks, Duration::from_secs(30)).await;
        assert!(locks.holder(DEV).unwrap().is_some());
        assert!(take(&locks, DEV).await.is_none());
        assert!(locks.unlock(DEV).unwrap().is_some());
        assert!(take(&locks, DEV).await.is_some());

        elsewhere(&locks, SILENCE + Duration::from_secs(1)).await;
        assert!(take(&locks, DEV).await.is_some(), "silent for ten minutes");
    }

    #[tokio::test]
    async fn a_living_holder_cannot_be_unlocked() {
        let (_temp, locks) = locks();
        let _held = take(&locks, DEV).await.unwrap();
        let error = locks.unlock(DEV).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LOCK_HOLDER_ALIVE);
    }

    #[tokio::test]
    async fn a_clock_that_was_put_back_makes_nothing_old() {
        let (_temp, locks) = locks();
        let lock = take(&locks, DEV).await.unwrap();
        let held = locks.holder(DEV).unwrap().unwrap();
        let earlier = Timestamp::now() - jiff::SignedDuration::from_hours(5);
        assert_eq!(held.age(earlier), Duration::ZERO);
        drop(lock);
    }
}
