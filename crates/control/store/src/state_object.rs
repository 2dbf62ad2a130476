//! State as a bucket would have it: sealed objects with tags, on the database's clock.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// One object.
#[derive(Clone, Debug, FromRow)]
pub struct StateObject {
    pub sealed: Vec<u8>,
    pub tag: Uuid,
    pub modified_at: Timestamp,
}

/// One object in a list.
#[derive(Clone, Debug, FromRow)]
pub struct ListedStateObject {
    pub key: String,
    /// Of what is sealed, not of the sealed form.
    pub size: i64,
    pub modified_at: Timestamp,
}

/// What a write requires of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateExpectation {
    Anything,
    Absent,
    Tag(Uuid),
}

impl TenantTx {
    pub async fn state_get(&mut self, key: &str) -> Result<Option<StateObject>, StoreError> {
        Ok(
            sqlx::query_as("SELECT sealed, tag, modified_at FROM state_objects WHERE key = $1")
                .bind(key)
                .fetch_optional(self.connection())
                .await?,
        )
    }

    /// The new tag, or none if what is there is not what was expected.
    pub async fn state_put(
        &mut self,
        key: &str,
        sealed: &[u8],
        size: i64,
        expected: StateExpectation,
    ) -> Result<Option<Uuid>, StoreError> {
        self.state_put_as(key, sealed, size, expected, Uuid::new_v4())
            .await
    }

    /// As [`state_put`](Self::state_put), under a tag that whoever writes has chosen: asked twice, for its answer was
    /// lost, it has happened once.
    pub async fn state_put_as(
        &mut self,
        key: &str,
        sealed: &[u8],
        size: i64,
        expected: StateExpectation,
        given: Uuid,
    ) -> Result<Option<Uuid>, StoreError> {
        let statement = match expected {
            StateExpectation::Anything => {
                "INSERT INTO state_objects (key, sealed, size, tag) VALUES ($1, $2, $3, $5)
                 ON CONFLICT (tenant_id, key) DO UPDATE
                 SET sealed = $2, size = $3, tag = $5, modified_at = clock_timestamp()
                 WHERE $4::uuid IS NULL RETURNING tag"
            }
            StateExpectation::Absent => {
                "INSERT INTO state_objects (key, sealed, size, tag) SELECT $1, $2, $3, $5 WHERE $4::uuid IS NULL
                 ON CONFLICT DO NOTHING RETURNING tag"
            }
            StateExpectation::Tag(_) => {
                "UPDATE state_objects
                 SET sealed = $2, size = $3, tag = $5, modified_at = clock_timestamp()
                 WHERE key = $1 AND tag = $4 RETURNING tag"
            }
        };
        let tag = match expected {
            StateExpectation::Tag(tag) => Some(tag),
            StateExpectation::Anything | StateExpectation::Absent => None,
        };
        let stored: Option<Uuid> = sqlx::query_scalar(statement)
            .bind(key)
            .bind(sealed)
            .bind(size)
            .bind(tag)
            .bind(given)
            .fetch_optional(self.connection())
            .await?;
        if stored.is_some() {
            return Ok(stored);
        }
        Ok(
            sqlx::query_scalar("SELECT tag FROM state_objects WHERE key = $1 AND tag = $2")
                .bind(key)
                .bind(given)
                .fetch_optional(self.connection())
                .await?,
        )
    }

    pub async fn state_delete(&mut self, key: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM state_objects WHERE key = $1")
            .bind(key)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Every object whose key begins so, by key.
    pub async fn state_list(&mut self, prefix: &str) -> Result<Vec<ListedStateObject>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT key, size, modified_at FROM state_objects WHERE starts_with(key, $1) ORDER BY key",
        )
        .bind(prefix)
        .fetch_all(self.connection())
        .await?)
    }

    /// Keys that begin so, and which write each object is of. By order and not by `starts_with`, so that the index is used.
    pub async fn state_tags(&mut self, prefix: &str) -> Result<Vec<(String, Uuid)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT key, tag FROM state_objects WHERE key >= $1 AND key < $2 ORDER BY key",
        )
        .bind(prefix)
        .bind(format!("{prefix}\u{10FFFF}"))
        .fetch_all(self.connection())
        .await?)
    }

    /// What the database's clock says.
    pub async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        Ok(sqlx::query_scalar("SELECT clock_timestamp()")
            .fetch_one(self.connection())
            .await?)
    }
}
