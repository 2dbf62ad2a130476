//! Versions of environments on disk: one small file for each, never changed.

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, layout, unreadable, unwritable};
use nimbus_orchestrator::VersionRecord;
use nimbus_runs::ports::VersionStore;

use crate::place::Records;

#[derive(Clone, Debug)]
pub struct VersionFiles {
    records: Records,
}

impl VersionFiles {
    pub fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
        }
    }

    fn folder(&self, environment: EnvironmentName) -> PathBuf {
        layout::versions(self.records.directory()).join(environment.as_str())
    }
}

#[async_trait]
impl VersionStore for VersionFiles {
    async fn all(&self, environment: EnvironmentName) -> Result<Vec<VersionRecord>> {
        let folder = self.folder(environment);
        let mut found = Vec::new();
        let files = self.records.files();
        let entries = match files.entries(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(unreadable(&folder, error)),
        };
        for path in entries {
            if path.extension().is_some_and(|ending| ending == "json") {
                let bytes = files
                    .read(&path)
                    .map_err(|error| unreadable(&path, error))?;
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

    async fn add(&self, environment: EnvironmentName, record: &VersionRecord) -> Result<()> {
        let name = format!("{:06}.json", record.version);
        let path = self.folder(environment).join(name);
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        let files = self.records.files();
        let written = files.replace(&path, &text, FileMode::Private);
        written.map_err(|error| unwritable(&path, error))
    }
}
