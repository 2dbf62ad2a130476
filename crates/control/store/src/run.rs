//! Runs: recorded whole when they are asked for, and taken by one worker at a time. What happened in them is in
//! `events`.
//!
//! A run that a worker has taken holds its environment, and an index sees to it that there is one. Each
//! taking raises the epoch; whoever writes names the epoch that it has, and one that is over is refused.

mod events;

use nimbus_core::UserId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, Quota, RowCursor, StoreError, TenantTx, Timestamp};

pub use events::StoredEvent;
pub(crate) use events::{PAGE_BYTES, ToldRun};

/// A run as the database has it.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, Deserialize)]
pub struct StoredRun {
    pub deployment: String,
    pub number: i32,
    pub id: Uuid,
    pub action: String,
    pub environment: String,
    pub rehearsal: bool,
    pub request: Value,
    /// Versions of the catalog that it is made of, by stack.
    pub catalog: Value,
    /// `queued`, `running`, `paused` or `ended`.
    pub status: String,
    pub result: Option<String>,
    pub problem: Option<Value>,
    pub wish: Option<String>,
    pub requested_by: Uuid,
    /// The preview whose plan it is held to.
    pub plan: Option<Uuid>,
    /// The approval that it waits for: nobody carries it out until then.
    pub approval: Option<Uuid>,
    pub queued_at: Timestamp,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub last_seq: i64,
    pub server: Option<Uuid>,
    pub epoch: i64,
    /// From 1; one more whenever a run that ended goes on.
    pub life: i32,
    /// It takes an instance to another version of its component.
    pub upgrades: bool,
}

/// A run to be queued.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub deployment: String,
    pub action: String,
    pub environment: String,
    pub rehearsal: bool,
    pub request: Value,
    /// Versions of the catalog that it is made of, by stack.
    pub catalog: Value,
    pub requested_by: UserId,
    /// The request that asks for it.
    pub trace_id: Option<String>,
}

/// Which runs.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub action: Option<String>,
    pub status: Option<String>,
    /// Only those in these environments; all of them when absent.
    pub environments: Option<Vec<String>>,
}

/// A run that a worker has, by its epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRun {
    pub deployment: String,
    pub number: i32,
    pub epoch: i64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// `ended`, `paused`, `queued`, or `running` for one that another worker is to go on with.
    pub status: &'static str,
    /// `resume` when it goes on although its record says that it ended; `forget_creates` when it does so without
    /// creates of unknown outcome.
    pub wish: Option<&'static str>,
    pub result: Option<String>,
    pub problem: Option<Value>,
}

/// A run that its worker gave back.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct ReleasedRun {
    pub(crate) id: Uuid,
    pub(crate) deployment: String,
    pub(crate) number: i32,
    pub(crate) action: String,
    pub(crate) environment: String,
    pub(crate) requested_by: Uuid,
}

/// A worker without a sign of life for so long has lost its run.
pub const RUN_LEASE_SECONDS: i32 = 20;

const COLUMNS: &str = "deployment, number, id, action, environment, rehearsal, request, catalog, status, result, \
    problem, wish, requested_by, plan, approval, queued_at, began_at, ended_at, last_seq, server, epoch, life, upgrades";

pub(crate) fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
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
            "INSERT INTO runs (deployment, number, id, action, environment, rehearsal, request, catalog,
                 requested_by, trace_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(&new.deployment)
        .bind(number)
        .bind(Uuid::new_v4())
        .bind(&new.action)
        .bind(&new.environment)
        .bind(new.rehearsal)
        .bind(&new.request)
        .bind(&new.catalog)
        .bind(Uuid::from(new.requested_by))
        .bind(&new.trace_id)
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

    /// Those of them that there are, in no order.
    pub async fn runs_named(&mut self, ids: &[Uuid]) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select("WHERE id = ANY($1)"))
            .bind(ids)
            .fetch_all(self.connection())
            .await?)
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
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredRun>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(select(
            "WHERE ($1::text IS NULL OR deployment = $1) AND ($2::text IS NULL OR environment = $2)
               AND ($3::text IS NULL OR action = $3) AND ($4::text IS NULL OR status = $4)
               AND ($5::timestamptz IS NULL OR (queued_at, id) < ($5, $6))
               AND ($8::text[] IS NULL OR environment = ANY($8))
             ORDER BY queued_at DESC, id DESC LIMIT $7",
        ))
        .bind(&filter.deployment)
        .bind(&filter.environment)
        .bind(&filter.action)
        .bind(&filter.status)
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .bind(&filter.environments)
        .fetch_all(self.connection())
        .await?)
    }

    /// Environments that runs are in, by name.
    pub async fn run_environments(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT DISTINCT environment FROM runs ORDER BY environment")
                .fetch_all(self.connection())
                .await?,
        )
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

    /// How many runs of the tenant come before a queued one. Those that wait for approval are in nobody's way.
    pub async fn run_position(&mut self, run: &StoredRun) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT count(*) FROM runs WHERE status = 'queued' AND approval IS NULL AND (queued_at, id) < ($1, $2)",
        )
        .bind(run.queued_at)
        .bind(run.id)
        .fetch_one(self.connection())
        .await?)
    }

    /// Takes the next run for a server: one that its worker lost, else the oldest whose environment is free.
    /// With the tenant's turn in hand. That creates may be forgotten is told to the first who takes it, and to nobody
    /// after: what a worker that died left open, nobody has looked for.
    pub async fn run_take(&mut self, server: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let next: Option<(String, i32, Option<String>)> = sqlx::query_as(
            "SELECT r.deployment, r.number, r.wish FROM runs r
             WHERE (r.status = 'running' AND (r.server IS NULL OR r.expires_at < clock_timestamp()))
                OR (r.status = 'queued' AND r.approval IS NULL AND (r.action = 'preview' OR NOT EXISTS (
                    SELECT FROM runs h WHERE h.deployment = r.deployment AND h.environment = r.environment
                        AND h.rehearsal = r.rehearsal AND h.action <> 'preview' AND h.status = 'running')))
             ORDER BY r.status = 'queued', r.queued_at, r.number LIMIT 1 FOR UPDATE",
        )
        .fetch_optional(self.connection())
        .await?;
        let Some((deployment, number, wish)) = next else {
            return Ok(None);
        };
        sqlx::query(
            "UPDATE runs SET status = 'running', server = $3, epoch = epoch + 1,
                 wish = CASE wish WHEN 'forget_creates' THEN 'resume' ELSE wish END,
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
        let taken = self.run_get(&deployment, number).await?;
        Ok(Some(StoredRun { wish, ..taken }))
    }

    /// Whether somebody carries a run out or one waits, be it for an approval whose time may end.
    pub async fn runs_unfinished(&mut self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM runs WHERE status IN ('queued', 'running') OR approval IS NOT NULL)",
        )
        .fetch_one(self.connection())
        .await?)
    }

    /// Runs that have not ended, oldest first.
    pub async fn runs_all_open(&mut self) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE status <> 'ended' OR approval IS NOT NULL ORDER BY queued_at, id LIMIT 10000",
        ))
        .fetch_all(self.connection())
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
        self.told = true;
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

    /// As [`run_require`](Self::run_require), for writes that do not touch the row: they may go on side by side, and
    /// whoever takes the run waits for them.
    pub async fn run_require_shared(&mut self, held: &HeldRun) -> Result<(), StoreError> {
        let ours: Option<i32> = sqlx::query_scalar(
            "SELECT 1 FROM runs
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running' FOR SHARE",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .fetch_optional(self.connection())
        .await?;
        ours.map(drop).ok_or(StoreError::Stale("the run"))
    }

    /// The run that a worker has, if it has it still.
    pub async fn run_held_by(
        &mut self,
        id: Uuid,
        worker: Uuid,
        epoch: i64,
    ) -> Result<StoredRun, StoreError> {
        sqlx::query_as(select(
            "WHERE id = $1 AND server = $2 AND epoch = $3 AND status = 'running'",
        ))
        .bind(id)
        .bind(worker)
        .bind(epoch)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::Stale("the run"))
    }

    /// Gives a run back: it is over, or waits for somebody. Whoever asked for it is told of a bad end.
    pub async fn run_release(&mut self, held: &HeldRun, end: &RunEnd) -> Result<(), StoreError> {
        let released: Option<ReleasedRun> = sqlx::query_as(
            "UPDATE runs SET status = $4, result = $5, problem = $6, server = NULL, expires_at = NULL,
                 wish = $7, ended_at = CASE WHEN $4 = 'ended' THEN clock_timestamp() END
             WHERE deployment = $1 AND number = $2 AND epoch = $3 AND status = 'running'
             RETURNING id, deployment, number, action, environment, requested_by",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(held.epoch)
        .bind(end.status)
        .bind(&end.result)
        .bind(&end.problem)
        .bind(end.wish)
        .fetch_optional(self.connection())
        .await?;
        let run = released.ok_or(StoreError::Stale("the run"))?;
        self.notify_run_end(&run, end).await?;
        self.work_note().await
    }

    /// What somebody wants of a run that is carried out; the worker hears it with its next sign of life.
    pub async fn run_wish(&mut self, id: Uuid, wish: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET wish = $2 WHERE id = $1")
            .bind(id)
            .bind(wish)
            .execute(self.connection())
            .await?;
        self.told = true;
        Ok(())
    }

    /// Changes a run that nobody carries out.
    pub async fn run_set(&mut self, id: Uuid, end: &RunEnd) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE runs SET status = $2, result = $3, problem = $4, wish = $5,
                 ended_at = CASE WHEN $2 = 'ended' THEN clock_timestamp() END,
                 approval = CASE WHEN $2 = 'ended' THEN NULL ELSE approval END,
                 queued_at = CASE WHEN $2 = 'queued' THEN clock_timestamp() ELSE queued_at END,
                 life = CASE WHEN status = 'ended' AND $2 = 'queued' THEN life + 1 ELSE life END
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
        for (table, column) in [
            ("run_events", "run"),
            ("sealed_plans", "run"),
            ("runs", "number"),
        ] {
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
