//! Records of runs on disk: a folder for each run, with what was asked for, what happened, and what
//! units were before.
//!
//! `run.json` is written once. `events.jsonl` only grows; a last line that was cut off by a crash is
//! not an event. Beside it are logs for people, in the deployment's `logs` folder. Everything passes
//! the redactor first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::record::{RunEvent, RunId, RunRecord, Standing, standing};

use crate::before::write_private;

const RECORD: &str = "run.json";
const EVENTS: &str = "events.jsonl";
/// Kept states of runs, for rollbacks and resumption.
const BEFORE: &str = "before";

/// The runs of a deployment.
#[derive(Clone, Debug)]
pub struct RunStore {
    folder: PathBuf,
}

/// A run that was found.
#[derive(Clone, Debug)]
pub struct FoundRun {
    pub record: RunRecord,
    pub folder: PathBuf,
}

impl RunStore {
    pub fn of_deployment(directory: &Path) -> Self {
        Self {
            folder: directory.join(".nimbus/runs"),
        }
    }

    /// Starts a record under the next free number. `make` is told the number.
    pub fn begin(&self, make: impl Fn(RunId) -> RunRecord) -> Result<FoundRun> {
        let begin = || -> io::Result<FoundRun> {
            fs::create_dir_all(&self.folder)?;
            let mut id = self
                .ids()?
                .last()
                .map_or(RunId(1), |last| RunId(last.0 + 1));
            loop {
                let folder = self.folder.join(id.to_string());
                match fs::create_dir(&folder) {
                    Ok(()) => {
                        let record = make(id);
                        let text = serde_json::to_vec_pretty(&record)?;
                        write_private(&folder.join(RECORD), &text)?;
                        return Ok(FoundRun { record, folder });
                    }
                    // A run of another environment was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => id.0 += 1,
                    Err(error) => return Err(error),
                }
            }
        };
        begin().map_err(|error| {
            let message = format!("cannot write a run's record in {}", self.folder.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    pub fn find(&self, id: RunId) -> Result<FoundRun> {
        let folder = self.folder.join(id.to_string());
        let path = folder.join(RECORD);
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_run(&format!("there is no run {id}")),
            _ => {
                let message = format!("cannot read {}: {error}", path.display());
                Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
            }
        })?;
        let record = serde_json::from_slice(&bytes).map_err(|error| damaged(&path, &error))?;
        Ok(FoundRun { record, folder })
    }

    /// Runs of an environment, newest first. A folder without a record is a run that never began.
    pub fn of_environment(&self, environment: Environment) -> Result<Vec<FoundRun>> {
        let ids = self.ids().map_err(|error| {
            let message = format!("cannot read {}: {error}", self.folder.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
        })?;
        let mut found = Vec::new();
        for id in ids.into_iter().rev() {
            match self.find(id) {
                Ok(run) if run.record.environment == environment => found.push(run),
                Ok(_) => {}
                Err(error) if error.code() == ErrorCode::RUN_UNKNOWN => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The run that is meant: the named one, or the newest of the environment.
    pub fn pick(&self, environment: Environment, id: Option<RunId>) -> Result<FoundRun> {
        let run = match id {
            Some(id) => Some(self.find(id)?),
            None => self.of_environment(environment)?.into_iter().next(),
        };
        match run {
            Some(run) if run.record.environment == environment => Ok(run),
            Some(run) => {
                let message = format!(
                    "run {} was a run of {}",
                    run.record.run, run.record.environment
                );
                Err(no_run(&message))
            }
            None => Err(no_run(&format!("there was no run of {environment} yet"))),
        }
    }

    /// Clears old records of an environment away and keeps the newest `keep`. States that were kept
    /// for a rollback go with them; histories and versions stay for ever.
    pub fn prune(&self, environment: Environment, keep: usize) -> Result<usize> {
        let mut gone = 0;
        for run in self.of_environment(environment)?.into_iter().skip(keep) {
            // An interrupted run is kept until somebody has gone on with it.
            let over = run
                .standing()
                .is_ok_and(|standing| standing.result.is_some());
            if over && fs::remove_dir_all(&run.folder).is_ok() {
                gone += 1;
            }
        }
        Ok(gone)
    }

    fn ids(&self) -> io::Result<Vec<RunId>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| name.parse::<RunId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

impl FoundRun {
    /// Everything that happened, as far as it was written.
    pub fn events(&self) -> Result<Vec<RunEvent>> {
        let path = self.folder.join(EVENTS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                return Err(Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error));
            }
        };
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        text[..complete]
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).map_err(|error| damaged(&path, &error)))
            .collect()
    }

    pub fn standing(&self) -> Result<Standing> {
        Ok(standing(&self.events()?))
    }

    /// Where units are kept as they were before this run.
    pub fn before(&self) -> PathBuf {
        self.folder.join(BEFORE)
    }

    /// Opens the record for more events. A line that was cut off is ended first.
    pub fn append(&self) -> io::Result<EventFile> {
        let path = self.folder.join(EVENTS);
        let whole = fs::read(&path).map_or(true, |bytes| bytes.last().is_none_or(|b| *b == b'\n'));
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if !whole {
            let bytes = fs::read(&path)?;
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            file.set_len(end.map_or(0, |end| end as u64 + 1))?;
        }
        file.flush()?;
        Ok(EventFile { file })
    }
}

/// The growing record of a run.
#[derive(Debug)]
pub struct EventFile {
    file: File,
}

impl EventFile {
    /// Appends one event with one write. What a later attempt goes by is synced; that a unit begins
    /// or is skipped is not, for nothing has been done: see [`settle`](Self::settle).
    pub fn append(&mut self, event: &RunEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        match event {
            RunEvent::Unit { status, .. } if matches!(status.as_str(), "running" | "skipped") => {
                Ok(())
            }
            RunEvent::Run { .. } | RunEvent::Unit { .. } => self.settle(),
            RunEvent::Plan { .. }
            | RunEvent::Resource { .. }
            | RunEvent::Check { .. }
            | RunEvent::Diagnostic { .. } => Ok(()),
        }
    }

    /// Everything that was appended is on disk from now on. To be called before a unit changes
    /// anything.
    pub fn settle(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn no_run(message: &str) -> Error {
    Error::new(ErrorCode::RUN_UNKNOWN, message)
        .with_help("`nimbus status` names runs; those of a rehearsal need --rehearse")
}

fn damaged(path: &Path, error: &serde_json::Error) -> Error {
    let message = format!("{} is damaged: {error}", path.display());
    Error::new(ErrorCode::RUN_DAMAGED, message)
}
