//! The semantic layer: clouds, types of things, and what a type is in a cloud. Everybody reads it; row-level security
//! lets the operator's tenant alone write.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A cloud.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct SemanticCloud {
    pub name: String,
    pub display_name: String,
    pub updated_at: Timestamp,
}

/// What a thing is, whatever a cloud calls it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct SemanticType {
    pub name: String,
    pub aliases: Vec<String>,
    pub category: String,
    pub description: String,
    pub updated_at: Timestamp,
}

/// What a type is in a cloud.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct SemanticMapping {
    pub resource_type: String,
    pub provider: String,
    /// None where the cloud has nothing of the kind.
    pub names: Vec<String>,
    /// Types of Pulumi resources.
    pub resources: Vec<String>,
    pub note: String,
    pub updated_at: Timestamp,
}

impl TenantTx {
    pub async fn semantic_clouds(&mut self) -> Result<Vec<SemanticCloud>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT name, display_name, updated_at FROM nimbus_core.semantic_providers ORDER BY name",
        )
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn semantic_types(&mut self) -> Result<Vec<SemanticType>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT name, aliases, category, description, updated_at
             FROM nimbus_core.semantic_resource_types ORDER BY name",
        )
        .fetch_all(self.connection())
        .await?)
    }

    /// By type and cloud; of one cloud if it is given.
    pub async fn semantic_mappings(
        &mut self,
        cloud: Option<&str>,
    ) -> Result<Vec<SemanticMapping>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT resource_type, provider, names, resources, note, updated_at
             FROM nimbus_core.semantic_provider_resource_types
             WHERE $1::text IS NULL OR provider = $1 ORDER BY resource_type, provider",
        )
        .bind(cloud)
        .fetch_all(self.connection())
        .await?)
    }

    /// The type that a Pulumi resource type is, with its cloud.
    pub async fn semantic_classify(
        &mut self,
        resource: &str,
    ) -> Result<Option<SemanticMapping>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT resource_type, provider, names, resources, note, updated_at
             FROM nimbus_core.semantic_provider_resource_types
             WHERE resources @> ARRAY[$1] ORDER BY resource_type, provider LIMIT 1",
        )
        .bind(resource)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The name of a type by its own name or an alias, in any case.
    pub async fn semantic_type_named(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT name FROM nimbus_core.semantic_resource_types
             WHERE lower(name) = lower($1) OR EXISTS (SELECT FROM unnest(aliases) a WHERE lower(a) = lower($1))
             ORDER BY lower(name) = lower($1) DESC, name LIMIT 1",
        )
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn semantic_cloud_put(
        &mut self,
        name: &str,
        display_name: &str,
        by: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.semantic_providers (name, display_name, updated_by) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET display_name = excluded.display_name, updated_by = excluded.updated_by,
                 updated_at = now()",
        )
        .bind(name)
        .bind(display_name)
        .bind(Uuid::from(by))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn semantic_type_put(
        &mut self,
        of: &SemanticType,
        by: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.semantic_resource_types (name, aliases, category, description, updated_by)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (name) DO UPDATE SET aliases = excluded.aliases, category = excluded.category,
                 description = excluded.description, updated_by = excluded.updated_by, updated_at = now()",
        )
        .bind(&of.name)
        .bind(&of.aliases)
        .bind(&of.category)
        .bind(&of.description)
        .bind(Uuid::from(by))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn semantic_mapping_put(
        &mut self,
        of: &SemanticMapping,
        by: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.semantic_provider_resource_types
                 (resource_type, provider, names, resources, note, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (provider, resource_type) DO UPDATE SET names = excluded.names, resources = excluded.resources,
                 note = excluded.note, updated_by = excluded.updated_by, updated_at = now()",
        )
        .bind(&of.resource_type)
        .bind(&of.provider)
        .bind(&of.names)
        .bind(&of.resources)
        .bind(&of.note)
        .bind(Uuid::from(by))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Removes a type with its mappings. One that a component is bound to stays.
    pub async fn semantic_type_delete(&mut self, name: &str) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM nimbus_core.semantic_provider_resource_types WHERE resource_type = $1",
        )
        .bind(name)
        .execute(self.connection())
        .await?;
        let deleted =
            sqlx::query("DELETE FROM nimbus_core.semantic_resource_types WHERE name = $1")
                .bind(name)
                .execute(self.connection())
                .await
                .map_err(|error| StoreError::from(error).in_use_if_referred("this type"))?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("semantic type"));
        }
        Ok(())
    }
}
