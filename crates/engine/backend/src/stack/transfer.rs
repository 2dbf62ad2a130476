//! States that leave and enter a stack as files.
//!
//! An import is checked before anything is written, and what was there before is kept as `.bak`
//! and as a version of the stack's history.

use std::sync::Arc;

use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::{
    Layout, SecretsMode, StateError, StateFile, read_unverified, write_checkpoint, write_export,
};
use nimbus_engine_model::integrity::IntegrityFinding;
use nimbus_engine_model::secrets::{CiphertextCache, Crypter, SealedText};
use serde_json::Value;

use super::history::{UpdateInfo, UpdateKind, UpdateResult};
use super::{KeepSealed, Stack};
use crate::error::BackendError;
use crate::lease::{Lease, Owner};
use crate::secrets::{Keyring, StackSecrets};
use crate::version::StateVersion;

/// Refusals that a person may overrule, and what must still be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// A state that was written before the current one.
    pub accept_older: bool,
    /// A state that contradicts itself.
    pub accept_broken: bool,
    /// A state whose resources belong to another stack.
    pub accept_other_stack: bool,
    /// The state that this one was made of. Looked at under the lease and after what an interrupted
    /// operation left is settled: an edit of what was there before would undo both.
    pub made_of: Option<StateVersion>,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub version: StateVersion,
    pub resources: usize,
    /// What is wrong with a state that was accepted nevertheless.
    pub findings: Vec<IntegrityFinding>,
}

impl Stack {
    /// The state in the official export form, secrets encrypted. A broken state can be exported.
    pub async fn export(&self) -> Result<Vec<u8>, BackendError> {
        let unverified = self.load_unverified().await?;
        self.export_of(unverified.snapshot.as_ref(), &SealedText)
    }

    /// The same with secrets in clear text.
    pub async fn export_with_secrets(
        &self,
        keyring: &Arc<Keyring>,
    ) -> Result<Vec<u8>, BackendError> {
        let loaded = self.load(keyring).await?;
        let exported = write_export(
            loaded.snapshot.as_ref(),
            SecretsMode::Show,
            Layout::Indented,
        );
        exported.map_err(|source| self.state_error(source))
    }

    /// A version of the history in the export form.
    pub async fn export_version(&self, bytes: &[u8]) -> Result<Vec<u8>, BackendError> {
        let wrong = |source| self.state_error(source);
        let file = read_unverified(bytes).map_err(wrong)?;
        let opened = file
            .deployment
            .map(|deployment| deployment.open(&SealedText));
        let snapshot = opened
            .transpose()
            .map_err(wrong)?
            .map(|(snapshot, _)| snapshot);
        self.export_of(snapshot.as_ref(), &SealedText)
    }

    fn export_of(
        &self,
        snapshot: Option<&Snapshot>,
        crypter: &dyn Crypter,
    ) -> Result<Vec<u8>, BackendError> {
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt {
            crypter,
            cache: &mut cache,
        };
        let exported = write_export(snapshot, secrets, Layout::Indented);
        exported.map_err(|source| self.state_error(source))
    }

    /// Replaces the state by what a file holds, an export or a backend's own file. Secrets that the
    /// file has in clear text are encrypted.
    pub async fn import(
        &self,
        bytes: &[u8],
        options: ImportOptions,
        owner: Owner,
        keyring: &Arc<Keyring>,
    ) -> Result<Imported, BackendError> {
        let file = self.checked(bytes, options)?;
        let import = async |lease: &Lease| self.import_under(lease, file, options, keyring).await;
        self.locked(owner, import).await
    }

    fn checked(&self, bytes: &[u8], options: ImportOptions) -> Result<StateFile, BackendError> {
        let wrong = |source: StateError| BackendError::state("the given state", source);
        let file = read_unverified(bytes).map_err(wrong)?;
        if let Some(deployment) = file.deployment.as_ref().filter(|_| !options.accept_broken) {
            deployment.verify().map_err(wrong)?;
        }
        if !options.accept_other_stack {
            file.check_stack(self.stack.project(), self.stack.stack())
                .map_err(wrong)?;
        }
        Ok(file)
    }

    async fn import_under(
        &self,
        lease: &Lease,
        file: StateFile,
        options: ImportOptions,
        keyring: &Arc<Keyring>,
    ) -> Result<Imported, BackendError> {
        self.recover(lease, keyring).await?;
        let current = self.must_find().await?;
        if let Some(expected) = options.made_of
            && expected.sha256 != current.digest
        {
            let stack = self.stack.clone();
            return Err(BackendError::Changed { stack, expected });
        }
        if !options.accept_older {
            self.refuse_older(&file, &current.bytes)?;
        }
        let findings = file
            .deployment
            .as_ref()
            .map(|d| d.findings())
            .unwrap_or_default();
        let (bytes, resources) = self.checkpoint_of(file, keyring)?;
        let (stored, version) = self.save(lease, Some(&current), bytes).await?;
        self.record(&self.import_record(), &stored).await?;
        Ok(Imported {
            version,
            resources,
            findings,
        })
    }

    /// Compares what the two states say about when they were written. A current state that cannot
    /// be read is no reason to refuse a good one.
    fn refuse_older(&self, given: &StateFile, current: &[u8]) -> Result<(), BackendError> {
        let Ok(current) = read_unverified(current) else {
            return Ok(());
        };
        let written = |file: &StateFile| file.deployment.as_ref().map(|d| d.manifest().time);
        match (written(given), written(&current)) {
            (Some(given), Some(current)) if given < current => {
                Err(BackendError::Older { given, current })
            }
            _ => Ok(()),
        }
    }

    fn checkpoint_of(
        &self,
        file: StateFile,
        keyring: &Arc<Keyring>,
    ) -> Result<(Vec<u8>, usize), BackendError> {
        let wrong = |source| self.state_error(source);
        let provider = file
            .deployment
            .as_ref()
            .and_then(|d| d.secrets_provider().cloned());
        let secrets = StackSecrets::new(keyring, provider);
        let crypter = KeepSealed::new(&secrets);
        let mut snapshot = match file.deployment {
            Some(deployment) => Some(deployment.open(&crypter).map_err(wrong)?.0),
            None => None,
        };
        let write = |snapshot: Option<&Snapshot>| {
            let mut cache = CiphertextCache::default();
            let secrets = SecretsMode::Encrypt {
                crypter: &crypter,
                cache: &mut cache,
            };
            write_checkpoint(&self.head(), snapshot, secrets, Layout::Compact).map_err(wrong)
        };
        let mut bytes = write(snapshot.as_ref())?;
        // The first secret of a stack brings a provider, which belongs into the file too.
        if let Some(snapshot) = &mut snapshot
            && snapshot.secrets_provider != secrets.provider()
        {
            snapshot.secrets_provider = secrets.provider();
            bytes = write(Some(snapshot))?;
        }
        Ok((
            bytes,
            snapshot.map_or(0, |snapshot| snapshot.resources.len()),
        ))
    }

    fn import_record(&self) -> UpdateInfo {
        let now = self.now().as_second();
        UpdateInfo {
            kind: UpdateKind::Import,
            start_time: now,
            message: String::new(),
            environment: None,
            config: Value::Null,
            version: 0,
            result: UpdateResult::Succeeded,
            end_time: now,
            resource_changes: None,
        }
    }
}
