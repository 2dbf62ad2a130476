//! What people have begun to write, each one's own.

use nimbus_control_vault::FieldPath;
use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A draft is forgotten when nobody changed it for so long.
pub const DRAFT_DAYS: i32 = 30;

#[derive(Clone, Debug, FromRow)]
pub struct StoredDraft {
    pub id: String,
    pub kind: String,
    pub sealed: Vec<u8>,
    pub updated_at: Timestamp,
}

impl StoredDraft {
    /// The place for which a draft is sealed.
    pub fn field(person: UserId, id: &str) -> FieldPath {
        FieldPath::new("drafts", &format!("{person}/{id}"), "sealed")
    }
}

impl TenantTx {
    /// Somebody's drafts, the newest first. Those that are too old are forgotten here, for everybody.
    pub async fn draft_list(&mut self, person: UserId) -> Result<Vec<StoredDraft>, StoreError> {
        sqlx::query("DELETE FROM drafts WHERE updated_at < now() - make_interval(days => $1)")
            .bind(DRAFT_DAYS)
            .execute(self.connection())
            .await?;
        Ok(sqlx::query_as(
            "SELECT id, kind, sealed, updated_at FROM drafts WHERE person = $1 ORDER BY updated_at DESC, id",
        )
        .bind(Uuid::from(person))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn draft_put(
        &mut self,
        person: UserId,
        id: &str,
        kind: &str,
        sealed: &[u8],
    ) -> Result<StoredDraft, StoreError> {
        Ok(sqlx::query_as(
            "INSERT INTO drafts (person, id, kind, sealed) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant_id, person, id)
             DO UPDATE SET kind = $3, sealed = $4, updated_at = now()
             RETURNING id, kind, sealed, updated_at",
        )
        .bind(Uuid::from(person))
        .bind(id)
        .bind(kind)
        .bind(sealed)
        .fetch_one(self.connection())
        .await?)
    }

    pub async fn draft_delete(&mut self, person: UserId, id: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM drafts WHERE person = $1 AND id = $2")
            .bind(Uuid::from(person))
            .bind(id)
            .execute(self.connection())
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("draft"));
        }
        Ok(())
    }
}
