//! Workers on other machines: who they said they are, and when they were last heard of.

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A worker that joined.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredWorker {
    pub id: Uuid,
    pub name: String,
    pub account: Uuid,
    pub version: String,
    pub slots: i32,
    pub abilities: Value,
    pub draining: bool,
    pub running: i32,
    pub joined_at: Timestamp,
    pub seen_at: Timestamp,
    pub left_at: Option<Timestamp>,
    /// Whether it gave a sign of life of late, by the database's clock.
    pub present: bool,
}

/// A worker that joins.
#[derive(Clone, Debug)]
pub struct NewWorker {
    pub id: Uuid,
    pub name: String,
    pub account: Uuid,
    pub version: String,
    pub slots: i32,
    pub abilities: Value,
}

/// Without a sign of life for so long a worker is away.
const AWAY_SECONDS: i32 = 20;

fn workers(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "SELECT id, name, account, version, slots, abilities, draining, running, joined_at, seen_at, left_at,
             left_at IS NULL AND seen_at > clock_timestamp() - make_interval(secs => {AWAY_SECONDS}) AS present
         FROM nimbus_core.workers {rest}"
    ))
}

impl TenantTx {
    /// A worker joins, or comes back. Refused when somebody else has its id, or its name and is present; a name of one
    /// that is away is taken over.
    pub async fn worker_join(&mut self, new: &NewWorker) -> Result<StoredWorker, StoreError> {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('nimbus/workers', 0))")
            .execute(self.connection())
            .await?;
        let taken: Option<StoredWorker> = sqlx::query_as(workers("WHERE name = $1 AND id <> $2"))
            .bind(&new.name)
            .bind(new.id)
            .fetch_optional(self.connection())
            .await?;
        if let Some(other) = taken {
            if other.present {
                return Err(StoreError::Exists(format!("the worker {}", new.name)));
            }
            self.worker_forget(other.id).await?;
        }
        let joined = sqlx::query(
            "INSERT INTO nimbus_core.workers AS w (id, name, account, version, slots, abilities)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, id) DO UPDATE SET name = $2, version = $4, slots = $5, abilities = $6,
                 running = 0, joined_at = clock_timestamp(), seen_at = clock_timestamp(), left_at = NULL
             WHERE w.account = $3",
        )
        .bind(new.id)
        .bind(&new.name)
        .bind(new.account)
        .bind(&new.version)
        .bind(new.slots)
        .bind(&new.abilities)
        .execute(self.connection())
        .await?;
        if joined.rows_affected() == 0 {
            return Err(StoreError::Exists("a worker of somebody else".to_owned()));
        }
        self.worker_get(new.id, new.account).await
    }

    /// A worker, as the account that it joined with sees it.
    pub async fn worker_get(
        &mut self,
        id: Uuid,
        account: Uuid,
    ) -> Result<StoredWorker, StoreError> {
        sqlx::query_as(workers("WHERE id = $1 AND account = $2"))
            .bind(id)
            .bind(account)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("worker"))
    }

    /// A sign of life; whether it is to take no more runs.
    pub async fn worker_beat(
        &mut self,
        id: Uuid,
        account: Uuid,
        running: i32,
    ) -> Result<bool, StoreError> {
        sqlx::query_scalar(
            "UPDATE nimbus_core.workers SET seen_at = clock_timestamp(), running = $3
             WHERE id = $1 AND account = $2 AND left_at IS NULL RETURNING draining",
        )
        .bind(id)
        .bind(account)
        .bind(running)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("worker"))
    }

    /// A worker went by itself, in order.
    pub async fn worker_leave(&mut self, id: Uuid, account: Uuid) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE nimbus_core.workers SET left_at = clock_timestamp(), running = 0
             WHERE id = $1 AND account = $2",
        )
        .bind(id)
        .bind(account)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Lets a worker take no more runs, or take some again.
    pub async fn worker_drain(
        &mut self,
        name: &str,
        drain: bool,
    ) -> Result<StoredWorker, StoreError> {
        let changed: Option<Uuid> = sqlx::query_scalar(
            "UPDATE nimbus_core.workers SET draining = $2 WHERE name = $1 RETURNING id",
        )
        .bind(name)
        .bind(drain)
        .fetch_optional(self.connection())
        .await?;
        let id = changed.ok_or(StoreError::NotFound("worker"))?;
        Ok(sqlx::query_as(workers("WHERE id = $1"))
            .bind(id)
            .fetch_one(self.connection())
            .await?)
    }

    /// By name; those that are away for a week are forgotten.
    pub async fn worker_list(&mut self) -> Result<Vec<StoredWorker>, StoreError> {
        Ok(sqlx::query_as(workers(
            "WHERE seen_at > clock_timestamp() - interval '7 days' ORDER BY name",
        ))
        .fetch_all(self.connection())
        .await?)
    }

    async fn worker_forget(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM nimbus_core.workers WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
