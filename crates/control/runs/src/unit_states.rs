//! The state of one unit over time, and its repair, over the engine's own backend: the lease, the journal and the history
//! are those that runs use, so nobody mends what a run is about to write.

use std::collections::BTreeSet;
use std::sync::Arc;

use nimbus_control_wire::{
    JournalAct, RepairAct, RepairUnit, UnitHealth, UnitJournal, UnitRepairReport, UnitStateVersion,
};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::{
    Backend, BackendError, BackendOptions, EnvironmentVariables, ImportOptions, KeyServices,
    Keyring, KnownAct, Owner, PASSPHRASE, RecordedOutcome, RecoveryReport, Stack, UnknownAct,
    Unverified, UpdateResult,
};
use nimbus_engine_model::edit::{DeleteRules, EditError, delete_resource, unprotect};
use nimbus_engine_model::format::{Layout, SecretsMode, write_export};
use nimbus_engine_model::integrity::repair;
use nimbus_engine_model::secrets::{CiphertextCache, SealedText};
use nimbus_engine_model::{Snapshot, Urn};
use serde_json::Value;

use crate::storage::DatabaseStorage;
use crate::tenant_run::{TenantRuns, state_root};
use crate::tenant_texts::TenantTexts;
use crate::vault::TenantVault;

/// Who has the lease while a state is mended.
const COMMAND: &str = "repair over the API";

/// A unit's stack, opened. Found by whoever knows which stack is the unit's.
pub struct UnitStack {
    stack: Stack,
    keyring: Arc<Keyring>,
    texts: TenantTexts,
}

impl TenantRuns {
    /// The stack of a unit, if anything was ever recorded of it.
    ///
    /// # Errors
    ///
    /// When the tenant's keys do not open, or its states cannot be listed.
    pub async fn unit_stack(
        &self,
        tenant: TenantId,
        deployment: &str,
        rehearsal: bool,
        is_it: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Option<UnitStack>> {
        let vault = TenantVault::open(self.store(), self.ring(), tenant).await?;
        let passphrase = hex::encode(vault.secret("passphrase").await?);
        let root = state_root(deployment, rehearsal);
        let storage = Arc::new(DatabaseStorage::new(vault, &root));
        let backend = Backend::in_storage(storage, BackendOptions::default()).await?;
        let names = backend.stacks().await?;
        let Some(name) = names.into_iter().find(|name| is_it(name.stack())) else {
            return Ok(None);
        };
        let environment = EnvironmentVariables::fixed([(PASSPHRASE, passphrase.as_str())]);
        Ok(Some(UnitStack {
            stack: backend.stack(name),
            // States of tenants open with the passphrase of their tenant; no service is the server's to ask for them.
            keyring: Keyring::new(environment, KeyServices::Only(BTreeSet::new())),
            texts: self.texts().clone(),
        }))
    }
}

impl UnitStack {
    pub fn name(&self) -> &str {
        self.stack.name().stack()
    }

    /// Every version that is kept, newest first.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub async fn versions(&self) -> Result<Vec<UnitStateVersion>> {
        let history = self.stack.history().await?;
        let row = |version: nimbus_engine_backend::StackVersion| {
            let kept = version.is_kept();
            let update = version.update;
            UnitStateVersion {
                number: version.number as u64,
                at: version.at.to_string(),
                kind: update.kind.to_string(),
                result: match update.result {
                    UpdateResult::InProgress => "in-progress".to_owned(),
                    UpdateResult::Succeeded => "succeeded".to_owned(),
                    UpdateResult::Failed => "failed".to_owned(),
                    UpdateResult::Other(other) => other,
                },
                message: (!update.message.is_empty()).then_some(update.message),
                changes: update.resource_changes.unwrap_or_default(),
                seconds: (update.end_time - update.start_time).max(0),
                kept,
            }
        };
        Ok(history.into_iter().rev().map(row).collect())
    }

    /// A version in the official export form; the state as it is now without a number. Nothing if it is not kept.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn version(&self, number: Option<u64>) -> Result<Option<Value>> {
        let bytes = match number {
            None => self.stack.export().await?,
            Some(number) => {
                let history = self.stack.history().await?;
                let found = history
                    .into_iter()
                    .find(|version| version.number as u64 == number && version.is_kept());
                let Some(version) = found else {
                    return Ok(None);
                };
                let bytes = self.stack.version_bytes(&version).await?;
                self.stack.export_version(&bytes).await?
            }
        };
        Ok(Some(self.shown(&bytes)?))
    }

    /// Whether the state is sound and what was left open; then the state and its mended copy in the official export form,
    /// for whoever shows the difference.
    ///
    /// # Errors
    ///
    /// When it cannot be read at all.
    pub async fn examine(&self, unit: &str) -> Result<(UnitHealth, Value, Value)> {
        let state = self.stack.load_unverified().await?;
        let before = state.snapshot.clone().unwrap_or_default();
        let mended = repair(&before);
        let health = UnitHealth {
            unit: unit.to_owned(),
            stack: self.name().to_owned(),
            version: version_of(&state),
            resources: before.resources.len() as u64,
            problems: state.findings.iter().map(ToString::to_string).collect(),
            actions: mended.actions.iter().map(ToString::to_string).collect(),
            remaining: mended.remaining.iter().map(ToString::to_string).collect(),
            difference: Vec::new(),
            pending: before.pending_operations.iter().map(pending).collect(),
            journal: self.journal().await?,
            held: self.stack.holder().await?.is_some(),
        };
        let after = self.shown(&export(&mended.snapshot)?)?;
        Ok((health, self.shown(&export(&before)?)?, after))
    }

    /// What an interrupted operation has left, in words, and whether the next one settles it.
    async fn journal(&self) -> Result<Option<UnitJournal>> {
        let unreadable = |error: &BackendError| UnitJournal {
            operation: "unknown".to_owned(),
            started_at: String::new(),
            known: Vec::new(),
            unknown: Vec::new(),
            settles: false,
            problem: Some(self.texts.text(&error.to_string()).into_owned()),
        };
        let report = match self.stack.interrupted().await {
            Ok(None) => return Ok(None),
            Ok(Some(report)) => report,
            // One that cannot be read is what people come here for.
            Err(error @ (BackendError::Journal(_) | BackendError::Replay { .. })) => {
                return Ok(Some(unreadable(&error)));
            }
            Err(error) => return Err(error.into()),
        };
        let problem = match self.stack.try_journal(&self.keyring).await {
            Err(
                error @ (BackendError::Journal(_)
                | BackendError::Replay { .. }
                | BackendError::JournalBase { .. }),
            ) => Some(self.texts.text(&error.to_string()).into_owned()),
            // Without its state it cannot be tried, and the next operation says so.
            Ok(()) | Err(_) => None,
        };
        Ok(Some(self.told(report, problem)))
    }

    fn told(&self, report: RecoveryReport, problem: Option<String>) -> UnitJournal {
        let known = |act: KnownAct| JournalAct {
            kind: act.kind.map(|kind| kind.as_str().to_owned()),
            urn: act.urn.map(|urn| urn.to_string()),
            id: None,
            outcome: match act.outcome {
                RecordedOutcome::Succeeded => "succeeded".to_owned(),
                RecordedOutcome::Failed => "failed".to_owned(),
            },
            message: None,
        };
        let unknown = |act: UnknownAct| JournalAct {
            kind: Some(act.kind.as_str().to_owned()),
            urn: Some(act.urn.to_string()),
            id: act.id,
            outcome: "unknown".to_owned(),
            message: act
                .message
                .map(|message| self.texts.text(&message).into_owned()),
        };
        UnitJournal {
            operation: report.operation.to_string(),
            started_at: report.started.to_string(),
            known: report.known.into_iter().map(known).collect(),
            unknown: report.unknown.into_iter().map(unknown).collect(),
            settles: problem.is_none(),
            problem,
        }
    }

    /// Carries one step of a repair out, on the very state that was looked at; then that state and what it became.
    ///
    /// # Errors
    ///
    /// When the state is another one by now, somebody is at work on it, or the step would leave a state that
    /// contradicts itself.
    pub async fn edit(
        &self,
        unit: &str,
        edit: &RepairUnit,
    ) -> Result<(UnitRepairReport, Value, Value)> {
        let state = self.stack.load_unverified().await?;
        if version_of(&state) != edit.version {
            let message = "the state is not the one that was looked at";
            return Err(Error::new(ErrorCode::STATE_CHANGED, message)
                .with_help("look at it again, then decide"));
        }
        let before = state.snapshot.clone().unwrap_or_default();
        let (after, broken) = edited(&before, edit)?;
        let mut done = UnitRepairReport {
            unit: unit.to_owned(),
            written: false,
            difference: Vec::new(),
            kept_as: None,
        };
        let owner = Owner::current(COMMAND);
        if !edit.dry_run && edit.act == RepairAct::DiscardJournal {
            done.kept_as = self.stack.set_journal_aside(owner).await?;
            done.written = done.kept_as.is_some();
        } else if !edit.dry_run && before != after {
            let options = ImportOptions {
                accept_older: true,
                accept_broken: broken,
                accept_other_stack: false,
                made_of: Some(state.version),
            };
            let bytes = export(&after)?;
            self.stack
                .import(&bytes, options, owner, &self.keyring)
                .await?;
            done.written = true;
        }
        let (before, after) = (export(&before)?, export(&after)?);
        Ok((done, self.shown(&before)?, self.shown(&after)?))
    }

    /// As JSON, with nothing of the machine in it.
    fn shown(&self, bytes: &[u8]) -> Result<Value> {
        let mut value = serde_json::from_slice(bytes).map_err(|error| {
            let message = format!("the state of {} cannot be read: {error}", self.name());
            Error::new(ErrorCode::INTERNAL, message)
        })?;
        self.texts.places(&mut value);
        Ok(value)
    }
}

fn version_of(state: &Unverified) -> String {
    state.version.sha256.to_string()
}

fn pending(operation: &nimbus_engine_model::PendingOperation) -> JournalAct {
    JournalAct {
        kind: Some(operation.kind.as_str().to_owned()),
        urn: Some(operation.resource.urn.to_string()),
        id: operation.resource.id.clone(),
        outcome: "unknown".to_owned(),
        message: None,
    }
}

/// The state after a step, and whether what is still wrong with it was wrong before.
fn edited(before: &Snapshot, edit: &RepairUnit) -> Result<(Snapshot, bool)> {
    let refused = |error: EditError| Error::new(ErrorCode::STATE_EDIT, error.to_string());
    let urn = || -> Result<Urn> {
        let text = edit.urn.as_deref().unwrap_or_default();
        Urn::parse(text).map_err(|error| Error::new(ErrorCode::INPUT_INVALID, error.to_string()))
    };
    let was_broken = !nimbus_engine_model::integrity::verify(before).is_empty();
    Ok(match edit.act {
        RepairAct::Mend => {
            let mended = repair(before);
            let broken = !mended.remaining.is_empty();
            (mended.snapshot, broken)
        }
        RepairAct::Forget => {
            let rules = DeleteRules {
                with_dependents: edit.dependents,
                protected: false,
            };
            let after = delete_resource(before, &urn()?, rules).map_err(refused)?;
            (after, was_broken)
        }
        RepairAct::Unprotect => {
            let after = unprotect(before, Some(&urn()?)).map_err(refused)?;
            (after, was_broken)
        }
        RepairAct::Settle => {
            let urn = urn()?;
            let mut after = before.clone();
            let open = after.pending_operations.len();
            after
                .pending_operations
                .retain(|operation| operation.resource.urn != urn);
            if after.pending_operations.len() == open {
                return Err(refused(EditError::Unknown { urn }));
            }
            (after, was_broken)
        }
        RepairAct::DiscardJournal => (before.clone(), was_broken),
    })
}

fn export(snapshot: &Snapshot) -> Result<Vec<u8>> {
    let secrets = SecretsMode::Encrypt {
        crypter: &SealedText,
        cache: &mut CiphertextCache::default(),
    };
    Ok(write_export(Some(snapshot), secrets, Layout::Compact)?)
}

impl std::fmt::Debug for UnitStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UnitStack({})", self.name())
    }
}
