//! The first run: whether somebody finished it, and the link that lets them.

use sha2::{Digest as _, Sha256};

use crate::{Store, StoreError, Timestamp};

/// How far the first run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStatus {
    Open,
    Complete { at: Timestamp },
}

impl Store {
    pub async fn setup_status(&self) -> Result<SetupStatus, StoreError> {
        let mut connection = self.app().acquire().await?;
        let completed: Option<Timestamp> =
            sqlx::query_scalar("SELECT setup_completed_at FROM nimbus_core.installation")
                .fetch_one(&mut *connection)
                .await?;
        Ok(completed.map_or(SetupStatus::Open, |at| SetupStatus::Complete { at }))
    }

    /// From now on this token, and no earlier one, opens the first run. False if it is complete.
    pub async fn setup_offer(&self, token: &str) -> Result<bool, StoreError> {
        let mut connection = self.app().acquire().await?;
        let updated = sqlx::query(
            "UPDATE nimbus_core.installation SET setup_token_hash = $1 WHERE setup_completed_at IS NULL",
        )
        .bind(hash(token))
        .execute(&mut *connection)
        .await?;
        Ok(updated.rows_affected() == 1)
    }
}

impl crate::TenantTx {
    /// Completes the first run in this transaction. False if the token is wrong or it was complete.
    pub async fn setup_complete(&mut self, token: &str) -> Result<bool, StoreError> {
        let updated = sqlx::query(
            "UPDATE nimbus_core.installation SET setup_completed_at = now(), setup_token_hash = NULL
             WHERE setup_completed_at IS NULL AND setup_token_hash = $1",
        )
        .bind(hash(token))
        .execute(self.connection())
        .await?;
        Ok(updated.rows_affected() == 1)
    }
}

/// The token has enough randomness that a plain digest cannot be turned round.
fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}
