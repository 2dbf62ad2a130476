//! The registry of tenants.
//!
//! Readers are methods of [`TenantTx`] and see the acting tenant and what is below it. Writers are
//! methods of [`RegistryTx`]. Whatever changes the shape of the tree takes one lock, so that a path is
//! never computed from a parent that is moving.

mod change;
mod name;
mod purge;
mod root;

use nimbus_core::TenantId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, RegistryTx, RowCursor, Store, StoreError, TenantTx, Timestamp};

pub use change::{NewTenant, TenantChange};

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    pub id: TenantId,
    /// None for the operator's own.
    pub parent: Option<TenantId>,
    /// Every ancestor from the root down, and itself.
    pub path: Vec<TenantId>,
    pub slug: String,
    pub name: String,
    pub isolation: String,
    pub schema: String,
    /// Its own settings; see [`TenantTx::settings_effective`] for those in force.
    pub settings: Value,
    pub quotas: Value,
    /// Rises with every change.
    pub generation: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When it was deleted, and when it is gone for good.
    pub deleted: Option<(Timestamp, Timestamp)>,
}

/// Which tenants a list has.
#[derive(Clone, Debug, Default)]
pub struct TenantFilter {
    /// Only children of this one.
    pub parent: Option<TenantId>,
    /// Only those whose name or slug contains this.
    pub text: Option<String>,
    /// Only those with this slug, wherever they are in the tree.
    pub slug: Option<String>,
    /// Only those after this slug and id, the last of the page before.
    pub after: Option<(String, TenantId)>,
    pub limit: u32,
}

/// Columns of a [`TenantRow`], in the order of its fields.
const COLUMNS: &str = "id, parent_id, path, slug, name, isolation_type, schema_name, settings, quotas, \
    generation, created_at, updated_at, deleted_at, purge_after";

#[derive(FromRow)]
struct TenantRow {
    id: Uuid,
    parent_id: Option<Uuid>,
    path: Vec<Uuid>,
    slug: String,
    name: String,
    isolation_type: String,
    schema_name: String,
    settings: Value,
    quotas: Value,
    generation: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
    purge_after: Option<Timestamp>,
}

impl From<TenantRow> for Tenant {
    fn from(row: TenantRow) -> Self {
        Self {
            id: row.id.into(),
            parent: row.parent_id.map(TenantId::from),
            path: row.path.into_iter().map(TenantId::from).collect(),
            slug: row.slug,
            name: row.name,
            isolation: row.isolation_type,
            schema: row.schema_name,
            settings: row.settings,
            quotas: row.quotas,
            generation: row.generation,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted: row.deleted_at.zip(row.purge_after),
        }
    }
}

/// A statement with the columns of a [`TenantRow`] filled in for `{}`.
fn with_columns(statement: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(statement.replace("{}", COLUMNS))
}

impl RegistryTx {
    /// Deleted tenants below one that still exists, for as long as they can come back; those deleted last
    /// come first.
    pub async fn tenants_deleted(
        &mut self,
        parent: TenantId,
        slug: Option<&str>,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<Tenant>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        let rows: Vec<TenantRow> = sqlx::query_as(with_columns(
            "SELECT {} FROM nimbus_core.tenants
             WHERE parent_id = $1 AND deleted_at IS NOT NULL AND ($2::text IS NULL OR slug = $2)
               AND ($3::timestamptz IS NULL OR (deleted_at, id) < ($3, $4))
             ORDER BY deleted_at DESC, id DESC LIMIT $5",
        ))
        .bind(Uuid::from(parent))
        .bind(slug)
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?;
        Ok(rows.into_iter().map(Tenant::from).collect())
    }

    /// Whether a deleted tenant is a child of this one.
    pub async fn tenant_is_deleted_child(
        &mut self,
        parent: TenantId,
        id: TenantId,
    ) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM nimbus_core.tenants
                            WHERE id = $2 AND parent_id = $1 AND deleted_at IS NOT NULL)",
        )
        .bind(Uuid::from(parent))
        .bind(Uuid::from(id))
        .fetch_one(self.connection())
        .await?)
    }
}

impl Store {
    /// The tenant at the end of a path of slugs below the operator's; the operator's own for none.
    pub async fn tenant_find(&self, slugs: &[&str]) -> Result<TenantId, StoreError> {
        let mut connection = self.app().acquire().await?;
        let found: Option<Uuid> = sqlx::query_scalar("SELECT nimbus_core.find_tenant($1)")
            .bind(slugs)
            .fetch_one(&mut *connection)
            .await?;
        found.map(TenantId::from).ok_or(StoreError::TenantUnknown)
    }
}

impl TenantTx {
    pub async fn tenant_get(&mut self, id: TenantId) -> Result<Tenant, StoreError> {
        let row: Option<TenantRow> = sqlx::query_as(with_columns(
            "SELECT {} FROM nimbus_core.tenants WHERE id = $1 AND deleted_at IS NULL",
        ))
        .bind(Uuid::from(id))
        .fetch_optional(self.connection())
        .await?;
        row.map(Tenant::from).ok_or(StoreError::TenantUnknown)
    }

    /// Those of them that are the acting tenant or below it, in no order.
    pub async fn tenants_named(&mut self, ids: &[TenantId]) -> Result<Vec<Tenant>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| Uuid::from(*id)).collect();
        let rows: Vec<TenantRow> = sqlx::query_as(with_columns(
            "SELECT {} FROM nimbus_core.tenants WHERE id = ANY($1) AND deleted_at IS NULL",
        ))
        .bind(ids)
        .fetch_all(self.connection())
        .await?;
        Ok(rows.into_iter().map(Tenant::from).collect())
    }

    /// The first children of each of these tenants, so many of each, by slug.
    pub async fn children_of_each(
        &mut self,
        parents: &[TenantId],
        limit: u32,
    ) -> Result<Vec<Tenant>, StoreError> {
        let parents: Vec<Uuid> = parents.iter().map(|id| Uuid::from(*id)).collect();
        let rows: Vec<TenantRow> = sqlx::query_as(with_columns(
            "SELECT {} FROM (
                 SELECT *, row_number() OVER (PARTITION BY parent_id ORDER BY slug, id) AS place
                 FROM nimbus_core.tenants WHERE parent_id = ANY($1) AND deleted_at IS NULL) placed
             WHERE place <= $2 ORDER BY parent_id, slug, id",
        ))
        .bind(parents)
        .bind(i64::from(limit))
        .fetch_all(self.connection())
        .await?;
        Ok(rows.into_iter().map(Tenant::from).collect())
    }

    /// The acting tenant and those below it, by slug.
    pub async fn tenant_list(&mut self, filter: &TenantFilter) -> Result<Vec<Tenant>, StoreError> {
        let (after, after_id) = filter.after.clone().unzip();
        let pattern = filter.text.as_deref().map(like_pattern);
        let rows: Vec<TenantRow> = sqlx::query_as(with_columns(
            "SELECT {} FROM nimbus_core.tenants
             WHERE deleted_at IS NULL
               AND ($1::uuid IS NULL OR parent_id = $1)
               AND ($2::text IS NULL OR name ILIKE $2 OR slug LIKE $2)
               AND ($3::text IS NULL OR (slug, id) > ($3, $4))
               AND ($6::text IS NULL OR slug = $6)
             ORDER BY slug, id LIMIT $5",
        ))
        .bind(filter.parent.map(Uuid::from))
        .bind(pattern)
        .bind(after)
        .bind(after_id.map(Uuid::from))
        .bind(i64::from(filter.limit))
        .bind(&filter.slug)
        .fetch_all(self.connection())
        .await?;
        Ok(rows.into_iter().map(Tenant::from).collect())
    }
}

/// Text that is looked for anywhere, with nothing in it special.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}
