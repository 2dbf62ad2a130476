//! Landing zones, templates for environments in them, and environments.

use nimbus_core::{TenantId, UserId};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, Store, StoreError, TenantTx, Timestamp};

/// Where environments live.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct LandingZone {
    pub tenant_id: Uuid,
    pub id: Uuid,
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    /// The name of a cloud account of the same tenant.
    pub account: Option<String>,
    pub region: String,
    /// Components with their parameters.
    pub system_services: Value,
    /// How resolvers are configured once services are there, by resolver.
    pub resolvers: Value,
    /// `draft`, `published` or `retired`.
    pub status: String,
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub published_at: Option<Timestamp>,
}

/// What a zone is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NewZone {
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub account: Option<String>,
    pub region: String,
    pub system_services: Value,
    pub resolvers: Value,
}

/// What environments of a zone are made from.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct EnvironmentTemplate {
    pub id: Uuid,
    pub zone_id: Uuid,
    pub name: String,
    pub description: String,
    /// Components with their parameters.
    pub mandatory_components: Value,
    pub updated_at: Timestamp,
}

/// An environment of a tenant in a zone.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct TenantEnvironment {
    pub id: Uuid,
    pub name: String,
    pub zone_owner: Uuid,
    pub zone_id: Uuid,
    pub zone_name: String,
    pub template: Option<String>,
    pub mandatory_components: Value,
    /// Whether it is the zone's own, for its system services.
    pub is_platform: bool,
    pub rehearsal: bool,
    /// How resolvers of its zone are configured before it is active.
    pub resolvers: Value,
    /// From 1; one more whenever it is begun anew.
    pub bootstrap: i32,
    /// `provisioning`, `configuring`, `active`, `failed`, `deleting` or `deleted`.
    pub status: String,
    pub deployment: Option<String>,
    pub run: Option<Uuid>,
    /// Who asked for it.
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An environment to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEnvironment {
    pub name: String,
    pub zone_owner: Uuid,
    pub zone_id: Uuid,
    pub zone_name: String,
    pub template: Option<String>,
    pub mandatory_components: Value,
    pub resolvers: Value,
    pub is_platform: bool,
    pub rehearsal: bool,
    pub by: UserId,
}

const ZONE: &str = "tenant_id, id, name, display_name, description, provider, account, region, system_services, resolvers, status, \
    revision, created_at, updated_at, published_at";
const TEMPLATE: &str = "id, zone_id, name, description, mandatory_components, updated_at";
const ENVIRONMENT: &str = "id, name, zone_owner, zone_id, zone_name, template, mandatory_components, is_platform, \
    rehearsal, resolvers, bootstrap, status, deployment, run, created_by, created_at, updated_at";

fn sql(text: String) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(text)
}

impl TenantTx {
    /// The tenant's own, and the operator's published ones that it has not, by name.
    pub async fn zone_list(
        &mut self,
        page: &ListPage<String>,
    ) -> Result<Vec<LandingZone>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT * FROM (
                 SELECT {ZONE} FROM nimbus_core.landing_zones WHERE deleted_at IS NULL
                 UNION ALL
                 SELECT {ZONE} FROM nimbus_core.shared_zones() s WHERE NOT EXISTS (
                     SELECT FROM nimbus_core.landing_zones o WHERE o.deleted_at IS NULL AND o.name = s.name)
             ) z WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT $2"
        )))
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The tenant's own, or else the operator's published one.
    pub async fn zone_find(&mut self, name: &str) -> Result<Option<LandingZone>, StoreError> {
        let own = sqlx::query_as(sql(format!(
            "SELECT {ZONE} FROM nimbus_core.landing_zones WHERE name = $1 AND deleted_at IS NULL"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?;
        if own.is_some() {
            return Ok(own);
        }
        Ok(sqlx::query_as(sql(format!(
            "SELECT {ZONE} FROM nimbus_core.shared_zones() WHERE name = $1"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The tenant's own, that nobody changes until the transaction ends.
    pub async fn zone_lock(&mut self, name: &str) -> Result<LandingZone, StoreError> {
        sqlx::query_as(sql(format!(
            "SELECT {ZONE} FROM nimbus_core.landing_zones WHERE name = $1 AND deleted_at IS NULL FOR UPDATE"
        )))
        .bind(name)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("landing zone"))
    }

    pub async fn zone_create(
        &mut self,
        new: &NewZone,
        by: UserId,
    ) -> Result<LandingZone, StoreError> {
        sqlx::query_as(sql(format!(
            "INSERT INTO nimbus_core.landing_zones (id, name, display_name, description, provider, account, region,
                 system_services, created_by, resolvers)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING {ZONE}"
        )))
        .bind(Uuid::new_v4())
        .bind(&new.name)
        .bind(&new.display_name)
        .bind(&new.description)
        .bind(&new.provider)
        .bind(&new.account)
        .bind(&new.region)
        .bind(&new.system_services)
        .bind(Uuid::from(by))
        .bind(&new.resolvers)
        .fetch_one(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("the landing zone {}", new.name))
        })
    }

    /// Replaces what a zone is made of. It has to be locked.
    pub async fn zone_write(&mut self, id: Uuid, new: &NewZone) -> Result<LandingZone, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "UPDATE nimbus_core.landing_zones SET display_name = $2, description = $3, provider = $4, account = $5,
                 region = $6, system_services = $7, resolvers = $8, revision = revision + 1, updated_at = now()
             WHERE id = $1 RETURNING {ZONE}"
        )))
        .bind(id)
        .bind(&new.display_name)
        .bind(&new.description)
        .bind(&new.provider)
        .bind(&new.account)
        .bind(&new.region)
        .bind(&new.system_services)
        .bind(&new.resolvers)
        .fetch_one(self.connection())
        .await?)
    }

    /// Moves a zone to another status.
    pub async fn zone_move(&mut self, id: Uuid, status: &str) -> Result<LandingZone, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "UPDATE nimbus_core.landing_zones SET status = $2, revision = revision + 1, updated_at = now(),
                 published_at = CASE WHEN $2 = 'published' THEN COALESCE(published_at, now()) ELSE published_at END
             WHERE id = $1 RETURNING {ZONE}"
        )))
        .bind(id)
        .bind(status)
        .fetch_one(self.connection())
        .await?)
    }

    pub async fn zone_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.landing_zones SET deleted_at = now() WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// How many environments a zone of the tenant has, whoever they belong to.
    pub async fn zone_use(&mut self, id: Uuid) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("SELECT nimbus_core.zone_use($1)")
            .bind(id)
            .fetch_one(self.connection())
            .await?)
    }

    /// Templates of a zone, by name.
    pub async fn environment_templates(
        &mut self,
        zone: &LandingZone,
    ) -> Result<Vec<EnvironmentTemplate>, StoreError> {
        let from = match zone.tenant_id == Uuid::from(self.tenant()) {
            true => "nimbus_core.environment_templates WHERE zone_id = $1",
            false => "nimbus_core.shared_environment_templates($1)",
        };
        Ok(
            sqlx::query_as(sql(format!("SELECT {TEMPLATE} FROM {from} ORDER BY name")))
                .bind(zone.id)
                .fetch_all(self.connection())
                .await?,
        )
    }

    pub async fn environment_template_put(
        &mut self,
        zone: Uuid,
        name: &str,
        description: &str,
        components: &Value,
        by: UserId,
    ) -> Result<EnvironmentTemplate, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "INSERT INTO nimbus_core.environment_templates (id, zone_id, name, description, mandatory_components, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, zone_id, name) DO UPDATE SET description = excluded.description,
                 mandatory_components = excluded.mandatory_components, updated_by = excluded.updated_by, updated_at = now()
             RETURNING {TEMPLATE}"
        )))
        .bind(Uuid::new_v4())
        .bind(zone)
        .bind(name)
        .bind(description)
        .bind(components)
        .bind(Uuid::from(by))
        .fetch_one(self.connection())
        .await?)
    }

    pub async fn environment_template_delete(
        &mut self,
        zone: Uuid,
        name: &str,
    ) -> Result<(), StoreError> {
        let deleted = sqlx::query(
            "DELETE FROM nimbus_core.environment_templates WHERE zone_id = $1 AND name = $2",
        )
        .bind(zone)
        .bind(name)
        .execute(self.connection())
        .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("environment template"));
        }
        Ok(())
    }

    /// Environments of the tenant, by zone and name; of one zone if it is given.
    pub async fn environment_list(
        &mut self,
        zone: Option<&str>,
        page: &ListPage<Uuid>,
    ) -> Result<Vec<TenantEnvironment>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {ENVIRONMENT} FROM nimbus_core.tenant_environments
             WHERE deleted_at IS NULL AND ($1::text IS NULL OR zone_name = $1) AND ($2::uuid IS NULL OR id > $2)
             ORDER BY id LIMIT $3"
        )))
        .bind(zone)
        .bind(page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// By zone and name, also for a change that is about to be made.
    pub async fn environment_lock(
        &mut self,
        zone: &str,
        name: &str,
    ) -> Result<Option<TenantEnvironment>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {ENVIRONMENT} FROM nimbus_core.tenant_environments
             WHERE deleted_at IS NULL AND zone_name = $1 AND name = $2 FOR UPDATE"
        )))
        .bind(zone)
        .bind(name)
        .fetch_optional(self.connection())
        .await?)
    }

    /// The zone that an environment of a deployment is in: that of the environment whose mandatory components the
    /// deployment is, or else the only one in which the tenant has an environment of this name. None outside of zones,
    /// and where there are several.
    pub async fn environment_zone(
        &mut self,
        deployment: &str,
        environment: &str,
    ) -> Result<Option<Uuid>, StoreError> {
        let found: Vec<(Uuid, bool)> = sqlx::query_as(
            "SELECT zone_id, deployment IS NOT DISTINCT FROM $1 FROM nimbus_core.tenant_environments
             WHERE name = $2 AND deleted_at IS NULL ORDER BY 2 DESC, 1",
        )
        .bind(deployment)
        .bind(environment)
        .fetch_all(self.connection())
        .await?;
        Ok(match found.as_slice() {
            [(zone, true), ..] | [(zone, false)] => Some(*zone),
            _ => None,
        })
    }

    /// Makes an environment that is still to be provisioned.
    pub async fn environment_create(
        &mut self,
        new: &NewEnvironment,
    ) -> Result<TenantEnvironment, StoreError> {
        sqlx::query_as(sql(format!(
            "INSERT INTO nimbus_core.tenant_environments (id, name, zone_owner, zone_id, zone_name, template,
                 mandatory_components, is_platform, rehearsal, status, created_by, resolvers)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'provisioning', $10, $11) RETURNING {ENVIRONMENT}"
        )))
        .bind(Uuid::new_v4())
        .bind(&new.name)
        .bind(new.zone_owner)
        .bind(new.zone_id)
        .bind(&new.zone_name)
        .bind(&new.template)
        .bind(&new.mandatory_components)
        .bind(new.is_platform)
        .bind(new.rehearsal)
        .bind(Uuid::from(new.by))
        .bind(&new.resolvers)
        .fetch_one(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("the environment {}", new.name))
        })
    }

    /// Says what an environment is waiting for, or that it waits for nothing.
    pub async fn environment_move(
        &mut self,
        id: Uuid,
        status: &str,
        deployment: Option<&str>,
        run: Option<Uuid>,
    ) -> Result<TenantEnvironment, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "UPDATE nimbus_core.tenant_environments SET status = $2, deployment = COALESCE($3, deployment), run = $4,
                 deleted_at = CASE WHEN $2 = 'deleted' THEN now() END, updated_at = now()
             WHERE id = $1 RETURNING {ENVIRONMENT}"
        )))
        .bind(id)
        .bind(status)
        .bind(deployment)
        .bind(run)
        .fetch_one(self.connection())
        .await?)
    }

    /// Says which resolvers an environment is still to configure. One that is active does so now.
    pub async fn environment_resolvers(
        &mut self,
        id: Uuid,
        resolvers: &Value,
    ) -> Result<TenantEnvironment, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "UPDATE nimbus_core.tenant_environments SET resolvers = $2, updated_at = now(),
                 status = CASE WHEN status = 'active' AND $2 <> '{{}}' THEN 'configuring' ELSE status END
             WHERE id = $1 RETURNING {ENVIRONMENT}"
        )))
        .bind(id)
        .bind(resolvers)
        .fetch_one(self.connection())
        .await?)
    }

    /// An environment by its id, that nobody changes until the transaction ends.
    pub async fn environment_by_id(
        &mut self,
        id: Uuid,
    ) -> Result<Option<TenantEnvironment>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {ENVIRONMENT} FROM nimbus_core.tenant_environments WHERE id = $1 FOR UPDATE"
        )))
        .bind(id)
        .fetch_optional(self.connection())
        .await?)
    }

    /// Environments that are on their way, or the one that waits for a run.
    pub async fn environments_begun(
        &mut self,
        run: Option<Uuid>,
    ) -> Result<Vec<TenantEnvironment>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {ENVIRONMENT} FROM nimbus_core.tenant_environments
             WHERE CASE WHEN $1::uuid IS NULL THEN status IN ('provisioning', 'configuring') ELSE run = $1 END
             ORDER BY id"
        )))
        .bind(run)
        .fetch_all(self.connection())
        .await?)
    }
}

impl Store {
    /// Tenants with environments that are on their way.
    pub async fn bootstrap_tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let found: Vec<Uuid> = sqlx::query_scalar("SELECT nimbus_core.bootstrap_tenants()")
            .fetch_all(&mut *connection)
            .await?;
        Ok(found.into_iter().map(TenantId::from).collect())
    }
}
