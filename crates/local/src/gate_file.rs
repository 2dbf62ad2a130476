//! What people vouch for before an environment is followed, in one small file of the deployment.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, layout, unreadable, unwritable};
use nimbus_runs::ports::{GateSignature, GateStore};

use crate::place::Records;

/// Gates of a deployment.
#[derive(Clone, Debug)]
pub struct GateFile {
    records: Records,
}

type Signatures = BTreeMap<EnvironmentName, BTreeMap<String, GateSignature>>;

impl GateFile {
    pub fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        layout::gates(self.records.directory())
    }

    fn load(&self) -> Result<Signatures> {
        let path = self.path();
        let bytes = match self.records.files().read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Signatures::new()),
            Err(error) => return Err(unreadable(&path, error)),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} is damaged: {error}", path.display());
            Error::new(ErrorCode::RUN_DAMAGED, message)
        })
    }
}

#[async_trait]
impl GateStore for GateFile {
    async fn signatures(
        &self,
        environment: EnvironmentName,
    ) -> Result<BTreeMap<String, GateSignature>> {
        Ok(self.load()?.remove(&environment).unwrap_or_default())
    }

    async fn sign(
        &self,
        environment: EnvironmentName,
        item: &str,
        signature: GateSignature,
    ) -> Result<()> {
        let mut file = self.load()?;
        let items = file.entry(environment).or_default();
        items.insert(item.to_owned(), signature);
        let text = serde_json::to_vec_pretty(&file).unwrap_or_default();
        let written = self
            .records
            .files()
            .replace(&self.path(), &text, FileMode::Private);
        written.map_err(|error| unwritable(&self.path(), error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn what_was_signed_is_kept_by_environment_and_damage_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let gates = GateFile::new(&Records::real(temp.path()));
        let signature = GateSignature {
            user: "ann".to_owned(),
            at: "2026-01-02T03:04:05Z".to_owned(),
            note: "2000/s".to_owned(),
        };
        let signed = gates.sign(EnvironmentName::STAGE, "load-tests", signature.clone());
        signed.await.unwrap();
        let stage = gates.signatures(EnvironmentName::STAGE).await.unwrap();
        assert_eq!(stage["load-tests"], signature);
        let dev = gates.signatures(EnvironmentName::DEV).await.unwrap();
        assert!(dev.is_empty());
        fs::write(temp.path().join(".nimbus/gates.json"), "{").unwrap();
        let damaged = gates.signatures(EnvironmentName::DEV).await.unwrap_err();
        assert_eq!(damaged.code(), ErrorCode::RUN_DAMAGED);
    }
}
