//! What is kept for how long: older parts of the audit trail move to the archive, deleted tenants go for
//! good.

use jiff::{SignedDuration, Timestamp};
use nimbus_control_audit::{
    Actor, AuditEntry, AuditRecord, ChainVerdict, Priority, Verifier, to_archive_line,
};
use nimbus_control_store::{AuditFilter, RegistryTx, TenantTx};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::json;
use tracing::{error, warn};

use crate::app::App;
use crate::archive::AuditArchive;
use crate::failure::Result;

/// Entries in one part of the archive.
const PART: u32 = 5000;
const ARCHIVE_ACTION: &str = "audit.archive";
/// Setting of a tenant, inherited: days after which its entries leave the database.
pub(crate) const RETENTION_SETTING: &str = "audit_retention_days";

impl App {
    pub(crate) fn archive(&self) -> Result<&AuditArchive, Error> {
        self.inner.archive.as_ref().ok_or_else(|| {
            Error::new(
                ErrorCode::AUDIT_ARCHIVE,
                "entries of this trail are in an archive, and none is set",
            )
            .with_help("set audit.archive to where they were archived")
        })
    }

    /// Moves entries that are older than their tenant keeps into the archive. How many there were. The
    /// server calls this once in a while.
    pub async fn archive_audit(&self, now: Timestamp) -> Result<u64> {
        let Some(archive) = &self.inner.archive else {
            return Ok(0);
        };
        let mut moved = 0;
        for tenant in self.every_tenant().await? {
            loop {
                match self.archive_part(archive, tenant, now).await {
                    Ok(count) => {
                        moved += count;
                        if count < u64::from(PART) {
                            break;
                        }
                    }
                    Err(failure) => {
                        error!(error = %failure.error.log_text(), %tenant, "nothing was archived");
                        break;
                    }
                }
            }
        }
        Ok(moved)
    }

    /// One part, or nothing: entries leave the database in the transaction that begins after the archive
    /// has them.
    async fn archive_part(
        &self,
        archive: &AuditArchive,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<u64> {
        self.inner
            .store
            .registry_tx(tenant, async |tx| {
                if !tx.audit_archive_lock().await? {
                    return Ok(0);
                }
                let entries = self.due(tx, now).await?;
                let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
                    return Ok(0);
                };
                self.ensure_intact(tx, tenant, &entries).await?;
                let text: String = entries.iter().map(to_archive_line).collect();
                archive.write(tenant, first.sequence, text).await?;
                // Tells of an archive that is cut off later.
                let checkpoint = self.inner.keys.audit.checkpoint(last, now);
                self.keep_checkpoint(&checkpoint).await?;
                self.forget(tx, now, first, last).await
            })
            .await
    }

    async fn forget(
        &self,
        tx: &mut RegistryTx,
        now: Timestamp,
        first: &AuditEntry,
        last: &AuditEntry,
    ) -> Result<u64> {
        let removed = tx.audit_remove_archived(last).await?;
        let record = AuditRecord::new(Actor::system(), ARCHIVE_ACTION, "audit")
            .after(json!({"first": first.sequence, "last": last.sequence}))
            .priority(Priority::Critical);
        tx.audit_append(&self.inner.keys.audit, now, record).await?;
        Ok(removed)
    }

    /// The oldest entries, as far as they are old enough.
    async fn due(&self, tx: &mut TenantTx, now: Timestamp) -> Result<Vec<AuditEntry>> {
        let kept = self.retention(tx).await?;
        let Ok(limit) = now.checked_sub(kept) else {
            return Ok(Vec::new());
        };
        let filter = AuditFilter {
            limit: PART,
            ..AuditFilter::default()
        };
        let mut entries = tx.audit_list(&filter).await?;
        let old = entries.iter().take_while(|entry| entry.at < limit).count();
        entries.truncate(old);
        // Archiving is recorded as well, and would otherwise never come to an end.
        if entries
            .iter()
            .all(|entry| entry.record.action == ARCHIVE_ACTION)
        {
            entries.clear();
        }
        Ok(entries)
    }

    async fn retention(&self, tx: &mut TenantTx) -> Result<SignedDuration> {
        let tenant = tx.tenant();
        let settings = tx.settings_effective(tenant).await?;
        let days = settings
            .iter()
            .find(|setting| setting.key == RETENTION_SETTING)
            .and_then(|setting| setting.value.as_u64())
            .and_then(|days| i64::try_from(days).ok());
        Ok(match days {
            Some(days) => SignedDuration::from_hours(days.saturating_mul(24).min(1 << 24)),
            None => self.inner.settings.audit_retention,
        })
    }

    /// A trail that was changed stays where it is, as evidence.
    async fn ensure_intact(
        &self,
        tx: &mut TenantTx,
        tenant: TenantId,
        entries: &[AuditEntry],
    ) -> Result<(), Error> {
        let key = self.inner.keys.audit.verifying_key();
        let mut verifier = match tx.audit_archived().await? {
            Some(last) => Verifier::starting_after(key, tenant, last, &[]),
            None => Verifier::new(key, tenant, &[]),
        };
        entries.iter().all(|entry| verifier.next(entry));
        match verifier.finish() {
            ChainVerdict::Intact { .. } => Ok(()),
            ChainVerdict::Broken { fault } => Err(Error::new(
                ErrorCode::AUDIT_BROKEN,
                format!("the audit trail was changed: {fault}"),
            )),
        }
    }

    /// Deletes for good what was deleted and can no longer come back, and then what it had outside of the
    /// database. How many tenants there were. One that fails keeps no other from going, and is tried again.
    pub async fn purge_tenants(&self) -> Result<usize> {
        let store = &self.inner.store;
        let purged = store.tenant_purge_due().await?;
        for tenant in store.purges_open().await? {
            match self.remove_outside(tenant).await {
                Ok(()) => store.purge_done(tenant).await?,
                Err(error) => {
                    warn!(error = %error.log_text(), %tenant, "a deleted tenant still has something outside");
                }
            }
        }
        Ok(purged)
    }

    async fn remove_outside(&self, tenant: TenantId) -> Result<(), Error> {
        if let Some(archive) = &self.inner.archive {
            archive.remove(tenant).await?;
        }
        self.inner.checkpoints.remove(tenant).map_err(|error| {
            Error::new(
                ErrorCode::FILE_UNWRITABLE,
                "the checkpoints of a deleted tenant cannot be removed",
            )
            .with_source(error)
        })
    }
}
