//! What tenants let start by the clock.

use nimbus_core::{TenantId, UserId};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{Store, StoreError, TenantTx, Timestamp};

/// A run that is asked for again and again.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct TenantSchedule {
    pub tenant_id: Uuid,
    pub name: String,
    /// `refresh`, `preview` or `deploy`.
    pub action: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    /// Five fields.
    pub cron: String,
    pub time_zone: String,
    pub paused: bool,
    /// In whose name runs are asked for, and the tenant they belong to.
    pub requested_by: Uuid,
    pub requested_from: Uuid,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is said of one.
#[derive(Clone, Debug)]
pub struct NewTenantSchedule {
    pub name: String,
    pub action: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub cron: String,
    pub time_zone: String,
    pub paused: bool,
    pub requested_by: UserId,
    pub requested_from: TenantId,
}

const COLUMNS: &str = "tenant_id, name, action, deployment, environment, rehearsal, cron, time_zone, paused, requested_by, \
    requested_from, created_at, updated_at";

fn sql(text: String) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(text)
}

impl Store {
    /// Those of every tenant.
    pub async fn schedules_of_all(&self) -> Result<Vec<TenantSchedule>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let statement = format!("SELECT {COLUMNS} FROM nimbus_core.schedules_of_all()");
        Ok(sqlx::query_as(sql(statement))
            .fetch_all(&mut *connection)
            .await?)
    }
}

impl TenantTx {
    /// All of the tenant's, by name; there are few.
    pub async fn tenant_schedules(&mut self) -> Result<Vec<TenantSchedule>, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM nimbus_core.tenant_schedules ORDER BY name");
        Ok(sqlx::query_as(sql(statement))
            .fetch_all(self.connection())
            .await?)
    }

    /// One of them, that nobody changes until the transaction ends.
    pub async fn tenant_schedule_lock(
        &mut self,
        name: &str,
    ) -> Result<Option<TenantSchedule>, StoreError> {
        let statement = format!(
            "SELECT {COLUMNS} FROM nimbus_core.tenant_schedules WHERE name = $1 FOR UPDATE"
        );
        Ok(sqlx::query_as(sql(statement))
            .bind(name)
            .fetch_optional(self.connection())
            .await?)
    }

    /// Makes one, or changes it, unless there were more than `most` then. Nothing when there were.
    pub async fn tenant_schedule_put(
        &mut self,
        new: &NewTenantSchedule,
        most: i64,
    ) -> Result<Option<TenantSchedule>, StoreError> {
        // One after the other, so that two together do not pass the limit.
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('schedules ' || nimbus_core.current_tenant(), 0))")
            .execute(self.connection())
            .await?;
        let statement = format!(
            "INSERT INTO nimbus_core.tenant_schedules AS s (name, action, deployment, environment, rehearsal, cron,
                 time_zone, paused, requested_by, requested_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
             WHERE (SELECT count(*) FROM nimbus_core.tenant_schedules WHERE name <> $1) < $11
             ON CONFLICT (tenant_id, name) DO UPDATE SET action = excluded.action, deployment = excluded.deployment,
                 environment = excluded.environment, rehearsal = excluded.rehearsal, cron = excluded.cron,
                 time_zone = excluded.time_zone, paused = excluded.paused, requested_by = excluded.requested_by,
                 requested_from = excluded.requested_from, updated_at = now()
             RETURNING {COLUMNS}"
        );
        Ok(sqlx::query_as(sql(statement))
            .bind(&new.name)
            .bind(&new.action)
            .bind(&new.deployment)
            .bind(&new.environment)
            .bind(new.rehearsal)
            .bind(&new.cron)
            .bind(&new.time_zone)
            .bind(new.paused)
            .bind(Uuid::from(new.requested_by))
            .bind(Uuid::from(new.requested_from))
            .bind(most)
            .fetch_optional(self.connection())
            .await?)
    }

    pub async fn tenant_schedule_delete(&mut self, name: &str) -> Result<(), StoreError> {
        let gone = sqlx::query("DELETE FROM nimbus_core.tenant_schedules WHERE name = $1")
            .bind(name)
            .execute(self.connection())
            .await?;
        match gone.rows_affected() {
            0 => Err(StoreError::NotFound("schedule")),
            _ => Ok(()),
        }
    }
}
