//! What people have begun to write. A draft is its writer's alone: nobody else finds it, whatever they may do.

use nimbus_control_auth::operation;
use nimbus_control_store::{DRAFT_DAYS, StoredDraft, TenantTx};
use nimbus_control_wire::{DraftView, Drafts, PutDraft};
use nimbus_core::{ErrorCode, TenantId};
use serde_json::json;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};

/// Drafts of one person in one tenant.
const MOST_DRAFTS: usize = 50;
const MOST_BYTES: usize = 64 * 1024;

impl App {
    pub async fn draft_list(&self, call: &Call, tenant: TenantId) -> Result<Drafts> {
        let permit = self.permit(call, operation::LIST_DRAFTS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut items = Vec::new();
                for stored in tx.draft_list(call.who.user).await? {
                    items.push(self.opened(tx, call, stored).await?);
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(Drafts { items })
            })
            .await
    }

    /// Keeps a draft, in the place of what it was before.
    pub async fn draft_put(
        &self,
        call: &Call,
        tenant: TenantId,
        id: &str,
        draft: PutDraft,
    ) -> Result<DraftView> {
        let permit = self.permit(call, operation::PUT_DRAFT, tenant).await?;
        word("draft", id, 64, |letter| {
            letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
        })?;
        word("kind", &draft.kind, 40, |letter| {
            letter.is_ascii_lowercase() || letter == '_'
        })?;
        let plaintext = draft.content.to_string();
        if plaintext.len() > MOST_BYTES {
            let message = format!("it has more than {MOST_BYTES} bytes");
            return Err(Failure::field("content", message));
        }
        let person = call.who.user;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.draft_list(person).await?;
                let is_new = !known.iter().any(|draft| draft.id == id);
                if is_new && known.len() >= MOST_DRAFTS {
                    let message = format!("you have {MOST_DRAFTS} drafts; finish or remove one");
                    return Err(Failure::new(ErrorCode::QUOTA_EXCEEDED, message));
                }
                let field = StoredDraft::field(person, id);
                let sealed = self.seal(tx, &field, plaintext.as_bytes()).await?;
                let stored = tx.draft_put(person, id, &draft.kind, &sealed).await?;
                // Not what it says: that is nobody's yet.
                let record = permit.record().on(id).after(json!({"kind": draft.kind}));
                self.audit(tx, &call.context, record).await?;
                self.opened(tx, call, stored).await
            })
            .await
    }

    pub async fn draft_delete(&self, call: &Call, tenant: TenantId, id: &str) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_DRAFT, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.draft_delete(call.who.user, id).await?;
                self.audit(tx, &call.context, permit.record().on(id)).await
            })
            .await
    }

    async fn opened(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        stored: StoredDraft,
    ) -> Result<DraftView> {
        let field = StoredDraft::field(call.who.user, &stored.id);
        let plaintext = self.unseal(tx, &field, &stored.sealed).await?;
        let content = serde_json::from_slice(&plaintext)
            .map_err(|_| Failure::new(ErrorCode::INTERNAL, "a draft cannot be read"))?;
        let updated: jiff::Timestamp = stored.updated_at.into();
        let kept = jiff::SignedDuration::from_hours(24 * i64::from(DRAFT_DAYS));
        Ok(DraftView {
            id: stored.id,
            kind: stored.kind,
            content,
            updated_at: updated.to_string(),
            expires_at: updated
                .saturating_add(kept)
                .map_or_else(|_| updated.to_string(), |expires| expires.to_string()),
        })
    }
}

fn word(
    field: &'static str,
    text: &str,
    most: usize,
    allowed: impl Fn(char) -> bool,
) -> Result<()> {
    if text.is_empty() || text.len() > most || !text.chars().all(allowed) {
        let message = format!("up to {most} letters, digits, `-` or `_`");
        return Err(Failure::field(field, message));
    }
    Ok(())
}
