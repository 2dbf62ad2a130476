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
use crate::{RegistryTx, Store, StoreError};

/// Held by whoever changes the shape of the tree, until the transaction ends.
pub(super) const TREE_LOCK: i64 = 0x006e_696d_6275_7302;

/// Levels of the tree, the operator's own included. Every request reads the whole way down.
const DEEPEST: usize = 16;
/// Limits that a tenant may have.
const MOST_QUOTAS: usize = 100;

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

    /// Moves a tenant and everything below it. What they use counts at the new ancestors from now on,
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
        self.move_usage(&tenant, &target).await?;
        let path: Vec<Uuid> = target.path.iter().map(|&id| id.into()).collect();
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
        self.tenant_get(id).await
    }

    async fn move_usage(&mut self, tenant: &Tenant, target: &Tenant) -> Result<(), StoreError> {
        let old: Vec<Uuid> = tenant
            .path
            .iter()
            .filter(|&&id| id != tenant.id)
            .map(|&id| id.into())
            .collect();
        let new: Vec<Uuid> = target.path.iter().map(|&id| id.into()).collect();
        let uses: Vec<(String, i64)> = sqlx::query_as(
            "SELECT resource, used FROM nimbus_core.quota_usage WHERE tenant_id = $1 AND used > 0",
        )
        .bind(Uuid::from(tenant.id))
        .fetch_all(self.connection())
        .await?;
        for (resource, used) in uses {
            sqlx::query(
                "UPDATE nimbus_core.quota_usage SET used = used - $3
                 WHERE resource = $1 AND tenant_id = ANY ($2) AND tenant_id <> ALL ($4)",
            )
            .bind(&resource)
            .bind(&old)
            .bind(used)
            .bind(&new)
            .execute(self.connection())
            .await?;
            let over: Option<i64> = sqlx::query_scalar(
                "WITH counted AS (
                     INSERT INTO nimbus_core.quota_usage AS u (tenant_id, resource, used)
                     SELECT id, $1, $3 FROM unnest($4::uuid[]) id WHERE id <> ALL ($2)
                     ON CONFLICT (tenant_id, resource) DO UPDATE SET used = u.used + excluded.used
                     RETURNING u.tenant_id, u.used)
                 SELECT (t.quotas ->> $1)::bigint FROM counted c JOIN nimbus_core.tenants t ON t.id = c.tenant_id
                 WHERE c.used > (t.quotas ->> $1)::bigint LIMIT 1",
            )
            .bind(&resource)
            .bind(&old)
            .bind(used)
            .bind(&new)
            .fetch_optional(self.connection())
            .await?;
            if let Some(limit) = over {
                return Err(StoreError::QuotaExceeded { resource, limit });
            }
        }
        Ok(())
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
    if value
        .as_object()
        .is_some_and(|limits| limits.len() > MOST_QUOTAS)
    {
        return Err(StoreError::Invalid {
            what: "quotas".to_owned(),
            why: format!("are more than {MOST_QUOTAS}"),
        });
    }
    let entries = value.as_object().into_iter().flatten();
    for (resource, limit) in entries {
        let named = (1..=63).contains(&resource.len())
            && resource.starts_with(|first: char| first.is_ascii_lowercase())
            && resource
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !named {
            return Err(StoreError::Invalid {
                what: "the name of a quota".to_owned(),
                why: "must be up to 63 lower-case letters, digits and `_`, a letter first"
                    .to_owned(),
            });
        }
        if limit.as_i64().is_none_or(|limit| limit < 0) {
            return Err(StoreError::Invalid {
                what: format!("the quota for `{}`", resource.escape_debug()),
                why: "must be a whole number from 0".to_owned(),
            });
        }
    }
    Ok(())
}
