//! Versions of environments on disk: one small file for each, never changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::record::VersionRecord;

use crate::before::write_private;

#[derive(Clone, Debug)]
pub struct Versions {
    folder: PathBuf,
}

impl Versions {
    pub fn of_environment(directory: &Path, environment: Environment) -> Self {
        let folder = directory.join(".nimbus/versions");
        Self {
            folder: folder.join(environment.as_str()),
        }
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Result<Vec<VersionRecord>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(unreadable(&self.folder, &error)),
        };
        for entry in entries {
            let path = entry
                .map_err(|error| unreadable(&self.folder, &error))?
                .path();
            if path.extension().is_some_and(|ending| ending == "json") {
                let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
                let record: VersionRecord = serde_json::from_slice(&bytes).map_err(|error| {
                    let message = format!("{} is damaged: {error}", path.display());
                    Error::new(ErrorCode::RUN_DAMAGED, message)
                })?;
                found.push(record);
            }
        }
        found.sort_by_key(|record| record.version);
        Ok(found)
    }

    pub fn last(&self) -> Result<Option<VersionRecord>> {
        Ok(self.all()?.pop())
    }

    pub fn find(&self, version: u32) -> Result<VersionRecord> {
        let found = self.all()?.into_iter().find(|one| one.version == version);
        found.ok_or_else(|| {
            let message = format!("the environment has no version {version}");
            Error::new(ErrorCode::VERSION_UNKNOWN, message)
                .with_help("`nimbus rollback ID --environment E --list` shows what there is")
        })
    }

    pub fn add(&self, record: &VersionRecord) -> Result<()> {
        let path = self.folder.join(format!("{:06}.json", record.version));
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        write_private(&path, &text).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot read {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNREADABLE, message)
}
