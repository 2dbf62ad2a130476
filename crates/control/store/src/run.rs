//! Runs: recorded whole when they are asked for, taken by one worker at a time, and what happened in them.
//!
//! A run that a worker has taken holds its environment, and an index sees to it that there is one. Each
//! taking raises the epoch; whoever writes names the epoch that it has, and one that is over is refused.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, Quota, RowPlace, StoreError, TenantTx, Timestamp};

/// A run as the database has it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredRun {
    pub deployment: String,
    pub number: i32,
    pub id: Uuid,
    pub action: String,
    pub environment: String,
    pub rehearsal: bool,
    pub request: Value,
    /// `queued`, `running`, `paused` or `ended`.
    pub status: String,
    pub result: Option<String>,
    pub problem: Option<Value>,
    pub wish: Option<String>,
    pub requested_by: Uuid,
    pub queued_at: Timestamp,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub last_seq: i64,
    pub server: Option<Uuid>,
    pub epoch: i64,
}

/// A run to be queued.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub deployment: String,
    pub action: String,
    pub environment: String,
    pub rehearsal: bool,
    pub request: Value,
    pub requested_by: UserId,
}

/// Which runs.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub action: Option<String>,
    pub status: Option<String>,
}

/// A run that a worker has, by its epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRun {
    pub deployment: String,
    pub number: i32,
    pub epoch: i64,
}

/// An event with its place in its run.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredEvent {
    pub seq: i64,
    pub event: Value,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// `ended`, `paused`, `queued`, or `running` for one that another worker is to go on with.
    pub status: &'static str,
    /// `resume` when it goes on although its record says that it ended.
    pub wish: Option<&'static str>,
    pub result: Option<String>,
    pub problem: Option<Value>,
}

/// Events of one page have no more than this, but for the last of them.
pub(crate) const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// A worker without a sign of life for so long has lost its run.
pub const RUN_LEASE_SECONDS: i32 = 20;

const COLUMNS: &str = "deployment, number, id, action, environment, rehearsal, request, status, result, \
    problem, wish, requested_by, queued_at, began_at, ended_at, last_seq, server, epoch";

fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM runs {rest}"))
}

impl TenantTx {
    /// Queues a run under the deployment's next number. The deployment has to be locked.
    pub async fn run_queue(&mut self, new: &NewRun) -> Result<StoredRun, StoreError> {
        let number: i32 = sqlx::query_scalar(
            "UPDATE deployments SET next_run = next_run + 1 WHERE id = $1 RETURNING next_run - 1",
        )
        .bind(&new.deployment)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("deployment"))?;
        sqlx::query(
            "INSERT INTO runs (deployment, number, id, action, environment, rehearsal, request, requested_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&new.deployment)
        .bind(number)
        .bind(Uuid::new_v4())
        .bind(&new.action)
        .bind(&new.environment)
        .bind(new.rehearsal)
        .bind(&new.request)
        .bind(Uuid::from(new.requested_by))
        .execute(self.connection())
        .await?;
        self.work_note().await?;
        self.quota_check(Quota::Runs).await?;
        self.run_get(&new.deployment, number).await
    }

    pub async fn run_get(
        &mut self,
        deployment: &str,
        number: i32,
    ) -> Result<StoredRun, StoreError> {
        sqlx::query_as(select("WHERE deployment = $1 AND number = $2"))
            .bind(deployment)
            .bind(number)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("run"))
    }

    pub async fn run_find(&mut self, id: Uuid) -> Result<StoredRun, StoreError> {
        sqlx::query_as(select("WHERE id = $1"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("run"))
    }

    /// A run that nobody changes until the transaction ends.
    pub async fn run_lock(&mut self, id: Uuid) -> Result<StoredRun, StoreError> {
        sqlx::query_as(select("WHERE id = $1 FOR UPDATE"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("run"))
    }

    /// Newest first.
    pub async fn run_list(
        &mut self,
        filter: &RunFilter,
        page: &ListPage<RowPlace>,
    ) -> Result<Vec<StoredRun>, StoreError> {
        let (at, id) = RowPlace::parts(page.after);
        Ok(sqlx::query_as(select(
            "WHERE ($1::text IS NULL OR deployment = $1) AND ($2::text IS NULL OR environment = $2)
               AND ($3::text IS NULL OR action = $3) AND ($4::text IS NULL OR status = $4)
               AND ($5::timestamptz IS NULL OR (queued_at, id) < ($5, $6))
             ORDER BY queued_at DESC, id DESC LIMIT $7",
        ))
        .bind(&filter.deployment)
        .bind(&filter.environment)
        .bind(&filter.action)
        .bind(&filter.status)
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Runs of an environment that began and change something, newest first.
    pub async fn runs_begun(
        &mut self,
        deployment: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND began_at IS NOT NULL
               AND action <> 'preview' ORDER BY number DESC",
        ))
        .bind(deployment)
        .bind(environment)
        .bind(rehearsal)
        .fetch_all(self.connection())
        .await?)
    }

    /// Runs of a deployment that are not over.
    pub async fn runs_open(&mut self, deployment: &str) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE deployment = $1 AND status IN ('queued', 'running') ORDER BY queued_at",
        ))
        .bind(deployment)
        .fetch_all(self.connection())
        .await?)
    }

    /// Deployments with runs that are not over.
    pub async fn deployments_with_runs(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT DISTINCT deployment FROM runs WHERE status IN ('queued', 'running') ORDER BY deployment",
        )
        .fetch_all(self.connection())
        .await?)
    }

    /// How many runs of the tenant come before a queued one.
    pub async fn run_position(&mut self, run: &StoredRun) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT count(*) FROM runs WHERE status = 'queued' AND (queued_at, id) < ($1, $2)",
        )
        .bind(run.queued_at)
        .bind(run.id)
        .fetch_one(self.connection())
        .await?)
    }

    /// Takes the next run for a server: one that its worker lost, else the oldest whose environment is free.
    /// With the tenant's turn in hand.
    pub async fn run_take(&mut self, server: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let next: Option<(String, i32)> = sqlx::query_as(
            "SELECT r.deployment, r.number FROM runs r
             WHERE (r.status = 'running' AND (r.server IS NULL OR r.expires_at < clock_timestamp()))
                OR (r.status = 'queued' AND (r.action = 'preview' OR NOT EXISTS (
                    SELECT FROM runs h WHERE h.deployment = r.deployment AND h.environment = r.environment
                        AND h.rehearsal = r.rehearsal AND h.action <> 'preview' AND h.status = 'running')))
             ORDER BY r.status = 'queued', r.queued_at, r.number LIMIT 1 FOR UPDATE",
        )
        .fetch_optional(self.connection())
        .await?;
        let Some((deployment, number)) = next else {
            return Ok(None);
        };
        sqlx::query(
            "UPDATE runs SET status = 'running', server = $3, epoch = epoch + 1,
                 expires_at = clock_timestamp() + make_interval(secs => $4)
             WHERE deployment = $1 AND number = $2",
        )
        .bind(&deployment)
        .bind(number)
        .bind(server)
        .bind(f64::from(RUN_LEASE_SECONDS))
        .execute(self.connection())
        .await?;
        self.work_taken().await?;
        self.run_get(&deployment, number).await.map(Some)
    }

    /// Whether somebody carries a run out or one waits.
    pub async fn runs_unfinished(&mut self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM runs WHERE status IN ('queued', 'running'))",
        )
        .fetch_one(self.connection())
        .await?)
    }

    /// A sign of life; what somebody wants of the run. Refused when it was taken by another.
    pub async fn run_renew(&mut self, held: &HeldRun) -> Result<Option<String>, StoreError> {
        let renewed: Option<(Option<String>,)> = sqlx::query_as(
            "UPDATE runs SET expires_at = clock_timestamp() + make_interval(secs => $4)
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running' AND server IS NOT NULL
             RETURNING wish",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(f64::from(RUN_LEASE_SECONDS))
        .fetch_optional(self.connection())
        .await?;
        renewed
            .map(|(wish,)| wish)
            .ok_or(StoreError::Stale("the run"))
    }

    /// Records the request as it is carried out; the run has begun.
    pub async fn run_begin(
        &mut self,
        held: &HeldRun,
        request: &Value,
    ) -> Result<StoredRun, StoreError> {
        let begun = sqlx::query(
            "UPDATE runs SET request = $4, began_at = COALESCE(began_at, clock_timestamp())
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running'",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(request)
        .execute(self.connection())
        .await?;
        if begun.rows_affected() == 0 {
            return Err(StoreError::Stale("the run"));
        }
        self.run_get(&held.deployment, held.number).await
    }

    /// Refuses a worker whose run was taken by another. The row stays locked until the transaction
    /// ends, so what it writes beside is written while the run is its own.
    pub async fn run_require(&mut self, held: &HeldRun) -> Result<(), StoreError> {
        let ours: Option<i32> = sqlx::query_scalar(
            "SELECT 1 FROM runs
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running' FOR UPDATE",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .fetch_optional(self.connection())
        .await?;
        ours.map(drop).ok_or(StoreError::Stale("the run"))
    }

    /// Gives a run back: it is over, or waits for somebody.
    pub async fn run_release(&mut self, held: &HeldRun, end: &RunEnd) -> Result<(), StoreError> {
        let released = sqlx::query(
            "UPDATE runs SET status = $4, result = $5, problem = $6, server = NULL, expires_at = NULL,
                 wish = $7, ended_at = CASE WHEN $4 = 'ended' THEN clock_timestamp() END
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running'",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(end.status)
        .bind(&end.result)
        .bind(&end.problem)
        .bind(end.wish)
        .execute(self.connection())
        .await?;
        if released.rows_affected() == 0 {
            return Err(StoreError::Stale("the run"));
        }
        self.work_note().await
    }

    /// What somebody wants of a run that is carried out; the worker hears it with its next sign of life.
    pub async fn run_wish(&mut self, id: Uuid, wish: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET wish = $2 WHERE id = $1")
            .bind(id)
            .bind(wish)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Changes a run that nobody carries out.
    pub async fn run_set(&mut self, id: Uuid, end: &RunEnd) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE runs SET status = $2, result = $3, problem = $4, wish = $5,
                 ended_at = CASE WHEN $2 = 'ended' THEN clock_timestamp() END,
                 queued_at = CASE WHEN $2 = 'queued' THEN clock_timestamp() ELSE queued_at END
             WHERE id = $1 AND server IS NULL",
        )
        .bind(id)
        .bind(end.status)
        .bind(&end.result)
        .bind(&end.problem)
        .bind(end.wish)
        .execute(self.connection())
        .await?;
        self.work_note().await?;
        match end.status {
            // It waits again, and counts again.
            "queued" => self.quota_check(Quota::Runs).await,
            _ => Ok(()),
        }
    }

    /// Appends events of a run that its worker still has, numbered without gaps.
    pub async fn events_append(
        &mut self,
        held: &HeldRun,
        events: &[Value],
    ) -> Result<i64, StoreError> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let last: i64 = sqlx::query_scalar(
            "UPDATE runs SET last_seq = last_seq + $4
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running' RETURNING last_seq",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(count)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::Stale("the run"))?;
        self.events_insert(&held.deployment, held.number, last - count, events)
            .await?;
        Ok(last)
    }

    /// Appends events of a run that nobody carries out. It has to be locked.
    pub async fn events_append_idle(
        &mut self,
        run: &StoredRun,
        events: &[Value],
    ) -> Result<(), StoreError> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let last: i64 = sqlx::query_scalar(
            "UPDATE runs SET last_seq = last_seq + $2 WHERE id = $1 RETURNING last_seq",
        )
        .bind(run.id)
        .bind(count)
        .fetch_one(self.connection())
        .await?;
        self.events_insert(&run.deployment, run.number, last - count, events)
            .await
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

    /// Removes the oldest runs of an environment that are over, except so many. Those that can be gone on
    /// with stay.
    pub async fn runs_prune(
        &mut self,
        deployment: &str,
        environment: &str,
        rehearsal: bool,
        keep: i64,
    ) -> Result<u64, StoreError> {
        let over = "SELECT number FROM runs WHERE deployment = $1 AND environment = $2 AND rehearsal = $3
             AND status = 'ended' AND result IN ('succeeded', 'rolled_back', 'needs_attention', 'cancelled')
             ORDER BY number DESC OFFSET $4";
        let delete = |from: &str, column: &str| {
            sqlx::AssertSqlSafe(format!(
                "DELETE FROM {from} WHERE deployment = $1 AND {column} IN ({over})"
            ))
        };
        let mut removed = 0;
        for (table, column) in [("run_events", "run"), ("runs", "number")] {
            removed = sqlx::query(delete(table, column))
                .bind(deployment)
                .bind(environment)
                .bind(rehearsal)
                .bind(keep)
                .execute(self.connection())
                .await?
                .rows_affected();
        }
        Ok(removed)
    }
}
