//! One run at a time changes an environment.
//!
//! The lock is a file that the kernel frees when its holder dies, with a record in it of who that
//! is. On a file system that several machines share, the record decides: a holder elsewhere counts
//! as alive while it gives signs of life. The units' own leases stay the last word; this lock keeps
//! two runs from getting in each other's way and tells people whom to ask.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::Owner;
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::record::RunId;
use serde::{Deserialize, Serialize};

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
pub struct Held {
    pub record: LockRecord,
    /// Time since the last sign of life.
    pub silence: Duration,
}

impl Held {
    /// How long it has been held. A clock that was put back makes it zero, not negative.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.record.since)).unwrap_or_default()
    }
}

/// The lock of one environment, held until it is dropped.
#[derive(Debug)]
pub struct EnvironmentLock {
    file: File,
    heartbeat: Option<tokio::task::JoinHandle<()>>,
    record: LockRecord,
}

/// Where the locks of a deployment are.
#[derive(Clone, Debug)]
pub struct Locks {
    folder: PathBuf,
}

enum Attempt {
    Got(Box<EnvironmentLock>),
    Held(Box<Held>),
}

impl Locks {
    pub fn of_deployment(directory: &Path) -> Self {
        Self {
            folder: directory.join(".nimbus/locks"),
        }
    }

    /// Takes the lock, or says who has it. Must be called within a runtime.
    pub fn take(&self, environment: Environment, command: &str) -> Result<EnvironmentLock> {
        match self.attempt(environment, command)? {
            Attempt::Got(lock) => Ok(*lock),
            Attempt::Held(held) => Err(locked(environment, &held)),
        }
    }

    /// Waits for the lock. `told` hears, at first and then every second, who has it and how much
    /// time is left.
    pub async fn wait(
        &self,
        environment: Environment,
        command: &str,
        limit: Duration,
        mut told: impl FnMut(&Held, Duration),
    ) -> Result<EnvironmentLock> {
        let started = tokio::time::Instant::now();
        loop {
            let held = match self.attempt(environment, command)? {
                Attempt::Got(lock) => return Ok(*lock),
                Attempt::Held(held) => held,
            };
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(locked(environment, &held));
            }
            told(&held, left);
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        }
    }

    /// Who holds an environment, if anybody does.
    pub fn holder(&self, environment: Environment) -> Result<Option<Held>> {
        let path = self.path(environment);
        let mut file = match File::open(&path) {
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
    pub fn unlock(&self, environment: Environment) -> Result<Option<Held>> {
        let path = self.path(environment);
        if !path.exists() {
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

    fn attempt(&self, environment: Environment, command: &str) -> Result<Attempt> {
        let path = self.path(environment);
        let mut file = self.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let held = read(&mut file).map_err(|error| unusable(&path, &error))?;
                return Ok(Attempt::Held(Box::new(held.unwrap_or_else(unknown))));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        }
        let former = read(&mut file).map_err(|error| unusable(&path, &error))?;
        if let Some(held) = former.filter(is_alive_elsewhere) {
            let _ = file.unlock();
            return Ok(Attempt::Held(Box::new(held)));
        }
        let record = LockRecord {
            owner: Owner::current(command),
            run: None,
            since: Timestamp::now(),
        };
        write(&mut file, &record).map_err(|error| unusable(&path, &error))?;
        let heartbeat = tokio::runtime::Handle::try_current().ok().map(|runtime| {
            let path = path.clone();
            runtime.spawn(async move {
                loop {
                    tokio::time::sleep(HEARTBEAT).await;
                    // A sign of life that fails is a silence; nothing else depends on it.
                    if let Ok(file) = File::options().append(true).open(&path) {
                        let _ = file.set_modified(SystemTime::now());
                    }
                }
            })
        });
        Ok(Attempt::Got(Box::new(EnvironmentLock {
            file,
            heartbeat,
            record,
        })))
    }

    fn open(&self, path: &Path) -> Result<File> {
        let open = || {
            fs::create_dir_all(&self.folder)?;
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        open().map_err(|error| unusable(path, &error))
    }

    fn path(&self, environment: Environment) -> PathBuf {
        self.folder.join(format!("{environment}.lock"))
    }
}

impl EnvironmentLock {
    /// Says which run it is held for.
    pub fn name_run(&mut self, run: RunId) -> Result<()> {
        self.record.run = Some(run);
        write(&mut self.file, &self.record).map_err(|error| unusable(Path::new("lock"), &error))
    }
}

impl Drop for EnvironmentLock {
    fn drop(&mut self) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.abort();
        }
        // What cannot be emptied names a process that is gone.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Whether a holder may be alive although this machine's kernel knows nothing of its lock.
fn is_alive_elsewhere(held: &Held) -> bool {
    let here = Owner::current("").hostname;
    held.record.owner.hostname != here && held.silence < SILENCE
}

fn read(file: &mut File) -> io::Result<Option<Held>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    let touched = file.metadata()?.modified()?;
    let silence = SystemTime::now()
        .duration_since(touched)
        .unwrap_or_default();
    // A record that was cut off names nobody.
    let record = serde_json::from_str::<LockRecord>(&text).ok();
    Ok(record.map(|record| Held { record, silence }))
}

fn write(file: &mut File, record: &LockRecord) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(record)?)
}

/// Somebody has just locked the file and not yet written its name.
fn unknown() -> Held {
    let mut owner = Owner::current("starting");
    owner.pid = 0;
    Held {
        record: LockRecord {
            owner,
            run: None,
            since: Timestamp::now(),
        },
        silence: Duration::ZERO,
    }
}

fn locked(environment: Environment, held: &Held) -> Error {
    let LockRecord { owner, run, since } = &held.record;
    let run = run.map(|run| format!(", run {run}")).unwrap_or_default();
    let message = format!(
        "State locked by {} ({environment}: `{}` on {}, process {}{run}, since {since})",
        owner.username, owner.command, owner.hostname, owner.pid
    );
    Error::new(ErrorCode::ENVIRONMENT_LOCKED, message)
        .with_help("wait for it with --wait, or see `nimbus locks`")
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot use {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNWRITABLE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: Environment = Environment::Dev;

    fn locks() -> (tempfile::TempDir, Locks) {
        let temp = tempfile::tempdir().unwrap();
        let locks = Locks::of_deployment(temp.path());
        (temp, locks)
    }

    fn elsewhere(locks: &Locks, silent_for: Duration) {
        drop(locks.take(DEV, "x").unwrap());
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
    async fn a_second_run_is_refused_with_the_name_of_the_first() {
        let (_temp, locks) = locks();
        let mut first = locks.take(DEV, "nimbus deploy").unwrap();
        first.name_run(RunId(7)).unwrap();
        let error = locks.take(DEV, "nimbus deploy").unwrap_err();
        assert_eq!(error.code(), ErrorCode::ENVIRONMENT_LOCKED);
        assert!(error.message().starts_with("State locked by "), "{error}");
        assert!(error.message().contains("run R0007"), "{error}");
        assert_eq!(
            locks.holder(DEV).unwrap().unwrap().record.run,
            Some(RunId(7))
        );
        assert!(
            locks.take(Environment::Prod, "x").is_ok(),
            "environments do not wait for each other"
        );
        drop(first);
        assert_eq!(locks.holder(DEV).unwrap(), None);
        assert!(locks.take(DEV, "x").is_ok());
    }

    #[tokio::test]
    async fn whoever_waits_gets_it_when_it_is_free_and_is_told_meanwhile() {
        let (_temp, locks) = locks();
        let mut first = Some(locks.take(DEV, "x").unwrap());
        let mut told = 0;
        let limit = Duration::from_secs(60);
        let second = locks.wait(DEV, "y", limit, |_, left| {
            assert!(left <= limit);
            told += 1;
            first.take();
        });
        assert!(second.await.is_ok());
        assert_eq!(told, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_same_refusal() {
        let (_temp, locks) = locks();
        let _first = locks.take(DEV, "x").unwrap();
        let mut countdown = Vec::new();
        let error = locks
            .wait(DEV, "y", Duration::from_secs(3), |_, left| {
                countdown.push(left.as_secs());
            })
            .await
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::ENVIRONMENT_LOCKED);
        assert_eq!(countdown, [3, 2, 1]);
    }

    #[tokio::test]
    async fn a_holder_on_another_machine_counts_until_it_is_silent_or_unlocked() {
        let (_temp, locks) = locks();
        elsewhere(&locks, Duration::from_secs(30));
        assert!(locks.holder(DEV).unwrap().is_some());
        assert!(locks.take(DEV, "x").is_err());
        assert!(locks.unlock(DEV).unwrap().is_some());
        assert!(locks.take(DEV, "x").is_ok());

        elsewhere(&locks, SILENCE + Duration::from_secs(1));
        assert!(locks.take(DEV, "x").is_ok(), "silent for ten minutes");
    }

    #[tokio::test]
    async fn a_living_holder_cannot_be_unlocked() {
        let (_temp, locks) = locks();
        let _held = locks.take(DEV, "x").unwrap();
        let error = locks.unlock(DEV).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LOCK_HOLDER_ALIVE);
    }

    #[tokio::test]
    async fn a_clock_that_was_put_back_makes_nothing_old() {
        let (_temp, locks) = locks();
        let lock = locks.take(DEV, "x").unwrap();
        let held = locks.holder(DEV).unwrap().unwrap();
        let earlier = Timestamp::now() - jiff::SignedDuration::from_hours(5);
        assert_eq!(held.age(earlier), Duration::ZERO);
        drop(lock);
    }
}
