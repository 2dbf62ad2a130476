//! After a crash: what an interrupted operation is known to have done, and what nobody knows.
//!
//! The journal is applied to the state that it started from, and to no other. Secrets stay closed,
//! so no passphrase is needed. Nothing is deleted before its successor is durable: the torn end of
//! a journal is saved before it is cut off, and the journal itself is put away as evidence only
//! when the checkpoint that holds everything in it is on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::Epoch;
use nimbus_engine_model::format::{SecretsMode, read_checkpoint, write_checkpoint};
use nimbus_engine_model::journal::{decode, replay};
use nimbus_engine_model::secrets::{CiphertextCache, Crypter, NoSecrets};
use nimbus_engine_model::{
    ActId, JournalEntry, OperationKind, PendingOperation, SecretsProvider, Snapshot,
    SnapshotManifest, Urn,
};

use crate::ENGINE_VERSION;
use crate::digest::Digest;
use crate::error::BackendError;
use crate::journal::{LeftOver, put_away};
use crate::lease::{Lease, Owner};
use crate::secrets::Keyring;
use crate::stack::{KeepSealed, Stack, Stored, UpdateInfo, UpdateKind, UpdateResult};
use crate::version::StateVersion;

/// What was found of an interrupted operation.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryReport {
    pub operation: UpdateKind,
    pub owner: Owner,
    pub started: Timestamp,
    pub epoch: Epoch,
    /// The state that the operation started from.
    pub base: StateVersion,
    /// Acts whose outcome was recorded, in the order of their outcomes.
    pub known: Vec<KnownAct>,
    /// Acts that were begun; whether they happened has to be looked up or asked.
    pub unknown: Vec<UnknownAct>,
    /// An unfinished last line that was cut off.
    pub torn: Option<TornEnd>,
    pub journal: JournalOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAct {
    pub act: ActId,
    /// `None` for book-keeping without an external act.
    pub kind: Option<OperationKind>,
    pub urn: Option<Urn>,
    pub outcome: RecordedOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedOutcome {
    Succeeded,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAct {
    pub act: ActId,
    pub kind: OperationKind,
    pub urn: Urn,
    pub id: Option<String>,
    /// What was said about it, if anything was.
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornEnd {
    pub bytes: usize,
    /// Where it is kept; `None` as long as nothing was touched.
    pub evidence: Option<String>,
}

/// What became of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalOutcome {
    /// It was only looked at.
    Waiting,
    /// It is part of the state now, and lies where `evidence` says.
    Compacted {
        version: StateVersion,
        evidence: String,
    },
    /// It was part of the state already: the crash came after the checkpoint.
    WasCompacted { evidence: String },
}

impl Stack {
    /// Looks at what an operation has left, without touching it. While [`holder`](Self::holder)
    /// names somebody, the operation may still be running.
    pub async fn interrupted(&self) -> Result<Option<RecoveryReport>, BackendError> {
        let left_over = LeftOver::find(self.backend.place(), &self.stack).await?;
        let Some(left_over) = left_over else {
            return Ok(None);
        };
        let entries = self.entries(&left_over, &KeepSealed::new(&NoSecrets))?;
        Ok(Some(report(
            &left_over,
            &entries,
            None,
            JournalOutcome::Waiting,
        )))
    }

    /// Why the next operation could not settle the journal that was left, if it could not. Nothing is
    /// written.
    pub async fn try_journal(&self, keyring: &Arc<Keyring>) -> Result<(), BackendError> {
        let left_over = LeftOver::find(self.backend.place(), &self.stack).await?;
        let Some(left_over) = left_over else {
            return Ok(());
        };
        let stored = self.must_find().await?;
        if left_over.closed.contains(&stored.digest) {
            return Ok(());
        }
        let base = left_over.header.base;
        if stored.digest != base.sha256 {
            let current = self.version_of(stored.digest).await?;
            let (base, current) = (Box::new(base), Box::new(current));
            let key = left_over.key.clone();
            return Err(BackendError::JournalBase { key, base, current });
        }
        let (_, bytes) = self.compacted(&left_over, &stored, keyring)?;
        let settled = read_checkpoint(&bytes).map(drop);
        settled.map_err(|error| BackendError::Replay {
            key: left_over.key.clone(),
            reason: error.to_string(),
        })
    }

    /// Puts the journal of an interrupted operation away without applying it, damaged or not. For
    /// when a person has seen to everything that it knows. Returns where it went.
    pub async fn set_journal_aside(&self, owner: Owner) -> Result<Option<String>, BackendError> {
        let aside =
            async |_: &Lease| Ok(put_away(self.backend.place(), &self.stack, self.now()).await?);
        self.locked(owner, aside).await
    }

    /// Brings the state up to date with whatever journals were left. Usually there are none.
    pub(crate) async fn recover(
        &self,
        lease: &Lease,
        keyring: &Arc<Keyring>,
    ) -> Result<Vec<RecoveryReport>, BackendError> {
        let mut reports = Vec::new();
        while let Some(left_over) = LeftOver::find(self.backend.place(), &self.stack).await? {
            reports.push(self.recover_one(lease, &left_over, keyring).await?);
        }
        Ok(reports)
    }

    async fn recover_one(
        &self,
        lease: &Lease,
        left_over: &LeftOver,
        keyring: &Arc<Keyring>,
    ) -> Result<RecoveryReport, BackendError> {
        // A journal is found by its folder, and folders can be renamed or copied by hand. Its entries name
        // resources of the other stack: applied here they would make this one believe that it owns them.
        if left_over.header.stack != self.stack.to_string() {
            let reason = format!("it belongs to {}", left_over.header.stack);
            return Err(BackendError::Replay {
                key: left_over.key.clone(),
                reason,
            });
        }
        let stored = self.must_find().await?;
        let base = left_over.header.base;
        if left_over.closed.contains(&stored.digest) {
            let entries = self.entries(left_over, &KeepSealed::new(&NoSecrets))?;
            // The crash may have come before or after the entry in the history.
            if !self.is_recorded(&stored).await? {
                self.record(&self.interruption(left_over), &stored).await?;
            }
            let evidence = left_over.archive(&self.stack, self.now()).await?;
            return Ok(report(
                left_over,
                &entries,
                None,
                JournalOutcome::WasCompacted { evidence },
            ));
        }
        // Entries name resources by their place in the state that they started from. Applied to
        // another one they would change whatever stands there.
        if stored.digest != base.sha256 {
            let current = self.version_of(stored.digest).await?;
            let key = left_over.key.clone();
            let (base, current) = (Box::new(base), Box::new(current));
            return Err(BackendError::JournalBase { key, base, current });
        }
        let (entries, bytes) = self.compacted(left_over, &stored, keyring)?;
        let torn = left_over.cut_torn_end(&self.stack, self.now()).await?;
        // Before the save: a crash between the two finds either the old state, to which the journal is
        // applied again, or the one that this digest names, to which it is not. Closed after the save, a
        // crash in between would leave a state that is neither the journal's base nor known to hold it.
        left_over.close(Digest::of(&bytes)).await?;
        let (stored, version) = self.save(lease, Some(&stored), bytes).await?;
        self.record(&self.interruption(left_over), &stored).await?;
        let evidence = left_over.archive(&self.stack, self.now()).await?;
        let journal = JournalOutcome::Compacted { version, evidence };
        Ok(report(left_over, &entries, torn, journal))
    }

    /// The state that the journal makes of the one it started from.
    fn compacted(
        &self,
        left_over: &LeftOver,
        stored: &Stored,
        keyring: &Arc<Keyring>,
    ) -> Result<(Vec<JournalEntry>, Vec<u8>), BackendError> {
        let wrong = |source| BackendError::state(&stored.key, source);
        let file = self.read(stored)?;
        let (head, layout) = (self.head_of(&file), file.layout);
        let of_state = file
            .deployment
            .as_ref()
            .and_then(|d| d.secrets_provider().cloned());
        let crypters = Crypters::choose(of_state, left_over.secrets.clone(), keyring)?;
        let base = match file.deployment {
            Some(deployment) => deployment.open(crypters.state()).map_err(wrong)?.0,
            None => Snapshot {
                manifest: SnapshotManifest::new(ENGINE_VERSION, self.now()),
                ..Snapshot::default()
            },
        };
        let entries = self.entries(left_over, crypters.journal())?;
        let mut snapshot = replay(&base, &entries).map_err(|error| BackendError::Replay {
            key: left_over.key.clone(),
            reason: error.to_string(),
        })?;
        snapshot.manifest.time = self.now();
        snapshot.secrets_provider = crypters.provider.clone();
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt {
            crypter: crypters.journal(),
            cache: &mut cache,
        };
        let bytes = write_checkpoint(&head, Some(&snapshot), secrets, layout).map_err(wrong)?;
        Ok((entries, bytes))
    }

    fn entries(
        &self,
        left_over: &LeftOver,
        crypter: &dyn Crypter,
    ) -> Result<Vec<JournalEntry>, BackendError> {
        let lines = left_over.entries.iter().enumerate();
        let decoded = lines.map(|(index, line)| {
            decode(line.as_bytes(), crypter).map_err(|error| BackendError::Replay {
                key: left_over.key.clone(),
                reason: format!("entry {}: {error}", index + 1),
            })
        });
        decoded.collect()
    }

    /// The entry in the history. It says failed although every act in the journal may have worked: the
    /// operation never said that it was done, and whoever reads `succeeded` takes all of the program for
    /// deployed. The format of Pulumi's history has no word of its own for it.
    fn interruption(&self, left_over: &LeftOver) -> UpdateInfo {
        UpdateInfo {
            kind: left_over.header.operation.clone(),
            start_time: left_over.header.started.as_second(),
            message: "interrupted; the state was rebuilt from its journal".to_owned(),
            environment: None,
            config: serde_json::Value::Null,
            version: 0,
            result: UpdateResult::Failed,
            end_time: self.now().as_second(),
            resource_changes: None,
        }
    }
}

/// How secrets of the state and of the journal are read, and written again.
struct Crypters {
    /// `None` when both are encrypted in the same way and can stay closed.
    state: Option<Arc<dyn Crypter>>,
    journal: Arc<dyn Crypter>,
    provider: Option<SecretsProvider>,
}

impl Crypters {
    fn choose(
        state: Option<SecretsProvider>,
        journal: Option<SecretsProvider>,
        keyring: &Arc<Keyring>,
    ) -> Result<Self, BackendError> {
        match (state, journal) {
            // The operation was changing how secrets are encrypted: they have to be opened.
            (Some(state), Some(journal)) if state != journal => Ok(Self {
                state: Some(keyring.open(&state)?),
                journal: keyring.open(&journal)?,
                provider: Some(journal),
            }),
            (state, journal) => Ok(Self {
                state: None,
                journal: Arc::new(KeepSealed::new(&NoSecrets)),
                provider: journal.or(state),
            }),
        }
    }

    fn state(&self) -> &dyn Crypter {
        self.state.as_ref().unwrap_or(&self.journal).as_ref()
    }

    fn journal(&self) -> &dyn Crypter {
        self.journal.as_ref()
    }
}

fn report(
    left_over: &LeftOver,
    entries: &[JournalEntry],
    evidence: Option<String>,
    journal: JournalOutcome,
) -> RecoveryReport {
    let mut begun: BTreeMap<ActId, &PendingOperation> = BTreeMap::new();
    let mut messages: BTreeMap<ActId, String> = BTreeMap::new();
    let mut known = Vec::new();
    for entry in entries {
        match entry {
            JournalEntry::Begin { act, operation } => {
                begun.insert(*act, operation);
            }
            JournalEntry::Success { act, change } => {
                let operation = begun.remove(act);
                let state = change.state.as_ref().map(|state| state.urn.clone());
                known.push(known_act(
                    *act,
                    operation,
                    state,
                    RecordedOutcome::Succeeded,
                ));
            }
            JournalEntry::Failure { act, change } => {
                let operation = begun.remove(act);
                let state = change.state.as_ref().map(|state| state.urn.clone());
                known.push(known_act(*act, operation, state, RecordedOutcome::Failed));
            }
            JournalEntry::Unknown { act, message } => {
                messages.insert(*act, message.clone());
            }
            JournalEntry::Rebase { .. }
            | JournalEntry::ClearPending
            | JournalEntry::Extension { .. } => {}
        }
    }
    let unknown = begun.into_iter().map(|(act, operation)| UnknownAct {
        act,
        kind: operation.kind,
        urn: operation.resource.urn.clone(),
        id: operation.resource.id.clone(),
        message: messages.remove(&act),
    });
    let torn = left_over.torn.as_ref();
    RecoveryReport {
        operation: left_over.header.operation.clone(),
        owner: left_over.header.owner.clone(),
        started: left_over.header.started,
        epoch: left_over.header.epoch,
        base: left_over.header.base,
        known,
        unknown: unknown.collect(),
        torn: torn.map(|torn| TornEnd {
            bytes: torn.len(),
            evidence,
        }),
        journal,
    }
}

fn known_act(
    act: ActId,
    operation: Option<&PendingOperation>,
    state: Option<Urn>,
    outcome: RecordedOutcome,
) -> KnownAct {
    KnownAct {
        act,
        kind: operation.map(|operation| operation.kind),
        urn: operation
            .map(|operation| operation.resource.urn.clone())
            .or(state),
        outcome,
    }
}
