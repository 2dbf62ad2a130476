//! What units were before a run first touched them, kept in the run's folder.
//!
//! A rollback needs it even if the run was killed in between, so it is on disk before the unit
//! starts. Secrets in it are encrypted as they were in the state.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, UnitName};
use nimbus_engine_backend::{BackendError, Keyring, Stack};
use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::read_unverified;
use nimbus_engine_model::secrets::{Crypter, NoSecrets};
use nimbus_orchestrator::RunId;

/// Where they are kept: a folder for each run.
#[derive(Clone, Debug)]
pub(crate) struct KeptStates {
    runs: PathBuf,
}

impl KeptStates {
    pub(crate) fn new(runs: PathBuf) -> Self {
        Self { runs }
    }

    /// Keeps a stack's state unless the run has already done so. An empty file stands for a stack
    /// that did not exist. Without a run nothing is kept and nothing can be rolled back.
    pub(crate) async fn keep(
        &self,
        run: Option<RunId>,
        unit: &UnitName,
        stack: &Stack,
    ) -> Result<()> {
        let Some(path) = self.path(run, unit) else {
            return Ok(());
        };
        if path.exists() {
            return Ok(());
        }
        let bytes = match stack.export().await {
            Ok(bytes) => bytes,
            Err(BackendError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        write_private(&path, &bytes).map_err(|error| {
            let message = format!("cannot keep the state of {unit} in {}", path.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
        })
    }

    /// What was kept; `None` when this run never touched the unit.
    pub(crate) fn find(
        &self,
        run: Option<RunId>,
        unit: &UnitName,
        keyring: &Arc<Keyring>,
    ) -> Result<Option<Snapshot>> {
        let Some(path) = self.path(run, unit) else {
            return Ok(None);
        };
        match fs::read(&path) {
            Ok(bytes) if bytes.is_empty() => Ok(Some(Snapshot::default())),
            Ok(bytes) => open(&bytes, keyring).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let message = format!("cannot read {}", path.display());
                Err(Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error))
            }
        }
    }

    fn path(&self, run: Option<RunId>, unit: &UnitName) -> Option<PathBuf> {
        let folder = self.runs.join(run?.to_string()).join("before");
        Some(folder.join(format!("{unit}.json")))
    }
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

/// Writes a file that only its owner may read: all of it or nothing.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}
