//! What is kept of environments between runs: memories of units, versions, signatures of gates.

use nimbus_control_vault::FieldPath;
use serde_json::Value;
use sqlx::FromRow;

use crate::{StoreError, TenantTx};

/// An environment of a deployment, for real or of rehearsals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentKey {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
}

impl EnvironmentKey {
    /// The place for which what is remembered of a unit is sealed.
    pub fn memory_field(&self, component: &str) -> FieldPath {
        let kind = if self.rehearsal { "rehearsal" } else { "real" };
        let row = format!(
            "{}/{}/{kind}/{component}",
            self.deployment, self.environment
        );
        FieldPath::new("unit_memories", &row, "sealed")
    }
}

/// A signature under an item of a gate.
#[derive(Clone, Debug, FromRow)]
pub struct StoredSignature {
    pub item: String,
    pub signature: Value,
}

impl TenantTx {
    pub async fn memory_get(
        &mut self,
        of: &EnvironmentKey,
        component: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT sealed FROM unit_memories
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND component = $4",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(component)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn memory_put(
        &mut self,
        of: &EnvironmentKey,
        component: &str,
        sealed: &[u8],
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO unit_memories (deployment, environment, rehearsal, component, sealed)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, component)
             DO UPDATE SET sealed = $5, updated_at = now()",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(component)
        .bind(sealed)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Oldest first.
    pub async fn version_list(&mut self, of: &EnvironmentKey) -> Result<Vec<Value>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT record FROM environment_versions
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 ORDER BY version",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn version_add(
        &mut self,
        of: &EnvironmentKey,
        version: i32,
        record: &Value,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO environment_versions (deployment, environment, rehearsal, version, record)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(version)
        .bind(record)
        .execute(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("version {version}"))
        })?;
        Ok(())
    }

    pub async fn signature_list(
        &mut self,
        of: &EnvironmentKey,
    ) -> Result<Vec<StoredSignature>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT item, signature FROM gate_signatures
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 ORDER BY item",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn signature_put(
        &mut self,
        of: &EnvironmentKey,
        item: &str,
        signature: &Value,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO gate_signatures (deployment, environment, rehearsal, item, signature)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, item)
             DO UPDATE SET signature = $5",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(item)
        .bind(signature)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
