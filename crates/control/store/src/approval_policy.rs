//! Which environments need approval, and who decides in whose place.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A policy as the database has it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredApprovalPolicy {
    /// Its name, or `*` for all that have no policy of their own.
    pub environment: String,
    pub chain: Value,
    /// Whether runs on a simulated cloud need it as well.
    pub rehearsals: bool,
    pub set_by: Uuid,
    pub set_at: Timestamp,
}

/// A policy to be set.
#[derive(Clone, Debug)]
pub struct NewApprovalPolicy {
    pub environment: String,
    pub chain: Value,
    pub rehearsals: bool,
    pub set_by: UserId,
}

/// Somebody who lets another decide in their place.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredDelegation {
    pub person: Uuid,
    pub delegate: Uuid,
    pub until: Timestamp,
}

const POLICY: &str = "environment, chain, rehearsals, set_by, set_at";

fn policies(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {POLICY} FROM approval_policies {rest}"))
}

impl TenantTx {
    pub async fn approval_policies(&mut self) -> Result<Vec<StoredApprovalPolicy>, StoreError> {
        Ok(sqlx::query_as(policies("ORDER BY environment"))
            .fetch_all(self.connection())
            .await?)
    }

    /// The policy of exactly this name.
    pub async fn approval_policy_get(
        &mut self,
        environment: &str,
    ) -> Result<Option<StoredApprovalPolicy>, StoreError> {
        Ok(sqlx::query_as(policies("WHERE environment = $1"))
            .bind(environment)
            .fetch_optional(self.connection())
            .await?)
    }

    /// The policy that holds in an environment: its own, else the one for all.
    pub async fn approval_policy_for(
        &mut self,
        environment: &str,
    ) -> Result<Option<StoredApprovalPolicy>, StoreError> {
        Ok(sqlx::query_as(policies(
            "WHERE environment IN ($1, '*') ORDER BY environment = '*' LIMIT 1",
        ))
        .bind(environment)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn approval_policy_put(&mut self, new: &NewApprovalPolicy) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO approval_policies (environment, chain, rehearsals, set_by) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant_id, environment) DO UPDATE SET chain = excluded.chain,
                 rehearsals = excluded.rehearsals, set_by = excluded.set_by, set_at = now()",
        )
        .bind(&new.environment)
        .bind(&new.chain)
        .bind(new.rehearsals)
        .bind(Uuid::from(new.set_by))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn approval_policy_delete(&mut self, environment: &str) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM approval_policies WHERE environment = $1")
            .bind(environment)
            .execute(self.connection())
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("approval policy"));
        }
        Ok(())
    }

    /// Whom somebody lets decide in their place. What is over is forgotten meanwhile.
    pub async fn delegations_of(
        &mut self,
        person: UserId,
    ) -> Result<Vec<StoredDelegation>, StoreError> {
        sqlx::query("DELETE FROM approval_delegations WHERE until <= now()")
            .execute(self.connection())
            .await?;
        Ok(sqlx::query_as(
            "SELECT person, delegate, until FROM approval_delegations WHERE person = $1 ORDER BY until, delegate",
        )
        .bind(Uuid::from(person))
        .fetch_all(self.connection())
        .await?)
    }

    /// In whose places somebody may decide at a moment.
    pub async fn delegators_of(
        &mut self,
        delegate: UserId,
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT person FROM approval_delegations WHERE delegate = $1 AND until > $2 ORDER BY person",
        )
        .bind(Uuid::from(delegate))
        .bind(now)
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn delegation_put(
        &mut self,
        person: UserId,
        delegate: UserId,
        until: Timestamp,
    ) -> Result<StoredDelegation, StoreError> {
        Ok(sqlx::query_as(
            "INSERT INTO approval_delegations (person, delegate, until) VALUES ($1, $2, $3)
             ON CONFLICT (tenant_id, person, delegate) DO UPDATE SET until = excluded.until
             RETURNING person, delegate, until",
        )
        .bind(Uuid::from(person))
        .bind(Uuid::from(delegate))
        .bind(until)
        .fetch_one(self.connection())
        .await?)
    }

    pub async fn delegation_delete(
        &mut self,
        person: UserId,
        delegate: UserId,
    ) -> Result<(), StoreError> {
        let deleted =
            sqlx::query("DELETE FROM approval_delegations WHERE person = $1 AND delegate = $2")
                .bind(Uuid::from(person))
                .bind(Uuid::from(delegate))
                .execute(self.connection())
                .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("delegation"));
        }
        Ok(())
    }
}
