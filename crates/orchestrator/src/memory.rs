//! What is remembered of a unit between runs: its fingerprint, how its last run ended, and values
//! that were made up once and must stay the same.
//!
//! A small file beside the deployment's manifest for each unit. Secret ones are kept as ciphertext;
//! whoever uses them brings the key.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::fingerprint::{Fingerprint, LastRun};

/// The remembered things of one unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RememberedRun>,
    /// What calculations made, by name and parameters; secrets encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RememberedRun {
    pub succeeded: bool,
    #[serde(default)]
    pub drifted: bool,
    /// Seconds that it took; plans learn from it.
    pub seconds: u64,
    pub resources: u64,
    pub fingerprint: Fingerprint,
}

impl Memory {
    pub fn last(&self) -> Option<LastRun> {
        self.last_run.as_ref().map(|run| LastRun {
            succeeded: run.succeeded,
            drifted: run.drifted,
            fingerprint: run.fingerprint.clone(),
        })
    }
}

/// Where a deployment's memories are.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    directory: PathBuf,
}

impl MemoryStore {
    pub fn of_deployment(directory: &Path) -> Self {
        Self {
            directory: directory.join(".nimbus"),
        }
    }

    /// A unit that nothing is known of has an empty memory. A file that cannot be understood is
    /// an error: treating it as empty would make new passwords.
    pub fn load(&self, stack: &str, environment: Environment) -> Result<Memory> {
        let path = self.path(stack, environment);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Memory::default()),
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                return Err(Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error));
            }
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

    pub fn save(&self, stack: &str, environment: Environment, memory: &Memory) -> Result<()> {
        let path = self.path(stack, environment);
        let write = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let draft = path.with_extension("new");
            fs::write(&draft, serde_json::to_vec_pretty(memory)?)?;
            fs::File::open(&draft)?.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(|error: io::Error| {
            let message = format!("cannot write {}: {error}", path.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    fn path(&self, stack: &str, environment: Environment) -> PathBuf {
        self.directory
            .join(environment.as_str())
            .join(format!("{stack}.json"))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.inputs()
                .map(|(input, digest)| (input.to_string(), digest)),
        )
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let inputs = BTreeMap::<String, String>::deserialize(deserializer)?;
        Fingerprint::from_parts(inputs).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Input;

    fn memory() -> Memory {
        let mut fingerprint = Fingerprint::default();
        for input in [
            Input::ProgramFile("index.ts".to_owned()),
            Input::Config("network:zones".to_owned()),
            Input::Environment("HOME".to_owned()),
            Input::UpstreamOutput("network:vpcId".to_owned()),
            Input::Resolved("{{RUNTIME:aws:x}}".to_owned()),
            Input::Version("engine".to_owned()),
        ] {
            fingerprint.add(input, "content");
        }
        let run = RememberedRun {
            succeeded: true,
            drifted: false,
            seconds: 12,
            resources: 3,
            fingerprint,
        };
        Memory {
            last_run: Some(run),
            made: BTreeMap::from([("{{RUNTIME:calculate:uuid}}".to_owned(), "v1:x".to_owned())]),
        }
    }

    #[test]
    fn what_is_saved_is_loaded_and_units_do_not_mix() {
        let temp = tempfile::tempdir().unwrap();
        let store = MemoryStore::of_deployment(temp.path());
        assert_eq!(
            store.load("network", Environment::Dev).unwrap(),
            Memory::default()
        );
        store.save("network", Environment::Dev, &memory()).unwrap();
        assert_eq!(store.load("network", Environment::Dev).unwrap(), memory());
        assert_eq!(
            store.load("network", Environment::Prod).unwrap(),
            Memory::default()
        );
    }

    #[test]
    fn a_damaged_memory_is_an_error_and_not_an_empty_one() {
        let temp = tempfile::tempdir().unwrap();
        let store = MemoryStore::of_deployment(temp.path());
        store.save("network", Environment::Dev, &memory()).unwrap();
        fs::write(temp.path().join(".nimbus/dev/network.json"), "{").unwrap();
        let error = store.load("network", Environment::Dev).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MEMORY_DAMAGED);
    }
}
