//! Records of runs on disk: a folder for each run, with what was asked for, what happened, and what
//! units were before.
//!
//! `run.json` is written once, before anything starts. `events.jsonl` only grows; a last line that was
//! cut off by a crash is not an event. Beside it are logs for people, in the deployment's `logs`
//! folder. Everything passes the redactor first.
//!
//! What waits for a disk runs on threads that are there for waiting: on a worker of the runtime it
//! would hold up every step that happens to be polled there.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, FolderFiles, layout, unreadable};
use nimbus_orchestrator::{RunEvent, RunId, progress_of};
use nimbus_runs::ports::RunStore;
use nimbus_runs::{RunRecord, RunRequest};
use parking_lot::Mutex;

use crate::logs::stamp;
use crate::place::Records;

const RECORD: &str = "run.json";
const EVENTS: &str = "events.jsonl";

/// The runs of a deployment.
#[derive(Clone, Debug)]
pub struct RunFiles {
    folder: PathBuf,
    files: FolderFiles,
    /// Records that grow.
    open: Arc<Mutex<HashMap<RunId, File>>>,
}

impl RunFiles {
    pub fn new(records: &Records) -> Self {
        Self {
            folder: layout::runs(records.directory()),
            files: records.files().clone(),
            open: Arc::default(),
        }
    }

    /// Does something that waits for a disk, off the runtime's workers.
    async fn off_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let files = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.map_err(|error| {
            let message = "the record of a run was given up";
            Error::new(ErrorCode::INTERNAL, message).with_source(error)
        })
    }

    /// Where everything of one run is.
    pub fn folder(&self, run: RunId) -> PathBuf {
        self.folder.join(run.to_string())
    }

    /// The run that is meant: the named one, or the newest of the environment.
    ///
    /// # Errors
    ///
    /// When there is none, or it was a run of another environment.
    pub async fn pick(
        &self,
        environment: EnvironmentName,
        run: Option<RunId>,
    ) -> Result<RunRecord> {
        let found = match run {
            Some(run) => Some(self.find(run).await?),
            None => self.of_environment(environment).await?.into_iter().next(),
        };
        match found {
            Some(found) if found.request.environment == environment => Ok(found),
            Some(found) => {
                let other = found.request.environment;
                Err(no_run(&format!("run {} was a run of {other}", found.run)))
            }
            None => Err(no_run(&format!("there was no run of {environment} yet"))),
        }
    }

    /// The newest run of a deployment, whatever its environment.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn newest(&self) -> Result<RunRecord> {
        let ids = self
            .ids()
            .map_err(|error| unreadable(&self.folder, error))?;
        for run in ids.into_iter().rev() {
            match self.find(run).await {
                // A folder without a record is a run that never began.
                Err(error) if error.code() == ErrorCode::RUN_UNKNOWN => {}
                found => return found,
            }
        }
        Err(no_run("there was no run yet"))
    }

    fn ids(&self) -> io::Result<Vec<RunId>> {
        let entries = match self.files.entries(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.file_name().and_then(|name| name.to_str());
            ids.extend(name.and_then(|name| name.parse::<RunId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn record(&self, request: RunRequest) -> io::Result<RunRecord> {
        self.files.create_folders(&self.folder)?;
        // Numbers belong to the deployment and locks to its environments, so making the folder is
        // what decides who has a number.
        let last = self.ids()?.last().copied();
        let mut run = last.map_or(RunId(1), |last| RunId(last.0 + 1));
        loop {
            let folder = self.folder(run);
            match self.files.create_folder(&folder) {
                Ok(()) => {
                    // Before the record is written into it: a run whose folder a crash takes away
                    // has changed things that nobody can go on with.
                    self.files.sync_folder(&self.folder)?;
                    let now = Timestamp::now();
                    let record = RunRecord {
                        run,
                        started: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                        stamp: stamp(now),
                        request,
                    };
                    let text = serde_json::to_vec_pretty(&record)?;
                    let path = folder.join(RECORD);
                    self.files.replace(&path, &text, FileMode::Private)?;
                    return Ok(record);
                }
                // A run of another environment was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => run.0 += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&self, run: RunId, lines: &[u8], durable: bool) -> io::Result<()> {
        let mut open = self.open.lock();
        let file = match open.entry(run) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let path = self.folder(run).join(EVENTS);
                entry.insert(appendable(&self.files, &path)?)
            }
        };
        let written = file.write_all(lines);
        let written = written.and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        if written.is_err() {
            // It may end in half a line, which the next one would be glued to. Opened again, the
            // file is cut back to its last whole line.
            open.remove(&run);
        }
        written
    }
}

/// Opens a record for more events. A line that was cut off is removed first.
fn appendable(files: &FolderFiles, path: &Path) -> io::Result<File> {
    // First, because it refuses what leads elsewhere, in every mode.
    let file = files.append(path)?;
    let bytes = files.read(path)?;
    if bytes.is_empty()
        && let Some(folder) = path.parent()
    {
        // Syncing a file keeps its content; its name is kept by its folder.
        files.sync_folder(folder)?;
    }
    if bytes.last().is_some_and(|last| *last != b'\n') {
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        file.set_len(end.map_or(0, |end| end as u64 + 1))?;
    }
    Ok(file)
}

#[async_trait]
impl RunStore for RunFiles {
    async fn begin(&self, request: RunRequest) -> Result<RunRecord> {
        let recorded = self.off_worker(|files| files.record(request)).await?;
        recorded.map_err(|error| {
            let message = format!("cannot write a run's record in {}", self.folder.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    async fn find(&self, run: RunId) -> Result<RunRecord> {
        let path = self.folder(run).join(RECORD);
        let bytes = self.files.read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_run(&format!("there is no run {run}")),
            _ => unreadable(&path, error),
        })?;
        serde_json::from_slice(&bytes).map_err(|error| damaged(&path, &error))
    }

    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>> {
        let ids = self
            .ids()
            .map_err(|error| unreadable(&self.folder, error))?;
        let mut found = Vec::new();
        for run in ids.into_iter().rev() {
            match self.find(run).await {
                Ok(record) if record.request.environment == environment => found.push(record),
                Ok(_) => {}
                // A folder without a record is a run that never began.
                Err(error) if error.code() == ErrorCode::RUN_UNKNOWN => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let path = self.folder(run).join(EVENTS);
        let text = match self.files.read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&path, error)),
        };
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        text[..complete]
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).map_err(|error| damaged(&path, &error)))
            .collect()
    }

    async fn append(&self, run: RunId, events: &[RunEvent], durable: bool) -> Result<()> {
        let mut lines = Vec::new();
        let encoded = events.iter().try_for_each(|event| {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
            Ok::<(), io::Error>(())
        });
        let written = match encoded {
            Ok(()) => {
                self.off_worker(move |files| files.write(run, &lines, durable))
                    .await?
            }
            Err(error) => Err(error),
        };
        written.map_err(|error| {
            let message = format!("the run's record cannot be written: {error}");
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize> {
        let mut gone = 0;
        for record in self
            .of_environment(environment)
            .await?
            .into_iter()
            .skip(keep)
        {
            let events = self.events(record.run).await;
            let over = events.is_ok_and(|events| progress_of(&events).result.is_some());
            let clear = move |runs: &Self| runs.files.remove_folder(&runs.folder(record.run));
            if over && self.off_worker(clear).await?.is_ok() {
                gone += 1;
            }
        }
        Ok(gone)
    }
}

fn no_run(message: &str) -> Error {
    Error::new(ErrorCode::RUN_UNKNOWN, message)
        .with_help("`nimbus run list` names runs; those of a rehearsal need --rehearse")
}

fn damaged(path: &Path, error: &serde_json::Error) -> Error {
    let message = format!("{} is damaged: {error}", path.display());
    Error::new(ErrorCode::RUN_DAMAGED, message)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn told(message: &str) -> RunEvent {
        RunEvent::Diagnostic {
            at: String::new(),
            unit: None,
            level: nimbus_orchestrator::DiagnosticLevel::Info,
            message: message.to_owned(),
        }
    }

    /// A file that takes no writes stands for a disk that took half of one.
    #[tokio::test]
    async fn half_a_line_is_cut_before_the_next_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::new(&Records::real(folder.path()));
        fs::create_dir_all(files.folder(RunId(1))).unwrap();
        files
            .append(RunId(1), &[told("first")], true)
            .await
            .unwrap();
        let path = files.folder(RunId(1)).join(EVENTS);
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"event\":\"diagn").unwrap();
        let unwritable = File::open(&path).unwrap();
        files.open.lock().insert(RunId(1), unwritable);
        let lost = files.append(RunId(1), &[told("lost")], true).await;
        assert_eq!(lost.unwrap_err().code(), ErrorCode::FILE_UNWRITABLE);

        files
            .append(RunId(1), &[told("second")], true)
            .await
            .unwrap();
        let events = files.events(RunId(1)).await.unwrap();
        assert_eq!(events, [told("first"), told("second")]);
    }

    /// One thread for everything, and a disk that takes its time: somebody holds the file until
    /// another task of the same thread says so.
    #[tokio::test]
    async fn a_slow_disk_holds_up_no_other_task() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::new(&Records::real(folder.path()));
        fs::create_dir_all(files.folder(RunId(1))).unwrap();
        let (held, is_held) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let open = Arc::clone(&files.open);
        let disk = std::thread::spawn(move || {
            let guard = open.lock();
            held.send(()).unwrap();
            let told = goes_on.recv_timeout(Duration::from_secs(5));
            drop(guard);
            told
        });
        is_held.recv().unwrap();
        let other = tokio::spawn(async move { go_on.send(()).unwrap() });
        files.append(RunId(1), &[told("x")], true).await.unwrap();
        other.await.unwrap();
        assert_eq!(disk.join().unwrap(), Ok(()), "the other task had to wait");
        assert_eq!(files.events(RunId(1)).await.unwrap().len(), 1);
    }
}
