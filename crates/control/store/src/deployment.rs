//! Deployments: what was initialised, and its manifest as it is written.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, Quota, StoreError, TenantTx, Timestamp};

/// A deployment as the database has it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredDeployment {
    pub id: String,
    pub organization: String,
    pub project: String,
    pub template: String,
    pub manifest: String,
    pub revision: i64,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

/// A deployment to be stored.
#[derive(Clone, Debug)]
pub struct NewDeployment {
    pub id: String,
    pub organization: String,
    pub project: String,
    pub template: String,
    pub manifest: String,
    pub created_by: UserId,
}

/// Which deployments.
#[derive(Clone, Debug, Default)]
pub struct DeploymentFilter {
    pub organization: Option<String>,
    pub project: Option<String>,
    pub template: Option<String>,
    /// Also those that were taken out of use.
    pub archived: bool,
}

const COLUMNS: &str = "id, organization, project, template, manifest, revision, created_by, created_at, \
    updated_at, archived_at";

fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM deployments {rest}"))
}

impl TenantTx {
    pub async fn deployment_create(
        &mut self,
        new: &NewDeployment,
    ) -> Result<StoredDeployment, StoreError> {
        sqlx::query(
            "INSERT INTO deployments (id, organization, project, template, manifest, created_by)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(&new.id)
        .bind(&new.organization)
        .bind(&new.project)
        .bind(&new.template)
        .bind(&new.manifest)
        .bind(Uuid::from(new.created_by))
        .execute(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("the deployment {}", new.id))
        })?;
        self.quota_check(Quota::Deployments).await?;
        self.deployment_get(&new.id).await
    }

    pub async fn deployment_get(&mut self, id: &str) -> Result<StoredDeployment, StoreError> {
        sqlx::query_as(select("WHERE id = $1"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("deployment"))
    }

    /// Those of them that there are, in no order.
    pub async fn deployments_named(
        &mut self,
        ids: &[String],
    ) -> Result<Vec<StoredDeployment>, StoreError> {
        Ok(sqlx::query_as(select("WHERE id = ANY($1)"))
            .bind(ids)
            .fetch_all(self.connection())
            .await?)
    }

    /// A deployment that nobody changes until the transaction ends.
    pub async fn deployment_lock(&mut self, id: &str) -> Result<StoredDeployment, StoreError> {
        sqlx::query_as(select("WHERE id = $1 AND archived_at IS NULL FOR UPDATE"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("deployment"))
    }

    /// By id, after the given one.
    pub async fn deployment_list(
        &mut self,
        filter: &DeploymentFilter,
        page: &ListPage<String>,
    ) -> Result<Vec<StoredDeployment>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE ($1::text IS NULL OR organization = $1) AND ($2::text IS NULL OR project = $2)
               AND ($3::text IS NULL OR template = $3) AND ($4 OR archived_at IS NULL)
               AND ($5::text IS NULL OR id > $5) ORDER BY id LIMIT $6",
        ))
        .bind(&filter.organization)
        .bind(&filter.project)
        .bind(&filter.template)
        .bind(filter.archived)
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn deployment_taken(&mut self, id: &str) -> Result<bool, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT EXISTS (SELECT FROM deployments WHERE id = $1)")
                .bind(id)
                .fetch_one(self.connection())
                .await?,
        )
    }

    /// Replaces a manifest that is still the one of this revision.
    pub async fn deployment_write(
        &mut self,
        id: &str,
        revision: i64,
        manifest: &str,
    ) -> Result<StoredDeployment, StoreError> {
        let written = sqlx::query(
            "UPDATE deployments SET manifest = $3, revision = revision + 1, updated_at = now()
             WHERE id = $1 AND revision = $2 AND archived_at IS NULL",
        )
        .bind(id)
        .bind(revision)
        .bind(manifest)
        .execute(self.connection())
        .await?;
        if written.rows_affected() == 0 {
            return Err(StoreError::Stale("the deployment"));
        }
        self.deployment_get(id).await
    }

    /// Takes a deployment out of use. What was recorded of it stays.
    pub async fn deployment_archive(&mut self, id: &str) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE deployments SET archived_at = now(), revision = revision + 1 WHERE id = $1",
        )
        .bind(id)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
