//! Accounts of a tenant with clouds. What opens them is sealed before it comes here.

use nimbus_control_vault::FieldPath;
use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// An account as lists show it: without what opens it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct CloudAccount {
    pub id: Uuid,
    pub name: String,
    pub provider_type: String,
    /// For this environment; for all that have none of their own without one.
    pub environment: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub updated_by: Option<Uuid>,
}

impl CloudAccount {
    /// What an account's credentials are sealed for; they open nowhere else.
    pub fn credentials_field(id: Uuid) -> FieldPath {
        FieldPath::new("cloud_accounts", &id.to_string(), "credentials")
    }
}

/// An account to be kept.
#[derive(Clone, Debug)]
pub struct NewCloudAccount {
    pub id: Uuid,
    pub name: String,
    pub provider_type: String,
    pub environment: Option<String>,
    /// Sealed for this id.
    pub sealed: Vec<u8>,
    pub by: UserId,
}

const COLUMNS: &str = "id, name, provider_type, environment, created_at, updated_at, updated_by";

impl TenantTx {
    /// By name; a tenant has as many as environments and clouds.
    pub async fn cloud_account_list(
        &mut self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<CloudAccount>, StoreError> {
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.cloud_accounts
             WHERE deleted_at IS NULL AND ($1::text IS NULL OR name > $1) ORDER BY name LIMIT $2"
        )))
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The id of an account that there is.
    pub async fn cloud_account_lock(
        &mut self,
        name: &str,
    ) -> Result<Option<CloudAccount>, StoreError> {
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.cloud_accounts WHERE deleted_at IS NULL AND name = $1 FOR UPDATE"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// Makes or replaces the account of this id. Refused when another one has the place.
    pub async fn cloud_account_put(
        &mut self,
        new: &NewCloudAccount,
    ) -> Result<CloudAccount, StoreError> {
        let stored = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "INSERT INTO nimbus_core.cloud_accounts (id, name, provider_type, environment, credentials, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, id) DO UPDATE SET provider_type = excluded.provider_type,
                 environment = excluded.environment, credentials = excluded.credentials,
                 updated_by = excluded.updated_by, updated_at = now()
             RETURNING {COLUMNS}"
        )))
        .bind(new.id)
        .bind(&new.name)
        .bind(&new.provider_type)
        .bind(&new.environment)
        .bind(&new.sealed)
        .bind(Uuid::from(new.by))
        .fetch_one(self.connection())
        .await;
        stored.map_err(|error| {
            StoreError::from(error).exists_if_taken(|| "an account for this environment".to_owned())
        })
    }

    /// Forgets an account, and what opened it at once.
    pub async fn cloud_account_delete(&mut self, name: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query(
            "UPDATE nimbus_core.cloud_accounts SET deleted_at = now(), credentials = ''::bytea
             WHERE name = $1 AND deleted_at IS NULL",
        )
        .bind(name)
        .execute(self.connection())
        .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("cloud account"));
        }
        Ok(())
    }

    /// What opens the accounts of an environment, sealed: of each cloud its own, or the one for all.
    pub async fn cloud_credentials(
        &mut self,
        environment: &str,
    ) -> Result<Vec<(Uuid, String, Vec<u8>)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT DISTINCT ON (provider_type) id, provider_type, credentials
             FROM nimbus_core.cloud_accounts
             WHERE deleted_at IS NULL AND (environment IS NULL OR environment = $1)
             ORDER BY provider_type, environment NULLS LAST",
        )
        .bind(environment)
        .fetch_all(self.connection())
        .await?)
    }
}
