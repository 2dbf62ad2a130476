//! Settings and quotas as they arrive at a tenant, and holding quotas.

use std::fmt;

use nimbus_core::TenantId;
use uuid::Uuid;

use crate::{RegistryTx, StoreError, TenantTx};

/// What a tenant, with everything below it, may have so many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// Deployments that are in use.
    Deployments,
    /// Runs that wait or are under way.
    Runs,
    /// Tenants below it.
    Tenants,
    /// People and service accounts.
    Users,
}

impl Quota {
    pub const ALL: [Self; 4] = [Self::Deployments, Self::Runs, Self::Tenants, Self::Users];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployments => "deployments",
            Self::Runs => "runs",
            Self::Tenants => "tenants",
            Self::Users => "users",
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct EffectiveSetting {
    pub key: String,
    pub value: serde_json::Value,
    /// Whether it comes from further up.
    pub inherited: bool,
}

/// A limit in force: the smallest on the way to the root.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct EffectiveQuota {
    pub resource: String,
    pub quota: i64,
    /// By the tenant and everything below it.
    pub used: i64,
    /// Whether it comes from further up.
    pub inherited: bool,
}

impl TenantTx {
    /// The settings of the tenant or of one below it, the nearest value of each key.
    pub async fn settings_effective(
        &mut self,
        of: TenantId,
    ) -> Result<Vec<EffectiveSetting>, StoreError> {
        Ok(
            sqlx::query_as("SELECT key, value, inherited FROM nimbus_core.effective_settings($1)")
                .bind(Uuid::from(of))
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// The quotas of the tenant or of one below it.
    pub async fn quotas_effective(
        &mut self,
        of: TenantId,
    ) -> Result<Vec<EffectiveQuota>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT resource, quota, used, inherited FROM nimbus_core.effective_quotas($1)",
        )
        .bind(Uuid::from(of))
        .fetch_all(self.connection())
        .await?)
    }

    /// Refuses when the tenant, or one above it, has more of a resource than a limit allows. After it was made,
    /// in the same transaction: whoever makes the last one at the same time waits, and is refused.
    pub async fn quota_check(&mut self, quota: Quota) -> Result<(), StoreError> {
        let tenant = self.tenant();
        self.quota_check_of(tenant, quota, 1).await
    }

    /// The same for a tenant below, which has `amount` more than before.
    pub(crate) async fn quota_check_of(
        &mut self,
        of: TenantId,
        quota: Quota,
        amount: i64,
    ) -> Result<(), StoreError> {
        let checked = sqlx::query("SELECT nimbus_core.quota_check($1, $2, $3)")
            .bind(Uuid::from(of))
            .bind(quota.as_str())
            .bind(amount)
            .execute(self.connection())
            .await;
        checked.map(drop).map_err(|error| refused(error, quota))
    }
}

impl RegistryTx {
    /// Whether all that a tenant and those below it have has room where the tenant is now.
    pub(crate) async fn quota_check_all(&mut self, of: TenantId) -> Result<(), StoreError> {
        for quota in Quota::ALL {
            let mut amount: i64 = sqlx::query_scalar("SELECT nimbus_core.quota_count($1, $2)")
                .bind(Uuid::from(of))
                .bind(quota.as_str())
                .fetch_one(self.connection())
                .await?;
            if quota == Quota::Tenants {
                amount += 1;
            }
            self.quota_check_of(of, quota, amount).await?;
        }
        Ok(())
    }
}

fn refused(error: sqlx::Error, quota: Quota) -> StoreError {
    let sqlx::Error::Database(database) = &error else {
        return error.into();
    };
    if database.code().as_deref() != Some("NB002") {
        return error.into();
    }
    let numbers = database
        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        .and_then(|error| error.detail()?.split_once(' '));
    let number = |text: &str| text.parse().unwrap_or_default();
    let (limit, used) = numbers.unwrap_or_default();
    StoreError::QuotaExceeded {
        quota,
        limit: number(limit),
        used: number(used),
    }
}
