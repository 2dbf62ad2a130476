//! One operation on a stack, from taking the lease to writing the new state.

use std::sync::Arc;

use nimbus_engine_model::format::{SecretsMode, write_checkpoint};
use nimbus_engine_model::integrity::{self, IntegrityFinding};
use nimbus_engine_model::{IntegrityRecord, Snapshot, SnapshotManifest};
use nimbus_engine_ports::Journal;

use crate::ENGINE_VERSION;
use crate::digest::Digest;
use crate::error::BackendError;
use crate::journal::{FORMAT, JournalHeader, JournalSecrets, StackJournal, discard};
use crate::lease::{Lease, LeaseGuard, Owner};
use crate::recovery::RecoveryReport;
use crate::secrets::{DeclaredSecrets, Keyring, StackSecrets};
use crate::stack::{LoadedState, Stack, UpdateInfo, UpdateKind};
use crate::version::StateVersion;

/// What an operation says about itself before it starts.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub kind: UpdateKind,
    pub owner: Owner,
    pub keyring: Arc<Keyring>,
    /// What the stack's settings say; where they say nothing, the state's own provider is used.
    pub secrets: DeclaredSecrets,
    /// Refuse any other state than this, which a plan was made for.
    pub expected: Option<StateVersion>,
}

/// The right to change a stack, and everything that is needed to do so. Ends with
/// [`finish`](Self::finish) or [`end`](Self::end). One that is dropped leaves its journal, and the
/// next session picks it up.
pub struct StackSession {
    stack: Stack,
    lease: LeaseGuard,
    loaded: LoadedState,
    recovered: Vec<RecoveryReport>,
    secrets: Arc<StackSecrets>,
    journal: Arc<StackJournal>,
    command: String,
}

/// What a finished operation left.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub version: StateVersion,
    /// Rules that the state breaks. It was written nevertheless: it is the only record.
    pub findings: Vec<IntegrityFinding>,
}

impl Stack {
    /// Takes the lease, settles what an earlier operation left, and reads the state.
    pub async fn begin(&self, request: SessionRequest) -> Result<StackSession, BackendError> {
        self.backend.check_space()?;
        let lease = self.lock(request.owner.clone()).await?;
        let prepared = match self.prepare(&lease, &request).await {
            Ok(prepared) => prepared,
            Err(error) => {
                lease.release().await?;
                return Err(error);
            }
        };
        Ok(self.start(lease, prepared, request))
    }

    /// Settles what was left, reads the state, and refuses one that was not expected. In this order: a
    /// journal that is left changes the state, which then is not what a plan was made for.
    async fn prepare(
        &self,
        lease: &Lease,
        request: &SessionRequest,
    ) -> Result<(Vec<RecoveryReport>, LoadedState), BackendError> {
        let recovered = self.recover(lease, &request.keyring).await?;
        let loaded = self.load(&request.keyring).await?;
        if let Some(expected) = request
            .expected
            .filter(|expected| *expected != loaded.version)
        {
            return Err(BackendError::Changed {
                stack: self.stack.clone(),
                expected,
            });
        }
        Ok((recovered, loaded))
    }

    fn start(
        &self,
        lease: LeaseGuard,
        (recovered, loaded): (Vec<RecoveryReport>, LoadedState),
        request: SessionRequest,
    ) -> StackSession {
        let recorded = loaded
            .snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.secrets_provider.clone());
        let secrets = StackSecrets::declared(&request.keyring, &request.secrets, recorded);
        let secrets = Arc::new(secrets);
        let header = JournalHeader {
            format: FORMAT,
            stack: self.stack.to_string(),
            operation: request.kind,
            epoch: lease.epoch(),
            base: loaded.version,
            started: self.now(),
            owner: request.owner.clone(),
            secrets: secrets.provider().map(JournalSecrets::from),
        };
        let place = self.backend.place();
        let journal = StackJournal::start(place, &lease, &header, Arc::clone(&secrets));
        StackSession {
            stack: self.clone(),
            lease,
            loaded,
            recovered,
            secrets,
            journal: Arc::new(journal),
            command: request.owner.command,
        }
    }
}

impl StackSession {
    /// The state to start from; `None` when nothing was ever deployed.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.loaded.snapshot.as_ref()
    }

    pub fn version(&self) -> StateVersion {
        self.loaded.version
    }

    /// What earlier operations had left unfinished.
    pub fn recovered(&self) -> &[RecoveryReport] {
        &self.recovered
    }

    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    pub fn secrets(&self) -> &Arc<StackSecrets> {
        &self.secrets
    }

    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.journal) as Arc<dyn Journal>
    }

    /// Writes the new state and its place in history, and lets others in.
    pub async fn finish(
        mut self,
        snapshot: Snapshot,
        update: &UpdateInfo,
    ) -> Result<Finished, BackendError> {
        let result = self.write(snapshot, update).await;
        let released = self.lease.release().await;
        let finished = result?;
        released?;
        Ok(finished)
    }

    /// Lets others in without writing anything. A journal with entries stays, and is settled by
    /// the next session.
    pub async fn end(self) -> Result<(), BackendError> {
        Ok(self.lease.release().await?)
    }

    async fn write(
        &mut self,
        mut snapshot: Snapshot,
        update: &UpdateInfo,
    ) -> Result<Finished, BackendError> {
        let findings = self.stamp(&mut snapshot);
        let bytes = self.encode(&mut snapshot)?;
        // In this order: what is written next is announced first, and the journal goes last.
        self.journal.close(Digest::of(&bytes)).await?;
        let previous = Some(&self.loaded.stored);
        let (stored, version) = self.stack.save(&self.lease, previous, bytes).await?;
        self.stack.record(update, &stored).await?;
        let (place, name) = (self.stack.backend.place(), &self.stack.stack);
        discard(place, name, self.lease.epoch()).await?;
        Ok(Finished { version, findings })
    }

    /// Says who wrote the state and when, and whether it hangs together.
    fn stamp(&self, snapshot: &mut Snapshot) -> Vec<IntegrityFinding> {
        let plugins = std::mem::take(&mut snapshot.manifest.plugins);
        let extra = std::mem::take(&mut snapshot.manifest.extra);
        let manifest = SnapshotManifest::new(ENGINE_VERSION, self.stack.now());
        snapshot.manifest = SnapshotManifest {
            plugins,
            extra,
            ..manifest
        };
        let findings = integrity::verify(snapshot);
        snapshot.integrity_error = findings.first().map(|first| IntegrityRecord {
            version: ENGINE_VERSION.to_owned(),
            command: self.command.clone(),
            error: first.to_string(),
            env_vars: Default::default(),
        });
        findings
    }

    fn encode(&mut self, snapshot: &mut Snapshot) -> Result<Vec<u8>, BackendError> {
        loop {
            snapshot.secrets_provider = self.secrets.provider();
            let mut cache = self.loaded.ciphertexts.clone();
            // Ciphertexts of another key are worth nothing.
            if self.loaded_provider() != snapshot.secrets_provider {
                cache = Default::default();
            }
            let crypter = self.secrets.as_ref();
            let mode = SecretsMode::Encrypt {
                crypter,
                cache: &mut cache,
            };
            let bytes =
                write_checkpoint(&self.loaded.head, Some(snapshot), mode, self.loaded.layout)
                    .map_err(|source| self.stack.state_error(source))?;
            // The first secret of a stack brings its provider, which then has to be written too.
            if self.secrets.provider() == snapshot.secrets_provider {
                return Ok(bytes);
            }
        }
    }

    fn loaded_provider(&self) -> Option<nimbus_engine_model::SecretsProvider> {
        let snapshot = self.loaded.snapshot.as_ref();
        snapshot.and_then(|snapshot| snapshot.secrets_provider.clone())
    }
}
