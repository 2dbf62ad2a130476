//! Folders for what a tenant has in a cloud.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, NamedCursor, StoreError, TenantTx, Timestamp};

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

/// A folder to be made.
#[derive(Clone, Debug, Default)]
pub struct NewCompartment {
    pub name: String,
    pub parent: Option<Uuid>,
    /// What it is in its cloud, such as the id of a resource group.
    pub cloud_id: Option<String>,
    pub provider_type: Option<String>,
}

impl TenantTx {
    pub async fn compartment_create(
        &mut self,
        name: &str,
        parent: Option<Uuid>,
    ) -> Result<Compartment, StoreError> {
        let new = NewCompartment {
            name: name.to_owned(),
            parent,
            ..NewCompartment::default()
        };
        self.compartment_add(&new).await
    }

    pub async fn compartment_add(
        &mut self,
        new: &NewCompartment,
    ) -> Result<Compartment, StoreError> {
        let name = &new.name;
        let created = sqlx::query_as(
            "INSERT INTO compartments (id, parent_id, name, cloud_id, provider_type) VALUES ($1, $2, $3, $4, $5)
             RETURNING id, parent_id, name, cloud_id, provider_type, created_at",
        )
        .bind(Uuid::new_v4())
        .bind(new.parent)
        .bind(name)
        .bind(&new.cloud_id)
        .bind(&new.provider_type)
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

    pub async fn compartment_get(&mut self, id: Uuid) -> Result<Compartment, StoreError> {
        sqlx::query_as(
            "SELECT id, parent_id, name, cloud_id, provider_type, created_at FROM compartments
             WHERE id = $1 AND deleted_at IS NULL",
        )
        .bind(id)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("compartment"))
    }

    /// Compartments by name: those below one, and those whose name has a text, where that is asked.
    pub async fn compartment_page(
        &mut self,
        parent: Option<Uuid>,
        text: Option<&str>,
        page: &ListPage<NamedCursor>,
    ) -> Result<Vec<Compartment>, StoreError> {
        let (name, id) = page
            .after
            .as_ref()
            .map(|after| (&after.name, after.id))
            .unzip();
        Ok(sqlx::query_as(
            "SELECT id, parent_id, name, cloud_id, provider_type, created_at FROM compartments
             WHERE deleted_at IS NULL AND ($1::uuid IS NULL OR parent_id = $1)
               AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
               AND ($3::text IS NULL OR (name, id) > ($3, $4))
             ORDER BY name, id LIMIT $5",
        )
        .bind(parent)
        .bind(text)
        .bind(name)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The compartment at a path from the root, made where there is none.
    pub(crate) async fn compartment_path(&mut self, path: &[&str]) -> Result<Uuid, StoreError> {
        let mut parent: Option<Uuid> = None;
        for name in path {
            // Two runs may end at once: the later one waits, then finds what the other made.
            sqlx::query(
                "INSERT INTO compartments (id, parent_id, name) VALUES ($1, $2, $3)
                 ON CONFLICT (tenant_id, parent_id, name) WHERE deleted_at IS NULL DO NOTHING",
            )
            .bind(Uuid::new_v4())
            .bind(parent)
            .bind(name)
            .execute(self.connection())
            .await?;
            let found: Uuid = sqlx::query_scalar(
                "SELECT id FROM compartments
                 WHERE parent_id IS NOT DISTINCT FROM $1 AND name = $2 AND deleted_at IS NULL",
            )
            .bind(parent)
            .bind(name)
            .fetch_one(self.connection())
            .await?;
            parent = Some(found);
        }
        parent.ok_or(StoreError::NotFound("compartment"))
    }
}
