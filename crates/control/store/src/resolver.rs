//! Which resolvers there are and how they are configured, down the tree of tenants.

use std::collections::BTreeMap;

use nimbus_core::{TenantId, UserId};
use nimbus_resolvers::{ImageEntry, ResolverKind, ResolverLayer, ResolverSettings};
use serde_json::{Map, Value};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// A row of the registry.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredResolver {
    pub id: Uuid,
    pub resolver_type: String,
    pub display_name: String,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Value,
    pub handler_class: String,
    pub is_system: bool,
}

/// A landing zone, by its id and by the name that it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRef {
    pub id: Uuid,
    pub name: String,
}

/// For what a configuration is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverPlace {
    pub landing_zone: Option<ZoneRef>,
    pub environment: Option<String>,
}

/// The configuration of a resolver at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverConfiguration {
    /// The tenant that it was made for; those below it have it too.
    pub owner: TenantId,
    pub owner_name: String,
    pub resolver: ResolverKind,
    pub place: ResolverPlace,
    pub config: Map<String, Value>,
}

/// An entry of the catalog and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogImage {
    /// None for one that the program ships.
    pub id: Option<Uuid>,
    pub owner_name: Option<String>,
    pub image: ImageEntry,
}

/// What is in force for an environment, and whose word it is.
#[derive(Clone, Debug)]
pub struct ScopedSettings {
    pub settings: ResolverSettings,
    /// By key of the configuration, who set it.
    pub owners: BTreeMap<String, (TenantId, String)>,
}

impl ScopedSettings {
    /// Who set a key; the tenant itself where nobody did.
    pub(crate) fn owner(&self, key: &str, own: TenantId) -> (TenantId, String) {
        let found = self.owners.get(key).cloned();
        found.unwrap_or_else(|| (own, "this tenant".to_owned()))
    }
}

#[derive(FromRow)]
struct LayerRow {
    owner: Uuid,
    owner_name: String,
    landing_zone_id: Option<Uuid>,
    landing_zone: Option<String>,
    environment: Option<String>,
    config: Value,
}

/// A zone from the columns that keep it.
pub(crate) fn zone_ref(id: Option<Uuid>, name: Option<String>) -> Option<ZoneRef> {
    let (id, name) = id.zip(name)?;
    Some(ZoneRef { id, name })
}

impl LayerRow {
    fn read(self, resolver: ResolverKind) -> ResolverConfiguration {
        let config = match self.config {
            Value::Object(config) => config,
            _ => Map::new(),
        };
        ResolverConfiguration {
            owner: self.owner.into(),
            owner_name: self.owner_name,
            resolver,
            place: ResolverPlace {
                landing_zone: zone_ref(self.landing_zone_id, self.landing_zone),
                environment: self.environment,
            },
            config,
        }
    }
}

#[derive(FromRow)]
struct ImageRow {
    id: Uuid,
    owner_name: String,
    cloud: String,
    region: Option<String>,
    os_family: String,
    os_version: String,
    architecture: String,
    image_id: String,
    image_name: String,
    deprecated: bool,
    replaced_by: Option<String>,
}

impl TenantTx {
    /// The registry, in the order of the types.
    pub async fn resolver_list(&mut self) -> Result<Vec<StoredResolver>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT id, resolver_type, display_name, description, input_schema, output_schema, handler_class, is_system
             FROM nimbus_core.resolvers ORDER BY resolver_type",
        )
        .fetch_all(self.connection())
        .await?)
    }

    /// Every configuration that reaches the tenant: from the root down, the general one before that of a zone,
    /// and that before the one of an environment. Each lies over those before it.
    pub async fn resolver_layers(
        &mut self,
        resolver: ResolverKind,
    ) -> Result<Vec<ResolverConfiguration>, StoreError> {
        let rows: Vec<LayerRow> = sqlx::query_as(
            "SELECT owner, owner_name, landing_zone_id, landing_zone, environment, config
             FROM nimbus_core.resolver_layers($1)
             ORDER BY place DESC, environment NULLS FIRST, landing_zone NULLS FIRST",
        )
        .bind(resolver.as_str())
        .fetch_all(self.connection())
        .await?;
        Ok(rows.into_iter().map(|row| row.read(resolver)).collect())
    }

    /// What is in force for one resolver in a zone and an environment.
    pub async fn resolver_settings(
        &mut self,
        resolver: ResolverKind,
        landing_zone: Option<Uuid>,
        environment: &str,
    ) -> Result<ScopedSettings, StoreError> {
        let mut scoped = ScopedSettings {
            settings: ResolverSettings::default(),
            owners: BTreeMap::new(),
        };
        for layer in self.resolver_layers(resolver).await? {
            let zone = layer.place.landing_zone.as_ref();
            let of_zone = zone.is_none_or(|zone| Some(zone.id) == landing_zone);
            let own = layer.place.environment.as_deref();
            if !of_zone || own.is_some_and(|own| own != environment) {
                continue;
            }
            for key in layer.config.keys() {
                let owner = (layer.owner, layer.owner_name.clone());
                scoped.owners.insert(key.clone(), owner);
            }
            scoped.settings.lay(&ResolverLayer {
                resolver,
                config: layer.config,
            })?;
        }
        if resolver == ResolverKind::ImageCatalog {
            let images = self.image_list().await?.into_iter();
            scoped.settings.catalog = images.map(|entry| entry.image).collect();
        }
        Ok(scoped)
    }

    /// Sets the configuration of a resolver at one place; an empty one is removed.
    pub async fn resolver_configure(
        &mut self,
        resolver: ResolverKind,
        place: &ResolverPlace,
        config: &Map<String, Value>,
        by: UserId,
    ) -> Result<(), StoreError> {
        let layer = ResolverLayer {
            resolver,
            config: config.clone(),
        };
        layer.check()?;
        let zone = place.landing_zone.as_ref();
        if config.is_empty() {
            sqlx::query(
                "DELETE FROM nimbus_core.resolver_configurations c USING nimbus_core.resolvers r
                 WHERE r.id = c.resolver_id AND r.resolver_type = $1
                   AND c.landing_zone_id IS NOT DISTINCT FROM $2 AND c.environment IS NOT DISTINCT FROM $3",
            )
            .bind(resolver.as_str())
            .bind(zone.map(|zone| zone.id))
            .bind(&place.environment)
            .execute(self.connection())
            .await?;
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO nimbus_core.resolver_configurations
                 (resolver_id, landing_zone_id, landing_zone, environment, config, updated_by)
             SELECT id, $2, $6, $3, $4, $5 FROM nimbus_core.resolvers WHERE resolver_type = $1
             ON CONFLICT (tenant_id, resolver_id, landing_zone_id, environment)
             DO UPDATE SET config = excluded.config, updated_by = excluded.updated_by, updated_at = now()",
        )
        .bind(resolver.as_str())
        .bind(zone.map(|zone| zone.id))
        .bind(&place.environment)
        .bind(Value::Object(config.clone()))
        .bind(Uuid::from(by))
        .bind(zone.map(|zone| &zone.name))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The catalog that the tenant may use, the nearest first and what is shipped last.
    pub async fn image_list(&mut self) -> Result<Vec<CatalogImage>, StoreError> {
        let rows: Vec<ImageRow> = sqlx::query_as(
            "SELECT id, owner_name, cloud, region, os_family, os_version, architecture, image_id, image_name,
                    deprecated, replaced_by
             FROM nimbus_core.resolver_images() ORDER BY place, cloud, os_family, os_version, id",
        )
        .fetch_all(self.connection())
        .await?;
        let own = rows.into_iter().map(|row| CatalogImage {
            id: Some(row.id),
            owner_name: Some(row.owner_name),
            image: ImageEntry {
                cloud: row.cloud,
                region: row.region,
                os_family: row.os_family,
                os_version: row.os_version,
                architecture: row.architecture,
                image_id: row.image_id,
                image_name: row.image_name,
                deprecated: row.deprecated,
                replaced_by: row.replaced_by,
            },
        });
        let shipped = nimbus_resolvers::images::shipped().into_iter();
        let shipped = shipped.map(|image| CatalogImage {
            id: None,
            owner_name: None,
            image,
        });
        Ok(own.chain(shipped).collect())
    }

    /// Makes or replaces the tenant's own entry for a system.
    pub async fn image_put(&mut self, image: &ImageEntry, by: UserId) -> Result<Uuid, StoreError> {
        Ok(sqlx::query_scalar(
            "INSERT INTO nimbus_core.image_catalog (cloud, region, os_family, os_version, architecture, image_id,
                 image_name, deprecated, replaced_by, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (tenant_id, cloud, region, os_family, os_version, architecture)
             DO UPDATE SET image_id = excluded.image_id, image_name = excluded.image_name,
                 deprecated = excluded.deprecated, replaced_by = excluded.replaced_by,
                 updated_by = excluded.updated_by, updated_at = now()
             RETURNING id",
        )
        .bind(&image.cloud)
        .bind(&image.region)
        .bind(&image.os_family)
        .bind(&image.os_version)
        .bind(&image.architecture)
        .bind(&image.image_id)
        .bind(&image.image_name)
        .bind(image.deprecated)
        .bind(&image.replaced_by)
        .bind(Uuid::from(by))
        .fetch_one(self.connection())
        .await?)
    }

    /// Removes an entry of the tenant's own.
    pub async fn image_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM nimbus_core.image_catalog WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        match deleted.rows_affected() {
            0 => Err(StoreError::NotFound("image")),
            _ => Ok(()),
        }
    }
}
