//! Reading a stack's state.

use std::sync::Arc;

use nimbus_core::Serial;
use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::{
    CheckpointHead, FileForm, Layout, StateError, StateFile, read_checkpoint, read_unverified,
};
use nimbus_engine_model::integrity::IntegrityFinding;
use nimbus_engine_model::secrets::{CiphertextCache, Crypter, NoSecrets, SealedText};

use super::{Stack, Stored};
use crate::error::BackendError;
use crate::secrets::Keyring;
use crate::version::StateVersion;

/// A state that can be worked on.
#[derive(Clone, Debug)]
pub struct LoadedState {
    /// `None` when nothing was ever deployed.
    pub snapshot: Option<Snapshot>,
    pub version: StateVersion,
    /// The number that this very content had before something newer was written; somebody has put
    /// an old state back without Nimbus.
    pub put_back_from: Option<Serial>,
    pub(crate) head: CheckpointHead,
    pub(crate) layout: Layout,
    /// Ciphertexts of the secrets, kept for those that do not change.
    pub(crate) ciphertexts: CiphertextCache,
    pub(crate) stored: Stored,
}

/// A state to be looked at or repaired, perhaps a broken one. Its secrets are closed.
#[derive(Clone, Debug)]
pub struct Unverified {
    pub snapshot: Option<Snapshot>,
    pub version: StateVersion,
    /// Every rule that the state breaks.
    pub findings: Vec<IntegrityFinding>,
}

impl Stack {
    /// Reads the state, with its secrets. Refuses one that cannot be worked on.
    pub async fn load(&self, keyring: &Arc<Keyring>) -> Result<LoadedState, BackendError> {
        let stored = self.must_find().await?;
        self.open(stored, keyring).await
    }

    /// Reads the state without its secrets and whatever is wrong with it.
    pub async fn load_unverified(&self) -> Result<Unverified, BackendError> {
        let stored = self.must_find().await?;
        let version = self.version_of(stored.digest).await?;
        let wrong = |source| BackendError::state(&stored.key, source);
        let file = read_unverified(&stored.bytes).map_err(wrong)?;
        let findings = file
            .deployment
            .as_ref()
            .map(|d| d.findings())
            .unwrap_or_default();
        let snapshot = file
            .deployment
            .map(|deployment| deployment.open(&SealedText))
            .transpose()
            .map_err(wrong)?
            .map(|(snapshot, _)| snapshot);
        Ok(Unverified {
            snapshot,
            version,
            findings,
        })
    }

    pub(crate) async fn open(
        &self,
        stored: Stored,
        keyring: &Arc<Keyring>,
    ) -> Result<LoadedState, BackendError> {
        let ledger = self.ledger().await?;
        let version = ledger.current(stored.digest);
        let put_back_from = ledger.earlier(stored.digest);
        let (this, keyring) = (self.clone(), Arc::clone(keyring));
        // Large states take a while to parse, and keys take a while to derive.
        let work = move || {
            let file = this.read(&stored)?;
            let (head, layout) = (this.head_of(&file), file.layout);
            let (snapshot, ciphertexts) = this.open_secrets(&stored, file, &keyring)?;
            Ok(LoadedState {
                snapshot,
                version,
                put_back_from,
                head,
                layout,
                ciphertexts,
                stored,
            })
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(loaded) => loaded,
            Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
        }
    }

    /// Parses a checkpoint and refuses it if it is damaged, contradicts itself or is another's.
    pub(crate) fn read(&self, stored: &Stored) -> Result<StateFile, BackendError> {
        let wrong = |source: StateError| BackendError::state(&stored.key, source);
        let file = read_checkpoint(&stored.bytes).map_err(wrong)?;
        file.check_stack(self.stack.project(), self.stack.stack())
            .map_err(wrong)?;
        Ok(file)
    }

    /// The head of the next checkpoint: this stack's full name, and what else the last one had.
    pub(crate) fn head_of(&self, file: &StateFile) -> CheckpointHead {
        let extra = match &file.form {
            FileForm::Checkpoint(head) => head.extra.clone(),
            FileForm::Export => Default::default(),
        };
        CheckpointHead {
            extra,
            ..self.head()
        }
    }

    fn open_secrets(
        &self,
        stored: &Stored,
        file: StateFile,
        keyring: &Keyring,
    ) -> Result<(Option<Snapshot>, CiphertextCache), BackendError> {
        let Some(deployment) = file.deployment else {
            return Ok((None, CiphertextCache::default()));
        };
        let crypter: Arc<dyn Crypter> = match deployment.secrets_provider() {
            Some(provider) if deployment.has_secrets() => keyring.open(provider)?,
            _ => Arc::new(NoSecrets),
        };
        let opened = deployment.open(crypter.as_ref());
        let wrong = |source| BackendError::state(&stored.key, source);
        let (snapshot, ciphertexts) = opened.map_err(wrong)?;
        Ok((Some(snapshot), ciphertexts))
    }
}
