//! Answers to requests that came with an idempotency key.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// What was answered to which request.
#[derive(Clone, Debug, FromRow)]
pub struct RequestAnswer {
    /// Digest over everything that was asked.
    pub request: Vec<u8>,
    pub answer: Value,
}

impl TenantTx {
    /// The answer that this key has, and nobody else gives one until the transaction ends.
    pub async fn answer_find(
        &mut self,
        caller: UserId,
        key: &str,
    ) -> Result<Option<RequestAnswer>, StoreError> {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(format!("answer {} {caller} {key}", self.tenant()))
            .execute(self.connection())
            .await?;
        Ok(sqlx::query_as(
            "SELECT request, answer FROM request_answers WHERE caller = $1 AND key = $2",
        )
        .bind(Uuid::from(caller))
        .bind(key)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn answer_keep(
        &mut self,
        caller: UserId,
        key: &str,
        request: &[u8],
        answer: &Value,
    ) -> Result<(), StoreError> {
        // Keys are for retries, which come soon.
        sqlx::query("DELETE FROM request_answers WHERE created_at < now() - interval '1 day'")
            .execute(self.connection())
            .await?;
        sqlx::query(
            "INSERT INTO request_answers (caller, key, request, answer) VALUES ($1, $2, $3, $4)",
        )
        .bind(Uuid::from(caller))
        .bind(key)
        .bind(request)
        .bind(answer)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Puts the answer in place of what stood for it.
    pub async fn answer_replace(
        &mut self,
        caller: UserId,
        key: &str,
        answer: &Value,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE request_answers SET answer = $3 WHERE caller = $1 AND key = $2")
            .bind(Uuid::from(caller))
            .bind(key)
            .bind(answer)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The key is as good as new.
    pub async fn answer_forget(&mut self, caller: UserId, key: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM request_answers WHERE caller = $1 AND key = $2")
            .bind(Uuid::from(caller))
            .bind(key)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
