//! What happened in runs: events, numbered without gaps, and read page by page.

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::{HeldRun, StoredRun};
use crate::{StoreError, TenantTx};

/// An event with its place in its run.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredEvent {
    pub seq: i64,
    pub event: Value,
}

/// What is told of a run when it gets events.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct ToldRun {
    pub(crate) last_seq: i64,
    pub(crate) id: Uuid,
    pub(crate) deployment: String,
    pub(crate) environment: String,
    pub(crate) trace_id: Option<String>,
}

/// Events of one page have no more than this, but for the last of them.
pub(crate) const PAGE_BYTES: i64 = 4 * 1024 * 1024;

impl TenantTx {
    /// Appends events of a run that its worker still has, numbered without gaps.
    pub async fn events_append(
        &mut self,
        held: &HeldRun,
        events: &[Value],
    ) -> Result<i64, StoreError> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let told: ToldRun = sqlx::query_as(
            "UPDATE runs SET last_seq = last_seq + $4
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running'
             RETURNING last_seq, id, deployment, environment, trace_id",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(count)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::Stale("the run"))?;
        let last = told.last_seq;
        self.events_insert(&held.deployment, held.number, last - count, events)
            .await?;
        self.live_publish_run(&told, events).await?;
        Ok(last)
    }

    /// As [`events_append`](Self::events_append), by a worker that says how many events the run had: asked twice, for
    /// its answer was lost, it has happened once. Nobody else appends under the same epoch.
    pub async fn events_append_after(
        &mut self,
        held: &HeldRun,
        after: i64,
        events: &[Value],
    ) -> Result<i64, StoreError> {
        self.run_require(held).await?;
        let last = self.run_get(&held.deployment, held.number).await?.last_seq;
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        if last == after.saturating_add(count) && count > 0 {
            return Ok(last);
        }
        if last != after {
            return Err(StoreError::Stale("the record of the run"));
        }
        self.events_append(held, events).await
    }

    /// Appends events of a run that nobody carries out. It has to be locked.
    pub async fn events_append_idle(
        &mut self,
        run: &StoredRun,
        events: &[Value],
    ) -> Result<(), StoreError> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let told: ToldRun = sqlx::query_as(
            "UPDATE runs SET last_seq = last_seq + $2 WHERE id = $1
             RETURNING last_seq, id, deployment, environment, trace_id",
        )
        .bind(run.id)
        .bind(count)
        .fetch_one(self.connection())
        .await?;
        let before = told.last_seq - count;
        self.events_insert(&run.deployment, run.number, before, events)
            .await?;
        self.live_publish_run(&told, events).await
    }

    async fn events_insert(
        &mut self,
        deployment: &str,
        number: i32,
        before: i64,
        events: &[Value],
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO run_events (deployment, run, seq, event)
             SELECT $1, $2, $3 + given.place, given.event
             FROM unnest($4::jsonb[]) WITH ORDINALITY AS given (event, place)",
        )
        .bind(deployment)
        .bind(number)
        .bind(before)
        .bind(events)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Events of a run after a place, in order: so many, or fewer when they are large, and at least one if there is
    /// one.
    pub async fn events_after(
        &mut self,
        deployment: &str,
        number: i32,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT seq, event FROM (
                 SELECT seq, event, sum(size) OVER (ORDER BY seq) - size AS before FROM (
                     SELECT seq, event, octet_length(event::text) AS size FROM run_events
                     WHERE deployment = $1 AND run = $2 AND seq > $3 ORDER BY seq LIMIT $4) page) sized
             WHERE before < $5 ORDER BY seq",
        )
        .bind(deployment)
        .bind(number)
        .bind(after)
        .bind(i64::from(limit))
        .bind(PAGE_BYTES)
        .fetch_all(self.connection())
        .await?)
    }
}
