//! What is told live of items: that one came, changed or went, each by itself.
//!
//! A run may change tens of thousands of items, and a tenant's log keeps twenty thousand events. So of a great change
//! only the first items are told one by one; `cmdb.changed`, which every change tells, has the numbers of all.

use nimbus_control_events::NewEvent;
use nimbus_control_events::kind::{self, EventKind};
use serde_json::{Value, json};

use super::item::StoredItem;
use super::write::{ItemWrite, WriteOrigin};
use crate::{StoreError, TenantTx};

/// Items that one change tells by themselves.
pub const MOST_ITEMS_TOLD: usize = 1000;

/// Differences that are larger are read from the item's history.
const MOST_CHANGES_BYTES: usize = 4 * 1024;

impl TenantTx {
    /// Tells what became of items, up to [`MOST_ITEMS_TOLD`] of them.
    pub(super) async fn live_publish_writes(
        &mut self,
        origin: &WriteOrigin<'_>,
        writes: &[ItemWrite<'_>],
    ) -> Result<(), StoreError> {
        let told = writes.iter().take(MOST_ITEMS_TOLD);
        let events: Vec<NewEvent> = told.map(|write| event_of(origin, write)).collect();
        self.live_publish(&events).await
    }

    /// Tells that somebody changed an item by hand.
    pub(super) async fn live_publish_moved(
        &mut self,
        item: &StoredItem,
        changes: &Value,
    ) -> Result<(), StoreError> {
        let data = json!({
            "resource_id": item.id,
            "resource_type": item.class,
            "name": item.name,
            "changes": changes,
        });
        let mut event = NewEvent::new(kind::RESOURCE_UPDATED, item.id, data);
        if let (Some(deployment), Some(environment)) = (&item.deployment, &item.environment) {
            event = event.about(deployment);
            event = event.about(format!("{deployment}/{environment}"));
            event = event.in_environment(environment);
        }
        self.live_publish(&[event]).await
    }
}

fn kind_of(write: &ItemWrite<'_>) -> EventKind {
    match (write.active, write.change) {
        (false, _) => kind::RESOURCE_DELETED,
        // Under the id that it had, it is there again.
        (true, "created" | "recommissioned") => kind::RESOURCE_CREATED,
        (true, _) => kind::RESOURCE_UPDATED,
    }
}

fn event_of(origin: &WriteOrigin<'_>, write: &ItemWrite<'_>) -> NewEvent {
    let mut data = json!({
        "resource_id": write.id,
        "resource_type": write.content.map(|content| content.class.as_str()),
        "name": write.content.map(|content| content.name.as_str()),
        "key": write.key,
        "change": write.change,
        "revision": write.revision,
        "changes": changes_of(write),
    });
    let WriteOrigin::Unit { of, unit, run, .. } = origin else {
        return NewEvent::new(kind_of(write), write.id, data);
    };
    data["deployment"] = json!(of.deployment);
    data["environment"] = json!(of.environment);
    data["rehearsal"] = json!(of.rehearsal);
    data["unit"] = json!(unit);
    data["run"] = json!(run);
    NewEvent::new(kind_of(write), write.id, data)
        .about(&of.deployment)
        .about(format!("{}/{}", of.deployment, of.environment))
        .in_environment(&of.environment)
}

/// What is different, or of a large difference only where.
fn changes_of(write: &ItemWrite<'_>) -> Value {
    let whole = json!(write.changes);
    if whole.to_string().len() <= MOST_CHANGES_BYTES {
        return whole;
    }
    let names = write.changes.keys().take(100);
    names.map(|name| (name.clone(), json!({}))).collect()
}
