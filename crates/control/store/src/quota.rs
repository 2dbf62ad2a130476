//! Settings and quotas as they arrive at a tenant, and reserving against quotas.

use nimbus_core::TenantId;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

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

    /// Takes some of a resource at the tenant and at every ancestor, or nothing at all. What was taken
    /// is given back if the transaction does not commit.
    pub async fn quota_reserve(&mut self, resource: &str, amount: i64) -> Result<(), StoreError> {
        let reserved = sqlx::query("SELECT nimbus_core.quota_reserve($1, $2)")
            .bind(resource)
            .bind(amount)
            .execute(self.connection())
            .await;
        reserved
            .map(|_| ())
            .map_err(|error| refused(error, resource, amount))
    }

    /// Gives back what was reserved.
    pub async fn quota_release(&mut self, resource: &str, amount: i64) -> Result<(), StoreError> {
        let released = sqlx::query("SELECT nimbus_core.quota_release($1, $2)")
            .bind(resource)
            .bind(amount)
            .execute(self.connection())
            .await;
        released
            .map(|_| ())
            .map_err(|error| refused(error, resource, amount))
    }
}

fn refused(error: sqlx::Error, resource: &str, amount: i64) -> StoreError {
    let sqlx::Error::Database(database) = &error else {
        return error.into();
    };
    match database.code().as_deref() {
        Some("NB002") => {
            let detail = database
                .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
                .and_then(|error| error.detail());
            StoreError::QuotaExceeded {
                resource: resource.to_owned(),
                limit: detail
                    .and_then(|limit| limit.parse().ok())
                    .unwrap_or_default(),
            }
        }
        Some("NB003" | "23514") => StoreError::Invalid {
            what: format!("an amount of {amount} {resource}"),
            why: "cannot be reserved or released".to_owned(),
        },
        _ => error.into(),
    }
}
