//! What items can be.

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, StoreError, TenantTx, Timestamp};

/// A class.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredClass {
    pub id: Uuid,
    pub name: String,
    pub provider_type: Option<String>,
    /// What it is in the semantic layer.
    pub semantic_type: Option<String>,
    /// JSON Schema of what items of it say.
    pub attributes: Value,
    /// Which relationships items of it may begin; all where it is empty.
    pub relationships: Value,
    pub description: String,
    /// Whether somebody made or described it.
    pub described: bool,
    pub updated_at: Timestamp,
}

/// A class as it is written.
#[derive(Clone, Debug)]
pub struct NewClass {
    pub name: String,
    pub provider_type: Option<String>,
    pub attributes: Value,
    pub relationships: Value,
    pub description: String,
}

const SELECT: &str = "SELECT c.id, c.name, c.provider_type,
     (SELECT s.resource_type FROM nimbus_core.semantic_provider_resource_types s
      WHERE c.name = ANY(s.resources) ORDER BY s.resource_type LIMIT 1) AS semantic_type,
     c.attributes, c.relationships, c.description, c.described, c.updated_at FROM ci_classes c";

fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("{SELECT} {rest}"))
}

impl TenantTx {
    /// Classes by name, those whose name has the text.
    pub async fn class_list(
        &mut self,
        text: Option<&str>,
        page: &ListPage<String>,
    ) -> Result<Vec<StoredClass>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE ($1::text IS NULL OR c.name > $1) AND ($2::text IS NULL OR strpos(lower(c.name), lower($2)) > 0)
             ORDER BY c.name LIMIT $3",
        ))
        .bind(&page.after)
        .bind(text)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn classes_named(
        &mut self,
        names: &[String],
    ) -> Result<Vec<StoredClass>, StoreError> {
        Ok(
            sqlx::query_as(select("WHERE c.name = ANY($1) ORDER BY c.name"))
                .bind(names)
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// Makes a class, or describes it anew.
    pub async fn class_put(&mut self, new: &NewClass) -> Result<StoredClass, StoreError> {
        sqlx::query(
            "INSERT INTO ci_classes (name, provider_type, attributes, relationships, description, described)
             VALUES ($1, $2, $3, $4, $5, true)
             ON CONFLICT (tenant_id, name) DO UPDATE SET provider_type = $2, attributes = $3, relationships = $4,
                 description = $5, described = true, updated_at = now()",
        )
        .bind(&new.name)
        .bind(&new.provider_type)
        .bind(&new.attributes)
        .bind(&new.relationships)
        .bind(&new.description)
        .execute(self.connection())
        .await?;
        let found = self.classes_named(std::slice::from_ref(&new.name)).await?;
        found
            .into_iter()
            .next()
            .ok_or(StoreError::NotFound("class"))
    }
}
