//! Creating, changing, moving and deleting tenants.

use std::time::Duration;

use nimbus_core::TenantId;
use serde_json::{Map, Value};
use sqlx::PgConnection;
use uuid::Uuid;

use super::name::{check_name, check_slug};
use super::{Tenant, TenantRow, with_columns};
use crate::bootstrap::lock;
use crate::config::Isolation;
use crate::migrate::{SHARED, provision};
use crate::{Quota, RegistryTx, Store, StoreError};

/// Held by whoever changes the shape of the tree, until the transaction ends.
pub(super) const TREE_LOCK: i64 = 0x006e_696d_6275_7302;

/// Levels of the tree, the operator's own included. Every request reads the whole way down.
const DEEPEST: usize = 16;

/// A tenant to be created below `parent`.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub parent: TenantId,
    pub slug: String,
    pub name: String,
    pub settings: Value,
    /// Resource to limit.
    pub quotas: Value,
}

impl NewTenant {
    pub fn new(parent: TenantId, slug: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            parent,
            slug: slug.into(),
            name: name.into(),
            settings: Value::Object(Map::new()),
            quotas: Value::Object(Map::new()),
        }
    }
}

/// What to change; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct TenantChange {
    pub name: Option<String>,
    pub settings: Option<Value>,
    pub quotas: Option<Value>,
    /// Refuse if the tenant has another generation by now.
    pub expected_generation: Option<i64>,
}

impl RegistryTx {
    /// Creates a tenant with its schema. Both are there when the transaction commits, or neither.
    pub async fn tenant_create(&mut self, new: &NewTenant) -> Result<Tenant, StoreError> {
        check_slug(&new.slug)?;
        check_name(&new.name)?;
        check_object("settings", &new.settings)?;
        check_quotas(&new.quotas)?;
        lock(self.raw_connection(), TREE_LOCK).await?;
        let parent = self.tenant_get(new.parent).await?;
        if parent.path.len() >= DEEPEST {
            return Err(StoreError::TooDeep);
        }
        let provider = self.provider_of(new.parent).await?;
        let store = self.store.clone();
        let id = TenantId::random();
        insert(
            self.raw_connection(),
            &store,
            id,
            provider,
            &parent.path,
            &new.slug,
            &new.name,
            &new.settings,
            &new.quotas,
        )
        .await
        .map_err(|error| error.exists_if_taken(|| format!("a tenant `{}`", new.slug)))?;
        self.quota_check_of(id, Quota::Tenants, 1).await?;
        self.tenant_get(id).await
    }

    pub async fn tenant_update(
        &mut self,
        id: TenantId,
        change: &TenantChange,
    ) -> Result<Tenant, StoreError> {
        if let Some(name) = &change.name {
            check_name(name)?;
        }
        if let Some(settings) = &change.settings {
            check_object("settings", settings)?;
        }
        if let Some(quotas) = &change.quotas {
            check_quotas(quotas)?;
        }
        let current = self.tenant_get(id).await?;
        let row: Option<TenantRow> = sqlx::query_as(with_columns(
            "UPDATE nimbus_core.tenants SET name = COALESCE($2, name), settings = COALESCE($3, settings),
                    quotas = COALESCE($4, quotas), generation = generation + 1, updated_at = now()
             WHERE id = $1 AND deleted_at IS NULL AND generation = $5 RETURNING {}",
        ))
        .bind(Uuid::from(id))
        .bind(&change.name)
        .bind(&change.settings)
        .bind(&change.quotas)
        .bind(change.expected_generation.unwrap_or(current.generation))
        .fetch_optional(self.connection())
        .await?;
        row.map(Tenant::from).ok_or(StoreError::Stale("the tenant"))
    }

    /// Moves a tenant and everything below it. What they have counts at the new ancestors from now on,
    /// and their limits must allow it.
    pub async fn tenant_move(
        &mut self,
        id: TenantId,
        new_parent: TenantId,
    ) -> Result<Tenant, StoreError> {
        lock(self.raw_connection(), TREE_LOCK).await?;
        let tenant = self.tenant_get(id).await?;
        let target = self.tenant_get(new_parent).await?;
        if tenant.parent.is_none() {
            return Err(StoreError::Root);
        }
        if target.path.contains(&id) {
            return Err(StoreError::Cycle);
        }
        let below: i32 = sqlx::query_scalar(
            "SELECT max(cardinality(path)) - $2 FROM nimbus_core.tenants WHERE path @> ARRAY[$1]",
        )
        .bind(Uuid::from(id))
        .bind(i32::try_from(tenant.path.len()).unwrap_or(i32::MAX))
        .fetch_one(self.connection())
        .await?;
        if target.path.len() + 1 + usize::try_from(below).unwrap_or_default() > DEEPEST {
            return Err(StoreError::TooDeep);
        }
        let path: Vec<Uuid> = target.path.iter().map(|&id| id.into()).collect();
        let above = tenant.path.iter().filter(|&&one| one != id);
        let left: Vec<Uuid> = above
            .filter(|one| !target.path.contains(one))
            .map(|&one| one.into())
            .collect();
        // What it has from there would be found by nobody any more, neither to be used again nor to be given back.
        let held: i64 = sqlx::query_scalar("SELECT nimbus_core.leases_held($1, $2)")
            .bind(Uuid::from(id))
            .bind(&left)
            .fetch_one(self.connection())
            .await?;
        if held > 0 {
            return Err(StoreError::LeasesOutOfReach(held));
        }
        sqlx::query(
            "UPDATE nimbus_core.tenants
             SET path = $2 || path[array_position(path, $1):], generation = generation + 1, updated_at = now(),
                 parent_id = CASE WHEN id = $1 THEN $3 ELSE parent_id END
             WHERE path @> ARRAY[$1]",
        )
        .bind(Uuid::from(id))
        .bind(path)
        .bind(Uuid::from(new_parent))
        .execute(self.connection())
        .await
        .map_err(|error| StoreError::from(error).exists_if_taken(|| format!("a tenant `{}`", tenant.slug)))?;
        self.quota_check_all(id).await?;
        self.tenant_get(id).await
    }

    /// Deletes a tenant and everything below it: gone for everybody at once, and for good after the
    /// time of grace.
    pub async fn tenant_delete(
        &mut self,
        id: TenantId,
        grace: Duration,
    ) -> Result<u64, StoreError> {
        lock(self.raw_connection(), TREE_LOCK).await?;
        if self.tenant_get(id).await?.parent.is_none() {
            return Err(StoreError::Root);
        }
        let deleted = sqlx::query(
            "UPDATE nimbus_core.tenants SET deleted_at = now(), purge_after = now() + make_interval(secs => $2),
                    generation = generation + 1, updated_at = now()
             WHERE path @> ARRAY[$1] AND deleted_at IS NULL",
        )
        .bind(Uuid::from(id))
        .bind(grace.as_secs_f64())
        .execute(self.connection())
        .await?;
        Ok(deleted.rows_affected())
    }

    /// Takes a deletion back: the tenant and what was deleted together with it.
    pub async fn tenant_undelete(&mut self, id: TenantId) -> Result<Tenant, StoreError> {
        lock(self.raw_connection(), TREE_LOCK).await?;
        let restored = sqlx::query(
            "UPDATE nimbus_core.tenants t SET deleted_at = NULL, purge_after = NULL,
                    generation = t.generation + 1, updated_at = now()
             FROM nimbus_core.tenants d, nimbus_core.tenants p
             WHERE d.id = $1 AND p.id = d.parent_id AND p.deleted_at IS NULL
               AND t.path @> ARRAY[$1] AND t.deleted_at = d.deleted_at",
        )
        .bind(Uuid::from(id))
        .execute(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| "a tenant of that slug".to_owned())
        })?;
        if restored.rows_affected() == 0 {
            return Err(StoreError::TenantUnknown);
        }
        self.quota_check_all(id).await?;
        self.tenant_get(id).await
    }

    async fn provider_of(&mut self, id: TenantId) -> Result<Uuid, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT provider_id FROM nimbus_core.tenants WHERE id = $1")
                .bind(Uuid::from(id))
                .fetch_one(self.connection())
                .await?,
        )
    }
}

/// Writes the row and makes the schema.
#[expect(
    clippy::too_many_arguments,
    reason = "the columns of one row, given once by each of two callers"
)]
pub(super) async fn insert(
    connection: &mut PgConnection,
    store: &Store,
    id: TenantId,
    provider: Uuid,
    parents: &[TenantId],
    slug: &str,
    name: &str,
    settings: &Value,
    quotas: &Value,
) -> Result<(), StoreError> {
    let schema: String = match store.isolation() {
        Isolation::Shared => SHARED.to_owned(),
        Isolation::SchemaWithRls => {
            let name = "SELECT 'nimbus_tenant_' || CASE WHEN n < 1000 THEN lpad(n::text, 3, '0') ELSE n::text END
                        FROM nextval('nimbus_core.tenant_numbers') n";
            sqlx::query_scalar(name).fetch_one(&mut *connection).await?
        }
    };
    let path: Vec<Uuid> = parents
        .iter()
        .copied()
        .chain([id])
        .map(Uuid::from)
        .collect();
    sqlx::query(
        "INSERT INTO nimbus_core.tenants
             (id, provider_id, parent_id, path, slug, name, isolation_type, schema_name, settings, quotas)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(Uuid::from(id))
    .bind(provider)
    .bind(parents.last().map(|&parent| Uuid::from(parent)))
    .bind(path)
    .bind(slug)
    .bind(name)
    .bind(store.isolation().as_str())
    .bind(&schema)
    .bind(settings)
    .bind(quotas)
    .execute(&mut *connection)
    .await?;
    provision(connection, store, &schema).await
}

fn check_object(what: &str, value: &Value) -> Result<(), StoreError> {
    if value.is_object() {
        return Ok(());
    }
    Err(StoreError::Invalid {
        what: what.to_owned(),
        why: "must be an object".to_owned(),
    })
}

fn check_quotas(value: &Value) -> Result<(), StoreError> {
    check_object("quotas", value)?;
    for (resource, limit) in value.as_object().into_iter().flatten() {
        // A limit that nothing looks at would be believed.
        if !Quota::ALL.iter().any(|quota| quota.as_str() == resource) {
            return Err(StoreError::Invalid {
                what: format!("there is no quota `{}`:", resource.escape_debug()),
                why: format!("there are {}", Quota::ALL.map(Quota::as_str).join(", ")),
            });
        }
        if limit.as_i64().is_none_or(|limit| limit < 0) {
            return Err(StoreError::Invalid {
                what: format!("the quota for `{resource}`"),
                why: "must be a whole number from 0".to_owned(),
            });
        }
    }
    Ok(())
}
