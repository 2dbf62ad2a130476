//! Reading, exporting and verifying the audit trail.

use nimbus_control_audit::{CSV_HEADER, Entry, Verdict, Verifier, to_csv_line, to_json_line};
use nimbus_control_auth::operation;
use nimbus_control_store::{AuditFilter, StoreError};
use nimbus_core::TenantId;

use crate::app::App;
use crate::call::Call;
use crate::failure::Result;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    JsonLines,
    Csv,
}

/// The judgement of a tenant's trail, and the key that checkpoints are checked with.
#[derive(Clone, Debug)]
pub struct AuditReport {
    pub verdict: Verdict,
    pub public_key: String,
}

/// Entries read at once.
const PAGE: u32 = 2000;
/// An export of more is asked for in parts.
const MOST_EXPORTED: usize = 100_000;

impl App {
    pub async fn audit_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: AuditFilter,
    ) -> Result<Vec<Entry>> {
        let permit = self.permit(call, operation::LIST_AUDIT, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let entries = tx.audit_list(&filter).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(entries)
            })
            .await
    }

    pub async fn audit_export(
        &self,
        call: &Call,
        tenant: TenantId,
        mut filter: AuditFilter,
        format: ExportFormat,
    ) -> Result<String> {
        let permit = self.permit(call, operation::EXPORT_AUDIT, tenant).await?;
        filter.limit = PAGE;
        filter.newest_first = false;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut text = match format {
                    ExportFormat::JsonLines => String::new(),
                    ExportFormat::Csv => format!("{CSV_HEADER}\r\n"),
                };
                let mut count = 0;
                loop {
                    let page = tx.audit_list(&filter).await?;
                    for entry in &page {
                        text.push_str(&match format {
                            ExportFormat::JsonLines => to_json_line(entry),
                            ExportFormat::Csv => to_csv_line(entry),
                        });
                    }
                    count += page.len();
                    match page.last() {
                        Some(last) if count < MOST_EXPORTED => filter.after = last.sequence,
                        _ => break,
                    }
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(text)
            })
            .await
    }

    /// Judges the whole trail of a tenant against its checkpoints.
    pub async fn audit_verify(&self, call: &Call, tenant: TenantId) -> Result<AuditReport> {
        let permit = self.permit(call, operation::VERIFY_AUDIT, tenant).await?;
        let checkpoints = self.inner.checkpoints.read(tenant)?;
        let key = self.inner.keys.audit.verifying_key();
        let public_key = key.to_text();
        let verdict = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut verifier = match tx.audit_archived().await? {
                    Some(last) => Verifier::starting_after(key, tenant, last, &checkpoints),
                    None => Verifier::new(key, tenant, &checkpoints),
                };
                let mut filter = AuditFilter {
                    limit: PAGE,
                    ..AuditFilter::default()
                };
                loop {
                    let page = tx.audit_list(&filter).await?;
                    let sound = page.iter().all(|entry| verifier.next(entry));
                    match page.last() {
                        Some(last) if sound => filter.after = last.sequence,
                        _ => break,
                    }
                }
                Ok::<_, StoreError>(verifier.finish())
            })
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.audit(tx, &call.context, permit.record())
                    .await
                    .map(drop)
            })
            .await?;
        Ok(AuditReport {
            verdict,
            public_key,
        })
    }
}
