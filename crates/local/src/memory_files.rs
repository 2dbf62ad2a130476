//! What is remembered of units, on disk: a small file for each, beside the deployment's records.

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, unreadable, unwritable};
use nimbus_orchestrator::{RememberedRun, UnitMemory};
use nimbus_runs::ports::UnitMemories;

use crate::place::Records;

/// Where a deployment's memories are.
#[derive(Clone, Debug)]
pub struct MemoryFiles {
    records: Records,
}

impl MemoryFiles {
    pub fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
        }
    }

    fn path(&self, component: &ComponentName, environment: EnvironmentName) -> PathBuf {
        self.records
            .folder()
            .join(environment.as_str())
            .join(format!("{component}.json"))
    }
}

#[async_trait]
impl UnitMemories for MemoryFiles {
    async fn load(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<UnitMemory> {
        let path = self.path(component, environment);
        let text = match self.records.files().read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(UnitMemory::default());
            }
            Err(error) => return Err(unreadable(&path, error)),
        };
        serde_json::from_str(&text).map_err(|error| {
            Error::new(
                ErrorCode::MEMORY_DAMAGED,
                format!("{} is damaged: {error}", path.display()),
            )
            .with_help(
                "restore it from a backup; deleting it makes the next run deploy the unit anew",
            )
        })
    }

    async fn real(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<Option<RememberedRun>> {
        if !self.records.is_rehearsal() {
            return Ok(None);
        }
        let real = Self::new(&self.records.for_real());
        // One that cannot be read says nothing of the time. A real run complains of it.
        let memory = real.load(component, environment).await;
        Ok(memory.ok().and_then(|memory| memory.last_run))
    }

    async fn save(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        memory: &UnitMemory,
    ) -> Result<()> {
        let path = self.path(component, environment);
        let text = serde_json::to_vec_pretty(memory).unwrap_or_default();
        let files = self.records.files();
        let written = files.replace(&path, &text, FileMode::Private);
        written.map_err(|error| unwritable(&path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nimbus_orchestrator::{Fingerprint, FingerprintInput, LastOutcome, RememberedRun, RunId};
    use std::collections::BTreeMap;
    use std::fs;

    fn memory() -> UnitMemory {
        let mut fingerprint = Fingerprint::default();
        for input in [
            FingerprintInput::ProgramFile("index.ts".to_owned()),
            FingerprintInput::Config("network:zones".to_owned()),
            FingerprintInput::Environment("HOME".to_owned()),
            FingerprintInput::UpstreamOutput("network:vpcId".to_owned()),
            FingerprintInput::Resolved("{{RUNTIME:aws:x}}".to_owned()),
            FingerprintInput::Version("engine".to_owned()),
        ] {
            fingerprint.add(input, "content");
        }
        let run = RememberedRun {
            outcome: LastOutcome::Succeeded,
            drifted: false,
            state: Some("7".to_owned()),
            stack: Some("organization/p/s".to_owned()),
            seconds: 12,
            resources: 3,
            fingerprint,
            run: Some(RunId(7)),
            before: None,
        };
        UnitMemory {
            last_run: Some(run),
            made: BTreeMap::from([("{{RUNTIME:calculate:uuid}}".to_owned(), "v1:x".to_owned())]),
        }
    }

    #[tokio::test]
    async fn what_is_saved_is_loaded_and_units_do_not_mix() {
        let temp = tempfile::tempdir().unwrap();
        let store = MemoryFiles::new(&Records::real(temp.path()));
        let network = "network".parse().unwrap();
        assert_eq!(
            store.load(&network, EnvironmentName::DEV).await.unwrap(),
            UnitMemory::default()
        );
        store
            .save(&network, EnvironmentName::DEV, &memory())
            .await
            .unwrap();
        assert_eq!(
            store.load(&network, EnvironmentName::DEV).await.unwrap(),
            memory()
        );
        assert_eq!(
            store.load(&network, EnvironmentName::PROD).await.unwrap(),
            UnitMemory::default()
        );
    }

    #[tokio::test]
    async fn a_damaged_memory_is_an_error_and_not_an_empty_one() {
        let temp = tempfile::tempdir().unwrap();
        let store = MemoryFiles::new(&Records::real(temp.path()));
        let network = "network".parse().unwrap();
        store
            .save(&network, EnvironmentName::DEV, &memory())
            .await
            .unwrap();
        fs::write(temp.path().join(".nimbus/dev/network.json"), "{").unwrap();
        let error = store
            .load(&network, EnvironmentName::DEV)
            .await
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::MEMORY_DAMAGED);
    }
}
