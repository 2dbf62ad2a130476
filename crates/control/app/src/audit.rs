//! Reading, exporting and verifying the audit trail.

use nimbus_control_audit::{
    AuditEntry, CSV_HEADER, ChainVerdict, Verifier, to_csv_line, to_json_line,
};
use nimbus_control_auth::operation;
use nimbus_control_store::AuditFilter;
use nimbus_core::TenantId;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    JsonLines,
    Csv,
}

/// The judgement of a tenant's trail, and the key that checkpoints are checked with.
#[derive(Clone, Debug)]
pub struct AuditVerification {
    pub verdict: ChainVerdict,
    /// How many of the entries are in the archive.
    pub archived: u64,
    pub public_key: String,
}

/// A trail that is older has a checkpoint.
const UNWITNESSED: jiff::SignedDuration = jiff::SignedDuration::from_secs(120);
/// Entries read at once.
const PAGE: u32 = 2000;
/// An export of more comes in parts, and each part says where the next one begins.
const MOST_EXPORTED: usize = 20_000;

/// Part of an export.
#[derive(Clone, Debug)]
pub struct AuditExport {
    pub text: String,
    /// Give this as `after` for what follows; none at the end.
    pub next: Option<u64>,
}

impl App {
    pub async fn audit_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: AuditFilter,
    ) -> Result<Vec<AuditEntry>> {
        let permit = self.permit(call, operation::LIST_AUDIT, tenant).await?;
        self.inner.store.audit_flush(tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let entries = tx.audit_list(&filter).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(entries)
            })
            .await
    }

    /// What happened, oldest first, with what is in the archive by now.
    pub async fn audit_export(
        &self,
        call: &Call,
        tenant: TenantId,
        mut filter: AuditFilter,
        format: ExportFormat,
    ) -> Result<AuditExport> {
        let permit = self.permit(call, operation::EXPORT_AUDIT, tenant).await?;
        self.inner.store.audit_flush(tenant).await?;
        filter.limit = PAGE;
        filter.newest_first = false;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut export = AuditExportText::new(format);
                if let Some((last, _)) = tx.audit_archived().await? {
                    self.export_archived(tenant, last, &filter, &mut export)
                        .await?;
                }
                while !export.is_full() {
                    let page = tx.audit_list(&filter).await?;
                    for entry in &page {
                        export.add(entry);
                    }
                    match page.last() {
                        Some(last) => filter.after = last.sequence,
                        None => break,
                    }
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(AuditExport {
                    next: export.next(),
                    text: export.text,
                })
            })
            .await
    }

    async fn export_archived(
        &self,
        tenant: TenantId,
        last: u64,
        filter: &AuditFilter,
        export: &mut AuditExportText,
    ) -> Result<()> {
        if filter.after >= last {
            return Ok(());
        }
        let archive = self.archive()?;
        for part in archive.parts_until(tenant, last).await? {
            if export.is_full() {
                break;
            }
            for entry in archive.entries(&part).await?.into_iter().flatten() {
                if filter.matches(&entry) {
                    export.add(&entry);
                }
            }
        }
        Ok(())
    }

    /// Judges the whole trail of a tenant, archived parts first, against its checkpoints.
    pub async fn audit_verify(&self, call: &Call, tenant: TenantId) -> Result<AuditVerification> {
        let permit = self.permit(call, operation::VERIFY_AUDIT, tenant).await?;
        self.inner.store.audit_flush(tenant).await?;
        let witnesses = self.witnesses(tenant).await?;
        let key = self.inner.keys.audit.verifying_key();
        let public_key = key.to_text();
        let mut verifier = Verifier::new(key, tenant, &witnesses.checkpoints);
        if let Some(head) = witnesses.head {
            verifier.expect_entry(head.sequence, head.hash);
        }
        let archived = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let archived = tx.audit_archived().await?.map_or(0, |(last, _)| last);
                let mut sound = self
                    .verify_archived(tenant, archived, &mut verifier)
                    .await?;
                let mut filter = AuditFilter {
                    limit: PAGE,
                    ..AuditFilter::default()
                };
                let mut oldest = None;
                while sound {
                    let page = tx.audit_list(&filter).await?;
                    oldest = oldest.or_else(|| page.first().map(|entry| entry.at));
                    sound = page.iter().all(|entry| verifier.next(entry));
                    match page.last() {
                        Some(last) => filter.after = last.sequence,
                        None => break,
                    }
                }
                let old =
                    oldest.is_some_and(|at| call.context.now.duration_since(at) > UNWITNESSED);
                if old {
                    verifier.demand_witness();
                }
                Ok::<_, Failure>(archived)
            })
            .await?;
        if let Some(sequence) = witnesses.missing {
            verifier.checkpoint_missing(sequence);
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.audit(tx, &call.context, permit.record())
                    .await
                    .map(drop)
            })
            .await?;
        Ok(AuditVerification {
            verdict: verifier.finish(),
            archived,
            public_key,
        })
    }

    /// Whether there is any point in going on.
    async fn verify_archived(
        &self,
        tenant: TenantId,
        last: u64,
        verifier: &mut Verifier,
    ) -> Result<bool> {
        if last == 0 {
            return Ok(true);
        }
        let archive = self.archive()?;
        for part in archive.parts_until(tenant, last).await? {
            for entry in archive.entries(&part).await? {
                let sound = match entry {
                    Some(entry) => verifier.next(&entry),
                    None => {
                        verifier.unreadable();
                        false
                    }
                };
                if !sound {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Text that grows by entries.
struct AuditExportText {
    format: ExportFormat,
    text: String,
    count: usize,
    last: u64,
}

impl AuditExportText {
    fn new(format: ExportFormat) -> Self {
        let text = match format {
            ExportFormat::JsonLines => String::new(),
            ExportFormat::Csv => format!("{CSV_HEADER}\r\n"),
        };
        Self {
            format,
            text,
            count: 0,
            last: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.count >= MOST_EXPORTED
    }

    /// One that is full may have more after it.
    fn next(&self) -> Option<u64> {
        self.is_full().then_some(self.last)
    }

    fn add(&mut self, entry: &AuditEntry) {
        if self.is_full() {
            return;
        }
        self.count += 1;
        self.last = entry.sequence;
        self.text.push_str(&match self.format {
            ExportFormat::JsonLines => to_json_line(entry),
            ExportFormat::Csv => to_csv_line(entry),
        });
    }
}
