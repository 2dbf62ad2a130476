//! Events that are told live: published with a change, and read from the tenant's log.

use jiff::Timestamp as Time;
use nimbus_control_audit::{AuditEntry, Outcome};
use nimbus_control_events::kind::{self, About};
use nimbus_control_events::{LiveCursor, LiveEvent, NewEvent};
use serde_json::{Value, json};
use sqlx::FromRow;
use uuid::Uuid;

use crate::run::ToldRun;
use crate::{EnvironmentKey, StoreError, TenantTx, Timestamp};

#[derive(FromRow)]
struct EventRow {
    seq: i64,
    event: Uuid,
    kind: String,
    subjects: Vec<String>,
    environment: Option<String>,
    person: Option<Uuid>,
    data: Value,
    at: Timestamp,
    trace_id: Option<String>,
}

impl TenantTx {
    /// Publishes events of the tenant. They are told if this transaction is committed, and not otherwise.
    pub async fn live_publish(&mut self, events: &[NewEvent]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let given: Value = events.iter().map(row_of).collect();
        sqlx::query("SELECT nimbus_core.live_publish($1)")
            .bind(given)
            .execute(self.connection())
            .await?;
        self.told = true;
        Ok(())
    }

    /// What an entry of the audit trail tells: that it was made, and what was done.
    pub(crate) async fn live_publish_entry(
        &mut self,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let record = &entry.record;
        let id = record.resource_id.clone().unwrap_or_default();
        let data = json!({
            "resource_id": record.resource_id,
            "resource_type": record.resource_type,
            "sequence": entry.sequence,
            "action": record.action,
            "outcome": record.outcome.as_str(),
            "user_id": record.actor.id,
        });
        let recorded = NewEvent::new(kind::AUDIT_RECORDED, &id, data);
        let mut events = vec![recorded.traced(record.trace_id.clone())];
        if record.outcome == Outcome::Done
            && let Some((kind, about)) = kind::told_by(&record.action)
        {
            let person = match about {
                About::Nobody => None,
                About::Actor => record.actor.id.parse().ok(),
                About::Resource => id.parse().ok(),
            };
            // Its secrets were taken out when it was recorded.
            let changes = record.new_value().map(serde_json::from_str::<Value>);
            let data = json!({
                "resource_id": record.resource_id,
                "resource_type": record.resource_type,
                "changes": changes.and_then(Result::ok).unwrap_or_else(|| json!({})),
            });
            let event = NewEvent::new(kind, &id, data);
            events.push(event.of_person(person).traced(record.trace_id.clone()));
        }
        self.live_publish(&events).await
    }

    /// What events of a run tell to those who do not watch the run itself: how its units are.
    pub(crate) async fn live_publish_run(
        &mut self,
        run: &ToldRun,
        events: &[Value],
    ) -> Result<(), StoreError> {
        let units = events.iter().filter(|event| event["event"] == "unit");
        let told: Vec<NewEvent> = units
            .map(|event| {
                let data = json!({
                    "resource_id": event["unit"],
                    "run": run.id,
                    "deployment": run.deployment,
                    "environment": run.environment,
                    "changes": {"status": event["status"]},
                });
                NewEvent::new(kind::UNIT_STATUS_CHANGED, run.id, data)
                    .about(&run.deployment)
                    .about(format!("{}/{}", run.deployment, run.environment))
                    .in_environment(&run.environment)
                    .traced(run.trace_id.clone())
            })
            .collect();
        self.told = true;
        self.live_publish(&told).await
    }

    /// That a run found a unit not to be as its last one left it.
    pub async fn live_publish_drift(
        &mut self,
        of: &EnvironmentKey,
        component: &str,
        run: i32,
    ) -> Result<(), StoreError> {
        let data = json!({
            "resource_id": component,
            "resource_type": "units",
            "deployment": of.deployment,
            "environment": of.environment,
            "rehearsal": of.rehearsal,
            "run": format!("R{run:04}"),
        });
        let trace: Option<Option<String>> =
            sqlx::query_scalar("SELECT trace_id FROM runs WHERE deployment = $1 AND number = $2")
                .bind(&of.deployment)
                .bind(run)
                .fetch_optional(self.connection())
                .await?;
        let event = NewEvent::new(kind::DRIFT_DETECTED, &of.deployment, data)
            .about(format!("{}/{}", of.deployment, of.environment))
            .in_environment(&of.environment)
            .traced(trace.flatten());
        self.live_publish(&[event]).await
    }

    /// Where the tenant's log ends.
    pub async fn live_head(&mut self) -> Result<LiveCursor, StoreError> {
        let (epoch, seq) = sqlx::query_as("SELECT epoch, last_seq FROM nimbus_core.live_head()")
            .fetch_one(self.connection())
            .await?;
        Ok(LiveCursor { epoch, seq })
    }

    /// The number of the oldest event that is kept; that of the next one if there is none.
    pub async fn live_first(&mut self, head: LiveCursor) -> Result<i64, StoreError> {
        let first: Option<i64> = sqlx::query_scalar("SELECT min(seq) FROM nimbus_core.live_events")
            .fetch_one(self.connection())
            .await?;
        Ok(first.unwrap_or(head.seq + 1))
    }

    /// Events of the tenant's log after a place of it, in order.
    pub async fn live_after(
        &mut self,
        after: LiveCursor,
        limit: u32,
    ) -> Result<Vec<LiveEvent>, StoreError> {
        let rows: Vec<EventRow> = sqlx::query_as(
            "SELECT seq, event, kind, subjects, environment, person, data, at, trace_id FROM nimbus_core.live_events
             WHERE seq > $1 ORDER BY seq LIMIT $2",
        )
        .bind(after.seq)
        .bind(i64::from(limit))
        .fetch_all(self.connection())
        .await?;
        let tenant_id = self.tenant();
        let event = |row: EventRow| LiveEvent {
            kind: row.kind,
            tenant_id,
            data: row.data,
            timestamp: Time::from(row.at).to_string(),
            trace_id: row.trace_id,
            id: row.event,
            cursor: LiveCursor {
                epoch: after.epoch,
                seq: row.seq,
            },
            subjects: row.subjects,
            environment: row.environment,
            person: row.person,
        };
        Ok(rows.into_iter().map(event).collect())
    }
}

fn row_of(event: &NewEvent) -> Value {
    json!({
        "kind": event.kind.name,
        "subjects": event.subjects,
        "environment": event.environment,
        "person": event.person,
        "data": event.data,
        "trace_id": event.trace_id,
    })
}
