//! Sessions and API keys.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, RowCursor, StoreError, TenantTx, Timestamp};

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Session {
    pub id: Uuid,
    pub user_id: Uuid,
    pub seed: Uuid,
    pub generation: i32,
    pub rotated_at: Timestamp,
    pub expires_at: Timestamp,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// An API key as lists show it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct ApiKey {
    pub id: Uuid,
    pub user_id: Uuid,
    pub name: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// An API key to be stored.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    pub id: Uuid,
    pub user: UserId,
    pub name: String,
    pub hash: [u8; 32],
    pub scopes: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

const SESSION: &str = "id, user_id, seed, generation, rotated_at, expires_at, ip_address, user_agent, \
    created_at, revoked_at";
const KEY: &str = "id, user_id, name, scopes, expires_at, last_used_at, created_at, revoked_at";

fn filled(statement: &str, columns: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(statement.replace("{}", columns))
}

impl TenantTx {
    pub async fn session_create(
        &mut self,
        user: UserId,
        lifetime_seconds: u32,
        ip_address: Option<&str>,
        user_agent: Option<&str>,
    ) -> Result<Session, StoreError> {
        let user_agent: Option<String> = user_agent.map(|agent| agent.chars().take(500).collect());
        Ok(sqlx::query_as(filled(
            "INSERT INTO nimbus_core.sessions (id, user_id, seed, expires_at, ip_address, user_agent)
             VALUES ($1, $2, $3, now() + make_interval(secs => $4), $5, $6) RETURNING {}",
            SESSION,
        ))
        .bind(Uuid::new_v4())
        .bind(Uuid::from(user))
        .bind(Uuid::new_v4())
        .bind(f64::from(lifetime_seconds))
        .bind(ip_address)
        .bind(user_agent)
        .fetch_one(self.connection())
        .await?)
    }

    /// The session, held until the transaction ends, so that two refreshes take turns.
    pub async fn session_lock(&mut self, id: Uuid) -> Result<Option<Session>, StoreError> {
        Ok(sqlx::query_as(filled(
            "SELECT {} FROM nimbus_core.sessions WHERE id = $1 FOR UPDATE",
            SESSION,
        ))
        .bind(id)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn session_rotate(&mut self, id: Uuid, generation: i32) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE nimbus_core.sessions SET generation = $2, rotated_at = now() WHERE id = $1",
        )
        .bind(id)
        .bind(generation)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Whose session it is, if it is alive and so is its user.
    pub async fn session_user(&mut self, id: Uuid) -> Result<Option<UserId>, StoreError> {
        let user: Option<Uuid> = sqlx::query_scalar(
            "SELECT u.id FROM nimbus_core.sessions s
             JOIN nimbus_core.users u ON u.tenant_id = s.tenant_id AND u.id = s.user_id
             WHERE s.id = $1 AND s.revoked_at IS NULL AND s.expires_at > now()
               AND u.deleted_at IS NULL AND u.disabled_at IS NULL",
        )
        .bind(id)
        .fetch_optional(self.connection())
        .await?;
        Ok(user.map(UserId::from))
    }

    /// Those that are alive, newest first, after the given place.
    pub async fn session_list(
        &mut self,
        user: UserId,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<Session>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(filled(
            "SELECT {} FROM nimbus_core.sessions
             WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > now()
               AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3))
             ORDER BY created_at DESC, id DESC LIMIT $4",
            SESSION,
        ))
        .bind(Uuid::from(user))
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Ends every session of a user but one; how many there were.
    pub async fn session_revoke_others(
        &mut self,
        user: UserId,
        kept: Option<Uuid>,
    ) -> Result<u64, StoreError> {
        let revoked = sqlx::query(
            "UPDATE nimbus_core.sessions SET revoked_at = now()
             WHERE user_id = $1 AND revoked_at IS NULL AND ($2::uuid IS NULL OR id <> $2)",
        )
        .bind(Uuid::from(user))
        .bind(kept)
        .execute(self.connection())
        .await?;
        Ok(revoked.rows_affected())
    }

    /// Whether it was alive.
    pub async fn session_revoke(&mut self, id: Uuid, user: UserId) -> Result<bool, StoreError> {
        let revoked = sqlx::query(
            "UPDATE nimbus_core.sessions SET revoked_at = now() WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL",
        )
        .bind(id)
        .bind(Uuid::from(user))
        .execute(self.connection())
        .await?;
        Ok(revoked.rows_affected() == 1)
    }

    pub async fn key_create(&mut self, new: &NewApiKey) -> Result<ApiKey, StoreError> {
        Ok(sqlx::query_as(filled(
            "INSERT INTO nimbus_core.api_keys (id, user_id, name, hash, scopes, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6) RETURNING {}",
            KEY,
        ))
        .bind(new.id)
        .bind(Uuid::from(new.user))
        .bind(&new.name)
        .bind(new.hash.as_slice())
        .bind(&new.scopes)
        .bind(new.expires_at)
        .fetch_one(self.connection())
        .await?)
    }

    /// Those that were not revoked, newest first, after the given place.
    pub async fn key_list(
        &mut self,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<ApiKey>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(filled(
            "SELECT {} FROM nimbus_core.api_keys
             WHERE revoked_at IS NULL AND ($1::timestamptz IS NULL OR (created_at, id) < ($1, $2))
             ORDER BY created_at DESC, id DESC LIMIT $3",
            KEY,
        ))
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The key and its hash, if its user is alive. Notes the use, at most once a minute.
    pub async fn key_use(&mut self, id: Uuid) -> Result<Option<(ApiKey, Vec<u8>)>, StoreError> {
        let hash: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT k.hash FROM nimbus_core.api_keys k
             JOIN nimbus_core.users u ON u.tenant_id = k.tenant_id AND u.id = k.user_id
             WHERE k.id = $1 AND u.deleted_at IS NULL AND u.disabled_at IS NULL",
        )
        .bind(id)
        .fetch_optional(self.connection())
        .await?;
        let Some(hash) = hash else {
            return Ok(None);
        };
        sqlx::query(
            "UPDATE nimbus_core.api_keys SET last_used_at = now()
             WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')",
        )
        .bind(id)
        .execute(self.connection())
        .await?;
        let key = sqlx::query_as(filled(
            "SELECT {} FROM nimbus_core.api_keys WHERE id = $1",
            KEY,
        ))
        .bind(id)
        .fetch_one(self.connection())
        .await?;
        Ok(Some((key, hash)))
    }

    pub async fn key_revoke(&mut self, id: Uuid) -> Result<(), StoreError> {
        let revoked =
            sqlx::query("UPDATE nimbus_core.api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL")
                .bind(id)
                .execute(self.connection())
                .await?;
        if revoked.rows_affected() == 0 {
            Err(StoreError::NotFound("key"))
        } else {
            Ok(())
        }
    }

    /// Removes sessions that ended a while ago.
    pub async fn session_clean_up(&mut self) -> Result<u64, StoreError> {
        let sessions = sqlx::query(
            "DELETE FROM nimbus_core.sessions
             WHERE expires_at < now() - interval '1 day' OR revoked_at < now() - interval '1 day'",
        )
        .execute(self.connection())
        .await?;
        Ok(sessions.rows_affected())
    }
}
