//! What units were before a run first touched them, kept in the run's folder or in a server's storage.
//!
//! A rollback needs it even if the run was killed in between, so it is on a disk before the unit
//! starts. Secrets in it are encrypted as they were in the state.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, UnitName};
use nimbus_disk::{FileMode, FolderFiles, layout, unreadable};
use nimbus_engine_backend::store::{Storage, WriteCondition};
use nimbus_engine_backend::{BackendError, Keyring, Stack};
use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::read_unverified;
use nimbus_engine_model::secrets::{Crypter, NoSecrets};
use nimbus_orchestrator::RunId;

use crate::place::Records;

/// Where they are kept.
#[derive(Clone, Debug)]
pub(crate) enum KeptStates {
    /// In a folder for each run.
    Files { runs: PathBuf, files: FolderFiles },
    /// In a server's storage, below a key for each run.
    Objects { storage: Arc<dyn Storage> },
}

impl KeptStates {
    pub(crate) fn new(records: &Records) -> Self {
        Self::Files {
            runs: layout::runs(records.directory()),
            files: records.files().clone(),
        }
    }

    /// Keeps a stack's state unless the run has already done so. Nothing in it stands for a stack that
    /// did not exist. Without a run nothing is kept and nothing can be rolled back.
    pub(crate) async fn keep(
        &self,
        run: Option<RunId>,
        unit: &UnitName,
        stack: &Stack,
    ) -> Result<()> {
        let Some(run) = run else {
            return Ok(());
        };
        // The first one counts: what a second attempt finds is what the first left half done.
        if self.read(run, unit).await?.is_some() {
            return Ok(());
        }
        let bytes = match stack.export().await {
            Ok(bytes) => bytes,
            Err(BackendError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        match self {
            Self::Files { runs, files } => {
                let path = path_in(runs, run, unit);
                let written = files.replace(&path, &bytes, FileMode::Private);
                written.map_err(|error| {
                    let message = format!("cannot keep the state of {unit} in {}", path.display());
                    Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
                })
            }
            Self::Objects { storage } => {
                let key = key_of(run, unit);
                let put = storage
                    .put(&key, bytes.into(), WriteCondition::Absent)
                    .await;
                // Refused means that it was kept meanwhile, which is as good.
                put.map(drop)
                    .map_err(|error| BackendError::from(error).into())
            }
        }
    }

    /// What was kept; `None` when the run never touched the unit.
    pub(crate) async fn find(
        &self,
        run: RunId,
        unit: &UnitName,
        keyring: &Arc<Keyring>,
    ) -> Result<Option<Snapshot>> {
        match self.read(run, unit).await? {
            Some(bytes) if bytes.is_empty() => Ok(Some(Snapshot::default())),
            Some(bytes) => open(&bytes, keyring).map(Some),
            None => Ok(None),
        }
    }

    async fn read(&self, run: RunId, unit: &UnitName) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Files { runs, files } => {
                let path = path_in(runs, run, unit);
                match files.read(&path) {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(unreadable(&path, error)),
                }
            }
            Self::Objects { storage } => {
                let found = storage.get(&key_of(run, unit)).await;
                let found = found.map_err(BackendError::from)?;
                Ok(found.map(|object| object.bytes.to_vec()))
            }
        }
    }
}

fn path_in(runs: &Path, run: RunId, unit: &UnitName) -> PathBuf {
    let folder = runs.join(run.to_string()).join("before");
    folder.join(format!("{unit}.json"))
}

fn key_of(run: RunId, unit: &UnitName) -> String {
    format!(".nimbus/runs/{run}/before/{unit}.json")
}

/// Whether a state names how its secrets are protected, and we can open them.
pub(crate) fn try_secrets(bytes: &[u8], keyring: &Arc<Keyring>) -> Result<bool> {
    let Some(deployment) = read_unverified(bytes)?.deployment else {
        return Ok(false);
    };
    let Some(provider) = deployment.secrets_provider() else {
        return Ok(false);
    };
    keyring.open(provider).map_err(BackendError::from)?;
    Ok(true)
}

/// A state from its bytes, secrets opened.
pub(crate) fn open(bytes: &[u8], keyring: &Arc<Keyring>) -> Result<Snapshot> {
    let Some(deployment) = read_unverified(bytes)?.deployment else {
        return Ok(Snapshot::default());
    };
    let crypter: Arc<dyn Crypter> = match deployment.secrets_provider() {
        Some(provider) if deployment.has_secrets() => {
            keyring.open(provider).map_err(BackendError::from)?
        }
        _ => Arc::new(NoSecrets),
    };
    Ok(deployment.open(crypter.as_ref())?.0)
}

/// Writes a file that only its owner may read: all of it or nothing, and on disk.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    nimbus_disk::replace(path, bytes, FileMode::Private)
}
