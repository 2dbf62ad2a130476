//! Components: drafts that are edited, and versions that stay as they were published.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, StoreError, TenantTx, Timestamp};

/// A component as it is edited.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredComponent {
    pub tenant_id: Uuid,
    pub id: Uuid,
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    /// Texts of its files by path; none in lists.
    pub code: Value,
    pub input_schema: Value,
    pub output_schema: Value,
    pub resolver_bindings: Value,
    pub settings: Value,
    /// The newest version; zero without one.
    pub version: i32,
    pub is_system: bool,
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a draft is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftContent {
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    pub code: Value,
    pub input_schema: Value,
    pub output_schema: Value,
    pub resolver_bindings: Value,
    pub settings: Value,
}

/// A published version.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredVersion {
    pub tenant_id: Uuid,
    pub component_id: Uuid,
    pub version: i32,
    pub semantic_version: String,
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    pub code: Value,
    pub input_schema: Value,
    pub output_schema: Value,
    pub resolver_bindings: Value,
    pub settings: Value,
    pub digest: Vec<u8>,
    pub changelog: String,
    pub changes: Value,
    pub published_at: Timestamp,
    pub published_by: Uuid,
    pub deprecated_at: Option<Timestamp>,
    pub deprecation: Option<String>,
    /// How instances get over it, where it breaks the contract of the one before.
    pub upgrade_workflow: Option<String>,
}

/// A version to be published.
#[derive(Clone, Debug)]
pub struct NewVersion {
    pub version: i32,
    pub semantic_version: String,
    pub digest: Vec<u8>,
    pub changelog: String,
    pub changes: Value,
    pub published_by: UserId,
    pub upgrade_workflow: Option<String>,
}

/// Which components.
#[derive(Clone, Debug, Default)]
pub struct ComponentFilter {
    pub provider: Option<String>,
    pub semantic_type: Option<String>,
    /// In the name, the display name or the description.
    pub text: Option<String>,
}

/// Somebody who uses a component.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ComponentUser {
    pub tenant: Uuid,
    pub tenant_name: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub version: Option<i32>,
    pub manifest: String,
}

const COLUMNS: &str = "tenant_id, id, name, display_name, description, provider, semantic_type, language, code, \
    input_schema, output_schema, resolver_bindings, settings, version, is_system, revision, created_at, updated_at";
const LISTED: &str = "tenant_id, id, name, display_name, description, provider, semantic_type, language, \
    '{}'::jsonb AS code, input_schema, output_schema, resolver_bindings, settings, version, is_system, revision, \
    created_at, updated_at";
const VERSION: &str = "tenant_id, component_id, version, semantic_version, name, display_name, description, provider, \
    semantic_type, language, code, input_schema, output_schema, resolver_bindings, settings, digest, changelog, \
    changes, published_at, published_by, deprecated_at, deprecation, upgrade_workflow";
const FILTER: &str = "($1::text IS NULL OR provider = $1) AND ($2::text IS NULL OR semantic_type = $2)
    AND ($3::text IS NULL OR position(lower($3) IN lower(name || ' ' || display_name || ' ' || description)) > 0)";

fn sql(text: String) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(text)
}

impl TenantTx {
    /// The tenant's own, and those of the operator that it has not, by name; without code.
    pub async fn component_list(
        &mut self,
        filter: &ComponentFilter,
        page: &ListPage<String>,
    ) -> Result<Vec<StoredComponent>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT * FROM (
                 SELECT {LISTED} FROM nimbus_core.components WHERE deleted_at IS NULL
                 UNION ALL
                 SELECT {LISTED} FROM nimbus_core.shared_components() s WHERE NOT EXISTS (
                     SELECT FROM nimbus_core.components o WHERE o.deleted_at IS NULL AND o.name = s.name)
             ) c WHERE {FILTER} AND ($4::text IS NULL OR name > $4) ORDER BY name LIMIT $5"
        )))
        .bind(&filter.provider)
        .bind(&filter.semantic_type)
        .bind(&filter.text)
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The tenant's own.
    pub async fn component_find(
        &mut self,
        name: &str,
    ) -> Result<Option<StoredComponent>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {COLUMNS} FROM nimbus_core.components WHERE name = $1 AND deleted_at IS NULL"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The operator's, if it is published; without code.
    pub async fn component_shared(
        &mut self,
        name: &str,
    ) -> Result<Option<StoredComponent>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {COLUMNS} FROM nimbus_core.shared_components() WHERE name = $1"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The tenant's own, that nobody changes until the transaction ends.
    pub async fn component_lock(&mut self, name: &str) -> Result<StoredComponent, StoreError> {
        sqlx::query_as(sql(format!(
            "SELECT {COLUMNS} FROM nimbus_core.components WHERE name = $1 AND deleted_at IS NULL FOR UPDATE"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("component"))
    }

    pub async fn component_create(
        &mut self,
        name: &str,
        draft: &DraftContent,
        by: UserId,
    ) -> Result<StoredComponent, StoreError> {
        sqlx::query_as(sql(format!(
            "INSERT INTO nimbus_core.components (id, name, display_name, description, provider, semantic_type, language,
                 code, input_schema, output_schema, resolver_bindings, settings, created_by, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13) RETURNING {COLUMNS}"
        )))
        .bind(Uuid::new_v4())
        .bind(name)
        .bind(&draft.display_name)
        .bind(&draft.description)
        .bind(&draft.provider)
        .bind(&draft.semantic_type)
        .bind(&draft.language)
        .bind(&draft.code)
        .bind(&draft.input_schema)
        .bind(&draft.output_schema)
        .bind(&draft.resolver_bindings)
        .bind(&draft.settings)
        .bind(Uuid::from(by))
        .fetch_one(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("the component {name}"))
        })
    }

    /// Replaces the draft. The component has to be locked.
    pub async fn component_write(
        &mut self,
        id: Uuid,
        draft: &DraftContent,
        by: UserId,
    ) -> Result<StoredComponent, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "UPDATE nimbus_core.components SET display_name = $2, description = $3, provider = $4, semantic_type = $5,
                 language = $6, code = $7, input_schema = $8, output_schema = $9, resolver_bindings = $10,
                 settings = $11, updated_by = $12, updated_at = now(), revision = revision + 1
             WHERE id = $1 RETURNING {COLUMNS}"
        )))
        .bind(id)
        .bind(&draft.display_name)
        .bind(&draft.description)
        .bind(&draft.provider)
        .bind(&draft.semantic_type)
        .bind(&draft.language)
        .bind(&draft.code)
        .bind(&draft.input_schema)
        .bind(&draft.output_schema)
        .bind(&draft.resolver_bindings)
        .bind(&draft.settings)
        .bind(Uuid::from(by))
        .fetch_one(self.connection())
        .await?)
    }

    /// Takes a component out of the catalog. Its versions stay for those who use them.
    pub async fn component_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.components SET deleted_at = now() WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Publishes the draft as it is. The component has to be locked.
    pub async fn version_publish(
        &mut self,
        component: Uuid,
        new: &NewVersion,
    ) -> Result<StoredVersion, StoreError> {
        let published = sqlx::query_as(sql(format!(
            "INSERT INTO nimbus_core.component_versions (id, component_id, version, semantic_version, name, display_name,
                 description, provider, semantic_type, language, code, input_schema, output_schema, resolver_bindings,
                 settings, digest, changelog, changes, published_by, upgrade_workflow)
             SELECT $1, c.id, $3, $4, c.name, c.display_name, c.description, c.provider, c.semantic_type, c.language,
                 c.code, c.input_schema, c.output_schema, c.resolver_bindings, c.settings, $5, $6, $7, $8, $9
             FROM nimbus_core.components c WHERE c.id = $2 RETURNING {VERSION}"
        )))
        .bind(Uuid::new_v4())
        .bind(component)
        .bind(new.version)
        .bind(&new.semantic_version)
        .bind(&new.digest)
        .bind(&new.changelog)
        .bind(&new.changes)
        .bind(Uuid::from(new.published_by))
        .bind(&new.upgrade_workflow)
        .fetch_one(self.connection())
        .await?;
        sqlx::query(
            "UPDATE nimbus_core.components SET version = $2, is_published = true, updated_at = now() WHERE id = $1",
        )
        .bind(component)
        .bind(new.version)
        .execute(self.connection())
        .await?;
        Ok(published)
    }

    /// Versions of the tenant's own component, newest first.
    pub async fn versions_own(
        &mut self,
        component: Uuid,
        page: &ListPage<i32>,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {VERSION} FROM nimbus_core.component_versions
             WHERE component_id = $1 AND ($2::int IS NULL OR version < $2) ORDER BY version DESC LIMIT $3"
        )))
        .bind(component)
        .bind(page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Versions of the operator's component, newest first.
    pub async fn versions_shared(
        &mut self,
        component: Uuid,
        name: &str,
        page: &ListPage<i32>,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {VERSION} FROM nimbus_core.shared_versions($1)
             WHERE component_id = $2 AND ($3::int IS NULL OR version < $3) ORDER BY version DESC LIMIT $4"
        )))
        .bind(name)
        .bind(component)
        .bind(page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Every version of a component of the tenant or of the operator, oldest first; without code.
    pub async fn versions_known(
        &mut self,
        of: &StoredComponent,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        let from = match of.tenant_id == Uuid::from(self.tenant()) {
            true => "nimbus_core.component_versions",
            false => "nimbus_core.shared_versions($1)",
        };
        let columns = VERSION.replace(" code,", " '{}'::jsonb AS code,");
        Ok(sqlx::query_as(sql(format!(
            "SELECT {columns} FROM {from} WHERE name = $1 AND component_id = $2 ORDER BY version"
        )))
        .bind(&of.name)
        .bind(of.id)
        .fetch_all(self.connection())
        .await?)
    }

    /// One version of a component, whoever of the tenant and the operator owns it. That of a component which was deleted
    /// as well: instances go on with it.
    pub async fn version_of(
        &mut self,
        owner: Uuid,
        name: &str,
        version: i32,
    ) -> Result<Option<StoredVersion>, StoreError> {
        let own = owner == Uuid::from(self.tenant());
        let from = match own {
            true => "nimbus_core.component_versions",
            false => "nimbus_core.shared_versions($1)",
        };
        Ok(sqlx::query_as(sql(format!(
            "SELECT {VERSION} FROM {from} WHERE name = $1 AND version = $2 AND tenant_id = $3
             ORDER BY published_at DESC LIMIT 1"
        )))
        .bind(name)
        .bind(version)
        .bind(owner)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The input schema and the bindings of a version, without its code.
    pub async fn version_contract(
        &mut self,
        owner: Uuid,
        name: &str,
        version: i32,
    ) -> Result<Option<(Value, Value)>, StoreError> {
        let own = owner == Uuid::from(self.tenant());
        let from = match own {
            true => "nimbus_core.component_versions",
            false => "nimbus_core.shared_versions($1)",
        };
        Ok(sqlx::query_as(sql(format!(
            "SELECT input_schema, resolver_bindings FROM {from} WHERE name = $1 AND version = $2 AND tenant_id = $3
             ORDER BY published_at DESC LIMIT 1"
        )))
        .bind(name)
        .bind(version)
        .bind(owner)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The newest version that somebody who deploys gets: of the tenant's own component, or else of the operator's. One
    /// that should not be used any more is not among them while there is another.
    pub async fn version_newest(
        &mut self,
        name: &str,
    ) -> Result<Option<StoredVersion>, StoreError> {
        let own = sqlx::query_as(sql(format!(
            "SELECT {} FROM nimbus_core.component_versions v JOIN nimbus_core.components c
                 ON c.tenant_id = v.tenant_id AND c.id = v.component_id
             WHERE c.name = $1 AND c.deleted_at IS NULL
             ORDER BY v.deprecated_at IS NOT NULL, v.version DESC LIMIT 1",
            VERSION
                .split(", ")
                .map(|column| format!("v.{column}"))
                .collect::<Vec<_>>()
                .join(", ")
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?;
        if own.is_some() {
            return Ok(own);
        }
        Ok(sqlx::query_as(sql(format!(
            "SELECT {VERSION} FROM nimbus_core.shared_versions($1) v
             WHERE EXISTS (SELECT FROM nimbus_core.shared_components() c WHERE c.id = v.component_id)
             ORDER BY deprecated_at IS NOT NULL, version DESC LIMIT 1"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// Says of a version that it should not be used any more, or takes that back.
    pub async fn version_deprecate(
        &mut self,
        component: Uuid,
        version: i32,
        why: Option<&str>,
    ) -> Result<(), StoreError> {
        let changed = sqlx::query(
            "UPDATE nimbus_core.component_versions
             SET deprecated_at = CASE WHEN $3::text IS NULL THEN NULL ELSE COALESCE(deprecated_at, now()) END,
                 deprecation = $3
             WHERE component_id = $1 AND version = $2",
        )
        .bind(component)
        .bind(version)
        .bind(why)
        .execute(self.connection())
        .await?;
        if changed.rows_affected() == 0 {
            return Err(StoreError::NotFound("version"));
        }
        Ok(())
    }

    /// Who uses a component of the acting tenant: its own instances, and everybody's when it is the operator.
    pub async fn component_users(&mut self, name: &str) -> Result<Vec<ComponentUser>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT tenant, tenant_name, deployment, environment, rehearsal, stack, version, manifest
             FROM nimbus_core.component_users($1)",
        )
        .bind(name)
        .fetch_all(self.connection())
        .await?)
    }
}

impl TenantTx {
    /// Says of a component that it belongs to the platform.
    pub async fn component_mark_system(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.components SET is_system = true WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
