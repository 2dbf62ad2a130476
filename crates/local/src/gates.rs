//! What people vouch for before an environment is promoted, in one small file of the deployment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::gate::Evidence;
use nimbus_orchestrator::run::RunResult;
use serde::{Deserialize, Serialize};

use crate::before::write_private;
use crate::runs::RunStore;

/// Gates of a deployment.
#[derive(Clone, Debug)]
pub struct Gates {
    directory: PathBuf,
}

/// Somebody says that an item is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    pub user: String,
    /// RFC 3339.
    pub at: String,
    pub note: String,
}

type File = BTreeMap<Environment, BTreeMap<String, Signature>>;

impl Gates {
    pub fn of_deployment(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Records that an item is done.
    ///
    /// # Errors
    ///
    /// When the file is damaged or cannot be written.
    pub fn sign(&self, environment: Environment, item: &str, signature: Signature) -> Result<()> {
        let mut file = self.load()?;
        let items = file.entry(environment).or_default();
        items.insert(item.to_owned(), signature);
        let text = serde_json::to_vec_pretty(&file).unwrap_or_default();
        write_private(&self.path(), &text).map_err(|error| {
            let message = format!("cannot write {}: {error}", self.path().display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    /// What is known about an environment. A signature that is older than the last deploy counts
    /// for what was there before, so it does not count.
    ///
    /// # Errors
    ///
    /// When a record is damaged or cannot be read.
    pub fn evidence(&self, environment: Environment, enabled: bool) -> Result<Evidence> {
        let mut evidence = Evidence {
            enabled,
            ..Evidence::default()
        };
        let runs = RunStore::of_deployment(&self.directory).of_environment(environment)?;
        let mut since = String::new();
        if let Some(last) = runs.first() {
            let standing = last.standing()?;
            evidence.deployed = standing.result == Some(RunResult::Succeeded);
            evidence.checks = standing.checks;
            since.clone_from(&last.record.started);
            let ended = standing
                .ended_at
                .and_then(|at| at.parse::<Timestamp>().ok());
            let age = ended.map(|at| Timestamp::now().duration_since(at).as_hours());
            // A clock that was set back gives nothing away.
            evidence.hours = age.and_then(|hours| u64::try_from(hours).ok()).unwrap_or(0);
        }
        let signed = self.load()?.remove(&environment).unwrap_or_default();
        evidence.signed = signed
            .into_iter()
            .filter(|(item, one)| item == "window" || one.at >= since)
            .map(|(item, one)| (item, format!("{} at {}: {}", one.user, one.at, one.note)))
            .collect();
        Ok(evidence)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(".nimbus/gates.json")
    }

    fn load(&self) -> Result<File> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(File::new()),
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                return Err(Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error));
            }
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} is damaged: {error}", path.display());
            Error::new(ErrorCode::RUN_DAMAGED, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_evidence_with_its_words() {
        let temp = tempfile::tempdir().unwrap();
        let gates = Gates::of_deployment(temp.path());
        let signature = Signature {
            user: "ann".to_owned(),
            at: "2026-01-02T03:04:05Z".to_owned(),
            note: "2000/s".to_owned(),
        };
        gates
            .sign(Environment::Stage, "load-tests", signature)
            .unwrap();
        let evidence = gates.evidence(Environment::Stage, true).unwrap();
        let words = &evidence.signed["load-tests"];
        assert_eq!(words, "ann at 2026-01-02T03:04:05Z: 2000/s");
        assert!(
            gates
                .evidence(Environment::Dev, true)
                .unwrap()
                .signed
                .is_empty()
        );
        fs::write(temp.path().join(".nimbus/gates.json"), "{").unwrap();
        let damaged = gates.evidence(Environment::Dev, true).unwrap_err();
        assert_eq!(damaged.code(), ErrorCode::RUN_DAMAGED);
    }
}
