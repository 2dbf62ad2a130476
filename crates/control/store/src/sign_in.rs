//! The memory of attempts to sign in. It belongs to no tenant: an attempt on a tenant or an account that
//! does not exist leaves the same trace and takes the same time.

use sha2::{Digest as _, Sha256};
use sqlx::FromRow;

use crate::{Store, StoreError, Timestamp};

/// Names an account, or what would be one, without saying which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountDigest([u8; 32]);

impl AccountDigest {
    /// `tenant` is an id, or whatever was given in place of one.
    pub fn of(tenant: &str, email: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(b"nimbus/sign-in/1\0")
            .chain_update((tenant.len() as u64).to_be_bytes())
            .chain_update(tenant)
            .chain_update(email)
            .finalize();
        Self(digest.into())
    }
}

/// An attempt that counts as failed until it is known to be the owner's, and what there was before it.
#[derive(Clone, Debug, FromRow)]
pub struct SignInAttempt {
    attempt: i64,
    /// On this account and from this network, in the last quarter of an hour.
    pub failed_here: Vec<Timestamp>,
    /// On this account, from everywhere.
    pub failed_anywhere: Vec<Timestamp>,
    /// Whether the owner signed in from this network in the last month.
    pub known_here: bool,
    /// From this network on whatever account, in the last quarter of an hour.
    pub network_failures: i64,
    pub network_last: Option<Timestamp>,
    /// On all accounts from everywhere, in the last minute.
    pub all_failures: i64,
    pub all_last: Option<Timestamp>,
}

impl Store {
    pub async fn sign_in_begin(
        &self,
        account: AccountDigest,
        network: &str,
    ) -> Result<SignInAttempt, StoreError> {
        let mut connection = self.app().acquire().await?;
        Ok(
            sqlx::query_as("SELECT * FROM nimbus_core.sign_in_begin($1, $2)")
                .bind(account.0.as_slice())
                .bind(network)
                .fetch_one(&mut *connection)
                .await?,
        )
    }

    /// The attempt was refused before it was made, and does not count.
    pub async fn sign_in_not_made(&self, attempt: &SignInAttempt) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.sign_in_not_made($1)")
            .bind(attempt.attempt)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Forgets what is of no use any more.
    pub async fn sign_in_clean_up(&self) -> Result<u64, StoreError> {
        let mut connection = self.app().acquire().await?;
        let removed: i64 = sqlx::query_scalar("SELECT nimbus_core.sign_in_clean_up()")
            .fetch_one(&mut *connection)
            .await?;
        Ok(removed.unsigned_abs())
    }
}

impl crate::TenantTx {
    pub async fn sign_in_succeeded(&mut self, attempt: &SignInAttempt) -> Result<(), StoreError> {
        sqlx::query("SELECT nimbus_core.sign_in_succeeded($1)")
            .bind(attempt.attempt)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
