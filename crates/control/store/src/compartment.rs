//! Folders for what a tenant has in a cloud.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A folder in a tenant's own tree.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Compartment {
    pub id: Uuid,
    pub parent_id: Option<Uuid>,
    pub name: String,
    pub cloud_id: Option<String>,
    pub provider_type: Option<String>,
    pub created_at: Timestamp,
}

impl TenantTx {
    pub async fn compartment_create(
        &mut self,
        name: &str,
        parent: Option<Uuid>,
    ) -> Result<Compartment, StoreError> {
        let created = sqlx::query_as(
            "INSERT INTO compartments (id, parent_id, name) VALUES ($1, $2, $3)
             RETURNING id, parent_id, name, cloud_id, provider_type, created_at",
        )
        .bind(Uuid::new_v4())
        .bind(parent)
        .bind(name)
        .fetch_one(self.connection())
        .await;
        match created {
            Ok(compartment) => Ok(compartment),
            Err(sqlx::Error::Database(error)) if error.is_foreign_key_violation() => {
                Err(StoreError::NotFound("compartment"))
            }
            Err(error) => {
                Err(StoreError::from(error).exists_if_taken(|| format!("a compartment `{name}`")))
            }
        }
    }

    /// Every compartment of the tenant, by name.
    pub async fn compartment_list(&mut self) -> Result<Vec<Compartment>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT id, parent_id, name, cloud_id, provider_type, created_at FROM compartments
             WHERE deleted_at IS NULL ORDER BY name, id",
        )
        .fetch_all(self.connection())
        .await?)
    }
}
