//! What was sent outside of the application, for whoever looks after its receivers: what became of it, and again.
//!
//! What a mail says is its reader's alone, so that nothing here shows the content of a delivery.

use nimbus_control_auth::operation;
use nimbus_control_store::{DeliveryAttempt, DeliveryFilter, ListPage, RowCursor, StoredDelivery};
use nimbus_control_wire::{Delivery, DeliveryDetail, DeliveryTry};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::webhooks::disabled;

const STATUSES: &[&str] = &["pending", "delivered", "dead", "dropped"];
const CHANNELS: &[&str] = &["webhook", "email"];

impl App {
    /// Newest first.
    pub async fn delivery_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: DeliveryFilter,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredDelivery>> {
        let operation = operation::LIST_DELIVERIES;
        let permit = self.permit(call, operation, tenant).await?;
        one_of("status", filter.status.as_deref(), STATUSES)?;
        one_of("channel", filter.channel.as_deref(), CHANNELS)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.delivery_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// One with every time that it was tried.
    pub async fn delivery_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<(StoredDelivery, Vec<DeliveryAttempt>)> {
        let permit = self.permit(call, operation::GET_DELIVERY, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.delivery_get(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Sends something again, with the id that it had.
    pub async fn delivery_resend(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<StoredDelivery> {
        let operation = operation::RESEND_DELIVERY;
        let permit = self.may_change(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let (known, _) = tx.delivery_get(id).await?;
                if let Some(webhook) = known.webhook
                    && known.status != "dropped"
                    && !tx.webhook_lock(webhook).await?.enabled
                {
                    return Err(disabled());
                }
                let again = tx.delivery_resend(id).await?;
                let again = again.ok_or_else(|| not_again(&known.status))?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(again)
            })
            .await
    }

    /// Sends every dead letter of a webhook again. How many there were.
    pub async fn webhook_resend(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<u64> {
        let permit = self
            .may_change(call, operation::RESEND_WEBHOOK, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                if !tx.webhook_lock(id).await?.enabled {
                    return Err(disabled());
                }
                let resent = tx.deliveries_resend_dead(id).await?;
                let record = permit.record().on(id).after(json!({"resent": resent}));
                self.audit(tx, &call.context, record).await?;
                Ok(resent)
            })
            .await
    }

    /// Removes, in every tenant, what was delivered long ago, and lets workers look everywhere. The server calls this once
    /// in a while; one tenant's failure keeps no other's from being removed.
    pub async fn tidy_deliveries(&self) -> Result<u64> {
        let store = &self.inner.store;
        let mut removed = 0;
        for tenant in self.every_tenant().await? {
            let trimmed = store
                .tenant_tx(tenant, async |tx| tx.deliveries_trim().await)
                .await;
            match trimmed {
                Ok(count) => removed += count,
                Err(error) => {
                    warn!(%error, %tenant, "old deliveries of a tenant were not removed");
                }
            }
        }
        // A tenant that came back has a turn again.
        store.delivery_note_all().await?;
        Ok(removed)
    }
}

fn one_of(field: &'static str, given: Option<&str>, known: &[&str]) -> Result<()> {
    match given {
        Some(text) if !known.contains(&text) => {
            let message = format!("give one of {}", known.join(", "));
            Err(Failure::field(field, message))
        }
        _ => Ok(()),
    }
}

fn not_again(status: &str) -> Failure {
    match status {
        "dropped" => Error::new(
            ErrorCode::DELIVERY_WITHOUT_RECEIVER,
            "there is nobody any more whom this was for",
        )
        .into(),
        _ => Error::new(
            ErrorCode::DELIVERY_UNDER_WAY,
            "this is on its way and will be tried again by itself",
        )
        .into(),
    }
}

/// A delivery as answers have it.
pub fn describe_delivery(row: StoredDelivery) -> Delivery {
    Delivery {
        id: row.id.to_string(),
        channel: row.channel,
        webhook: row.webhook.map(|id| id.to_string()),
        user: row.person.map(|id| id.to_string()),
        kind: row.kind,
        next_attempt_at: (row.status == "pending").then(|| row.due_at.0.to_string()),
        status: row.status,
        attempts: u32::try_from(row.attempts).unwrap_or_default(),
        problem: row.problem,
        created_at: row.created_at.0.to_string(),
        ended_at: row.ended_at.map(|at| at.0.to_string()),
    }
}

/// The same with every time that it was tried.
pub fn describe_delivery_detail(
    (row, tries): (StoredDelivery, Vec<DeliveryAttempt>),
) -> DeliveryDetail {
    let tried = |one: DeliveryAttempt| DeliveryTry {
        number: u32::try_from(one.number).unwrap_or_default(),
        began_at: one.began_at.0.to_string(),
        ended_at: one.ended_at.map(|at| at.0.to_string()),
        status: one.status.and_then(|number| u32::try_from(number).ok()),
        problem: one.problem,
    };
    DeliveryDetail {
        delivery: describe_delivery(row),
        tries: tries.into_iter().map(tried).collect(),
    }
}
