//! The first run: whether somebody finished it, and the link that lets them.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{Store, StoreError, Timestamp};

/// How far the first run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStatus {
    Open,
    Complete { at: Timestamp },
}

impl Store {
    /// Which installation this database is, among others that share something with it.
    pub async fn installation_id(&self) -> Result<Uuid, StoreError> {
        let mut connection = self.app().acquire().await?;
        Ok(
            sqlx::query_scalar("SELECT id FROM nimbus_core.installation")
                .fetch_one(&mut *connection)
                .await?,
        )
    }

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
        Ok(sqlx::query_scalar("SELECT nimbus_core.setup_offer($1)")
            .bind(hash(token))
            .fetch_one(&mut *connection)
            .await?)
    }
}

impl crate::TenantTx {
    /// Completes the first run in this transaction. False if the token is wrong or it was complete.
    pub async fn setup_complete(&mut self, token: &str) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT nimbus_core.setup_complete($1)")
            .bind(hash(token))
            .fetch_one(self.connection())
            .await?)
    }
}

/// The token has enough randomness that a plain digest cannot be turned round.
fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}
