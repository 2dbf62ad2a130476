//! What people are told in person. A notification is its person's alone: nobody else finds it, whatever they may do. It is
//! in the tenant where it happened, and people of that tenant are told.

use nimbus_control_auth::operation;
use nimbus_control_store::{KEPT_NOTIFICATIONS, ListPage, RowCursor, StoredNotification};
use nimbus_control_wire::Notification;
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::Result;

const RESOURCE: &str = "notifications";

impl App {
    /// The caller's own, newest first.
    pub async fn notification_list(
        &self,
        call: &Call,
        unread: bool,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredNotification>> {
        let user = call.who.user;
        self.note_read(call, operation::LIST_NOTIFICATIONS).await?;
        Ok(self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                tx.notification_list(user, unread, &page).await
            })
            .await?)
    }

    /// Notes that the caller has read one of theirs. One of somebody else is not there.
    pub async fn notification_read(&self, call: &Call, id: Uuid) -> Result<StoredNotification> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                let read = tx.notification_read(call.who.user, id).await?;
                let record = self
                    .record_of(call, operation::READ_NOTIFICATION.id, RESOURCE)
                    .on(id);
                self.audit(tx, &call.context, record).await?;
                Ok(read)
            })
            .await
    }

    /// Notes that the caller has read all of theirs. How many they had not.
    pub async fn notification_read_all(&self, call: &Call) -> Result<u64> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                let read = tx.notifications_read(call.who.user).await?;
                let record = self
                    .record_of(call, operation::READ_NOTIFICATIONS.id, RESOURCE)
                    .after(json!({"read": read}));
                self.audit(tx, &call.context, record).await?;
                Ok(read)
            })
            .await
    }

    /// Removes, in every tenant, what was read and is not among its person's newest. How many there were. The server calls
    /// this once in a while; one tenant's failure keeps no other's from being removed.
    pub async fn remove_read_notifications(&self) -> Result<u64> {
        let store = &self.inner.store;
        let mut removed = 0;
        for tenant in self.every_tenant().await? {
            let trimmed = store
                .tenant_tx(tenant, async |tx| {
                    tx.notifications_trim(KEPT_NOTIFICATIONS).await
                })
                .await;
            match trimmed {
                Ok(count) => removed += count,
                Err(error) => {
                    warn!(%error, %tenant, "old notifications of a tenant were not removed");
                }
            }
        }
        Ok(removed)
    }
}

/// A notification as answers have it.
pub fn describe_notification(row: StoredNotification) -> Notification {
    Notification {
        id: row.id.to_string(),
        kind: row.kind,
        title: row.title,
        text: row.body,
        approval: row.approval.map(|id| id.to_string()),
        run: row.run.map(|id| id.to_string()),
        deployment: row.deployment,
        environment: row.environment,
        created_at: row.created_at.0.to_string(),
        read_at: row.read_at.map(|at| at.0.to_string()),
    }
}
