//! Receivers of a tenant's notifications. Their secrets are sealed before they come here.

use nimbus_control_vault::FieldPath;
use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// What is told is written once for each of them, with what it tells.
pub const MOST_WEBHOOKS: i64 = 32;

/// A receiver as lists show it: without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredWebhook {
    pub id: Uuid,
    pub name: String,
    pub url: String,
    /// None stands for all.
    pub kinds: Vec<String>,
    pub enabled: bool,
    /// Why the server stopped calling it by itself.
    pub disabled_reason: Option<String>,
    /// Until then the secret before the present one signs as well.
    pub previous_until: Option<Timestamp>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl StoredWebhook {
    /// What a secret is sealed for; it opens nowhere else. The one before it was the present one once.
    pub fn secret_field(id: Uuid) -> FieldPath {
        FieldPath::new("webhooks", &id.to_string(), "secret")
    }
}

/// What is set about a receiver.
#[derive(Clone, Debug)]
pub struct WebhookSetup {
    pub name: String,
    pub url: String,
    pub kinds: Vec<String>,
    pub enabled: bool,
}

const COLUMNS: &str = "id, name, url, kinds, enabled, disabled_reason,
    CASE WHEN previous_until > clock_timestamp() THEN previous_until END AS previous_until,
    created_by, created_at, updated_at";

impl TenantTx {
    /// All of them: there are few.
    pub async fn webhook_list(&mut self) -> Result<Vec<StoredWebhook>, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM webhooks ORDER BY name");
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .fetch_all(self.connection())
            .await?)
    }

    /// One that stays as it is until the transaction ends.
    pub async fn webhook_lock(&mut self, id: Uuid) -> Result<StoredWebhook, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM webhooks WHERE id = $1 FOR UPDATE");
        sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("webhook"))
    }

    /// How many there are. Nobody adds one until the transaction ends.
    pub async fn webhook_count(&mut self) -> Result<i64, StoreError> {
        sqlx::query(
            "SELECT pg_advisory_xact_lock(hashtextextended('webhooks ' || nimbus_core.current_tenant()::text, 0))",
        )
        .execute(self.connection())
        .await?;
        Ok(sqlx::query_scalar("SELECT count(*) FROM webhooks")
            .fetch_one(self.connection())
            .await?)
    }

    pub async fn webhook_create(
        &mut self,
        id: Uuid,
        setup: &WebhookSetup,
        sealed: &[u8],
        by: UserId,
    ) -> Result<StoredWebhook, StoreError> {
        let statement = format!(
            "INSERT INTO webhooks (id, name, url, kinds, enabled, secret, created_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING {COLUMNS}"
        );
        let made = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .bind(&setup.name)
            .bind(&setup.url)
            .bind(&setup.kinds)
            .bind(setup.enabled)
            .bind(sealed)
            .bind(Uuid::from(by))
            .fetch_one(self.connection())
            .await;
        made.map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("a webhook `{}`", setup.name))
        })
    }

    /// Replaces what is set. What waits for it is sent, if it is called again from now on.
    pub async fn webhook_update(
        &mut self,
        id: Uuid,
        setup: &WebhookSetup,
    ) -> Result<StoredWebhook, StoreError> {
        let statement = format!(
            "UPDATE webhooks SET name = $2, url = $3, kinds = $4, enabled = $5, updated_at = clock_timestamp(),
                 disabled_reason = CASE WHEN $5 THEN NULL ELSE disabled_reason END
             WHERE id = $1 RETURNING {COLUMNS}"
        );
        let changed = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .bind(&setup.name)
            .bind(&setup.url)
            .bind(&setup.kinds)
            .bind(setup.enabled)
            .fetch_optional(self.connection())
            .await;
        let changed: Option<StoredWebhook> = changed.map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("a webhook `{}`", setup.name))
        })?;
        self.delivery_note(None).await?;
        changed.ok_or(StoreError::NotFound("webhook"))
    }

    /// Gives it a new secret. The present one signs as well for so many hours.
    pub async fn webhook_rotate(
        &mut self,
        id: Uuid,
        sealed: &[u8],
        hours: i32,
    ) -> Result<StoredWebhook, StoreError> {
        let statement = format!(
            "UPDATE webhooks SET previous_secret = secret, secret = $2,
                 previous_until = clock_timestamp() + make_interval(hours => $3), updated_at = clock_timestamp()
             WHERE id = $1 RETURNING {COLUMNS}"
        );
        sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .bind(sealed)
            .bind(hours)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("webhook"))
    }

    /// Calls it no more, because it said so itself.
    pub async fn webhook_disable(&mut self, id: Uuid, reason: &str) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE webhooks SET enabled = false, disabled_reason = $2, updated_at = clock_timestamp()
             WHERE id = $1 AND enabled",
        )
        .bind(id)
        .bind(reason)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Forgets it. What was not delivered has nowhere to go any more.
    pub async fn webhook_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM webhooks WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("webhook"));
        }
        sqlx::query(
            "UPDATE deliveries SET status = 'dropped', ended_at = clock_timestamp(), lease = NULL,
                 problem = 'the webhook was deleted'
             WHERE webhook = $1 AND status IN ('pending', 'dead')",
        )
        .bind(id)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
