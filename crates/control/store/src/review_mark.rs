//! Who has looked at what of the plans of an environment; and what a plan depends on, as it is now.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{EnvironmentKey, ListPage, MarkCursor, StoreError, StoredRun, TenantTx, Timestamp};

#[derive(Clone, Debug, FromRow)]
pub struct StoredMark {
    pub item: String,
    pub digest: String,
    pub person: Uuid,
    /// Nothing for somebody of a tenant above.
    pub email: Option<String>,
    pub marked_at: Timestamp,
}

/// What happened since a plan was made.
#[derive(Clone, Debug, Default)]
pub struct SinceThen {
    /// Files of programs and templates that were changed.
    pub files_changed: i64,
    pub files: i64,
    /// The newest run that changes the environment, if there is one, and whether it came after the plan.
    pub last_run: Option<i32>,
    pub run_since: Option<i32>,
    pub newer_plan: Option<i32>,
}

impl TenantTx {
    pub async fn mark_list(
        &mut self,
        of: &EnvironmentKey,
        page: &ListPage<MarkCursor>,
    ) -> Result<Vec<StoredMark>, StoreError> {
        let after = page.after.as_ref();
        Ok(sqlx::query_as(
            "SELECT m.item, m.digest, m.person, u.email, m.marked_at FROM review_marks m
             LEFT JOIN nimbus_core.users u ON u.tenant_id = m.tenant_id AND u.id = m.person
             WHERE m.deployment = $1 AND m.environment = $2 AND m.rehearsal = $3
             AND ($4::text IS NULL OR (m.item, m.person) > ($4, $5))
             ORDER BY m.item, m.person LIMIT $6",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(after.map(|place| place.item.as_str()))
        .bind(after.map(|place| place.person))
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn mark_put(
        &mut self,
        of: &EnvironmentKey,
        item: &str,
        person: UserId,
        digest: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO review_marks (deployment, environment, rehearsal, item, person, digest)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, item, person)
             DO UPDATE SET digest = $6, marked_at = now()",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(item)
        .bind(Uuid::from(person))
        .bind(digest)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn mark_count(
        &mut self,
        of: &EnvironmentKey,
        person: UserId,
    ) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT count(*) FROM review_marks
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND person = $4",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(Uuid::from(person))
        .fetch_one(self.connection())
        .await?)
    }

    pub async fn mark_delete(
        &mut self,
        of: &EnvironmentKey,
        item: &str,
        person: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM review_marks WHERE deployment = $1 AND environment = $2 AND rehearsal = $3
             AND item = $4 AND person = $5",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(item)
        .bind(Uuid::from(person))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// What moved since a plan was begun.
    pub async fn since_plan(&mut self, plan: &StoredRun) -> Result<SinceThen, StoreError> {
        let began = plan.began_at.unwrap_or(plan.queued_at);
        let (files, files_changed): (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE updated_at > $1) FROM workspace_files",
        )
        .bind(began)
        .fetch_one(self.connection())
        .await?;
        let (last_run, run_since, newer_plan): (Option<i32>, Option<i32>, Option<i32>) =
            sqlx::query_as(
                "SELECT max(number) FILTER (WHERE action <> 'preview'),
                     max(number) FILTER (WHERE action <> 'preview'
                         AND (number > $4 OR ended_at > $5 OR status IN ('running', 'paused'))),
                     max(number) FILTER (WHERE action = 'preview' AND number > $4)
                 FROM runs WHERE deployment = $1 AND environment = $2 AND rehearsal = $3",
            )
            .bind(&plan.deployment)
            .bind(&plan.environment)
            .bind(plan.rehearsal)
            .bind(plan.number)
            .bind(began)
            .fetch_one(self.connection())
            .await?;
        Ok(SinceThen {
            files_changed,
            files,
            last_run,
            run_since,
            newer_plan,
        })
    }

    /// A run that changes the environment and is not over, or waits for its turn.
    pub async fn run_open(&mut self, of: &EnvironmentKey) -> Result<Option<i32>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT min(number) FROM runs WHERE deployment = $1 AND environment = $2 AND rehearsal = $3
             AND action <> 'preview' AND status IN ('queued', 'running')",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .fetch_one(self.connection())
        .await?)
    }
}
