//! Resolvers: what there is, how it is configured, and what was leased to whom.
//!
//! They are the platform's: whoever runs it configures them, for a tenant and everything below it. Answers are
//! given to runs alone, so nothing here takes a lease.

use nimbus_control_auth::operation;
use nimbus_control_store::{
    AddressPool, CatalogImage, HeldLease, LeaseFilter, ListPage, PoolUsage, ResolverConfiguration,
    ResolverPlace, RowCursor, StoredResolver, TenantTx, ZoneRef,
};
use nimbus_core::{EnvironmentName, ErrorCode, TenantId};
use nimbus_resolvers::{
    AddressBlock, ImageEntry, LeaseStatus, PoolDefinition, PoolPurpose, ResolverError,
    ResolverKind, ResolverLease,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::app::{App, EVERY_ENVIRONMENT};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// A configuration to be set.
#[derive(Debug)]
pub struct ResolverConfigInput {
    /// By name.
    pub landing_zone: Option<String>,
    pub environment: Option<String>,
    /// An empty one removes what is there.
    pub config: Map<String, Value>,
}

/// A pool to be made.
#[derive(Debug)]
pub struct PoolInput {
    pub name: String,
    pub cidr: String,
    pub parent: Option<String>,
    /// By name.
    pub landing_zone: Option<String>,
    /// `blocks` or `addresses`.
    pub purpose: Option<String>,
    pub gateway: Option<String>,
    pub reserved: Vec<String>,
}

/// An image to be kept.
#[derive(Debug)]
pub struct ImageInput {
    pub cloud: String,
    pub region: Option<String>,
    pub os_family: String,
    pub os_version: String,
    pub architecture: Option<String>,
    pub image_id: String,
    pub image_name: Option<String>,
    pub deprecated: bool,
    pub replaced_by: Option<String>,
}

impl From<ResolverError> for Failure {
    fn from(error: ResolverError) -> Self {
        nimbus_core::Error::from(error).into()
    }
}

impl App {
    pub async fn resolver_list(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<StoredResolver>> {
        let permit = self.permit(call, operation::LIST_RESOLVERS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.resolver_list().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// Everything that is in force for a tenant, each over those before it.
    pub async fn resolver_configurations(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<ResolverConfiguration>> {
        let operation = operation::LIST_RESOLVER_CONFIGURATIONS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut all = Vec::new();
                for kind in ResolverKind::ALL {
                    all.extend(tx.resolver_layers(kind).await?);
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(all)
            })
            .await
    }

    /// Sets the configuration of a resolver at one place.
    pub async fn resolver_configure(
        &self,
        call: &Call,
        tenant: TenantId,
        resolver: &str,
        input: ResolverConfigInput,
    ) -> Result<()> {
        let operation = operation::CONFIGURE_RESOLVER;
        let permit = self.permit(call, operation, tenant).await?;
        let resolver: ResolverKind = resolver.parse()?;
        let environment = match &input.environment {
            None => None,
            Some(text) => Some(text.parse::<EnvironmentName>().map_err(|_| {
                Failure::field("environment", "this is not the name of an environment")
            })?),
        };
        let environment = environment.map(|name| name.to_string());
        let place = environment.as_deref().unwrap_or(EVERY_ENVIRONMENT);
        self.ensure_in(call, &permit, place)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let place = ResolverPlace {
                    landing_zone: zone(tx, input.landing_zone.as_deref()).await?,
                    environment,
                };
                let known = tx.resolver_layers(resolver).await?;
                let known = known
                    .iter()
                    .find(|one| one.owner == tenant && one.place == place);
                let before = known.map(|one| Value::Object(one.config.clone()));
                tx.resolver_configure(resolver, &place, &input.config, call.who.user)
                    .await?;
                let before = before.map(|config| json!({"config": config}));
                let record = permit
                    .record()
                    .on(resolver)
                    .before(before.unwrap_or_default())
                    .after(json!({
                        "landing_zone": place.landing_zone.map(|zone| zone.name),
                        "environment": place.environment,
                        "config": input.config,
                    }));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// Pools that a tenant may use, its own first.
    pub async fn pool_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<AddressPool>> {
        let permit = self.permit(call, operation::LIST_POOLS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.pool_list(None).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// A pool and how much of it is used; of rehearsals, if asked for. What others have of a pool that belongs to a
    /// tenant above is not told.
    pub async fn pool_usage(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        rehearsal: bool,
    ) -> Result<(AddressPool, Option<PoolUsage>)> {
        let permit = self.permit(call, operation::GET_POOL, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.pool_find(name).await?;
                let record = permit.record().on(name);
                self.audit(tx, &call.context, record).await?;
                let pool = found.ok_or_else(Failure::not_found)?;
                let usage = match pool.owner == tenant {
                    true => Some(tx.pool_usage(&pool, rehearsal).await?),
                    false => None,
                };
                Ok((pool, usage))
            })
            .await
    }

    pub async fn pool_create(
        &self,
        call: &Call,
        tenant: TenantId,
        input: PoolInput,
    ) -> Result<AddressPool> {
        let permit = self.permit(call, operation::CREATE_POOL, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let landing_zone = input.landing_zone.clone();
        let definition = definition(input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = zone(tx, landing_zone.as_deref()).await?;
                let made = tx
                    .pool_create(&definition, zone.as_ref(), call.who.user)
                    .await?;
                let record = permit.record().on(&definition.name);
                let record =
                    record.after(json!({"pool": definition, "landing_zone": landing_zone}));
                self.audit(tx, &call.context, record).await?;
                Ok(made)
            })
            .await
    }

    pub async fn pool_delete(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_POOL, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let pool = tx.pool_delete(name).await?;
                let record = permit.record().on(name);
                let record = record.before(json!({"pool": pool.definition}));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// Keeps a block of a pool for nobody, or gives it free again.
    pub async fn pool_reserve(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        cidr: &str,
        keep: bool,
    ) -> Result<AddressPool> {
        let operation = if keep {
            operation::RESERVE_BLOCK
        } else {
            operation::UNRESERVE_BLOCK
        };
        let permit = self.permit(call, operation, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let block: AddressBlock = cidr.parse()?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let pool = match keep {
                    true => tx.pool_reserve(name, block).await?,
                    false => tx.pool_unreserve(name, block).await?,
                };
                let record = permit.record().on(name).after(json!({"cidr": block}));
                self.audit(tx, &call.context, record).await?;
                Ok(pool)
            })
            .await
    }

    /// Leases from a tenant's own pools, sequences and secrets, whoever has them.
    pub async fn lease_list(
        &self,
        call: &Call,
        tenant: TenantId,
        pool: Option<String>,
        mut filter: LeaseFilter,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<HeldLease>> {
        let permit = self.permit(call, operation::LIST_LEASES, tenant).await?;
        if let Some(status) = &filter.status
            && status.parse::<LeaseStatus>().is_err()
        {
            return Err(Failure::field(
                "status",
                "give leased, committed or released",
            ));
        }
        if let Some(resolver) = &filter.resolver {
            resolver.parse::<ResolverKind>()?;
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                if let Some(name) = &pool {
                    let found = tx.pool_find(name).await?;
                    filter.pool = Some(found.ok_or_else(Failure::not_found)?.id);
                }
                let names = async || tx.lease_environments().await;
                filter.environments = self.reached(call, &permit, names).await?;
                let found = tx.lease_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// Gives a lease back by hand: one that a unit no longer has, or, said so, one that may be in use.
    pub async fn lease_release(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        force: bool,
    ) -> Result<()> {
        let permit = self.permit(call, operation::RELEASE_LEASE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let held = tx.lease_lock(id).await?;
                self.ensure_in(call, &permit, &held.lease.unit.environment)?;
                if !force && in_use(&held.lease) {
                    let message = format!(
                        "{} of {} is {}",
                        held.lease.question,
                        held.lease.unit,
                        held.lease.status.as_str()
                    );
                    let error = nimbus_core::Error::new(ErrorCode::LEASE_IN_USE, message);
                    return Err(Failure::from(error.with_help(
                        "destroy the unit, which gives it back, or say --force if nothing has it",
                    )));
                }
                tx.lease_release(&held).await?;
                let record = permit.record().on(id).before(json!({
                    "question": held.lease.question,
                    "unit": held.lease.unit.to_string(),
                    "status": held.lease.status,
                    "forced": force,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    pub async fn image_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<CatalogImage>> {
        let permit = self.permit(call, operation::LIST_IMAGES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.image_list().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// Makes or replaces an entry of the tenant's own.
    pub async fn image_put(
        &self,
        call: &Call,
        tenant: TenantId,
        input: ImageInput,
    ) -> Result<CatalogImage> {
        let permit = self.permit(call, operation::PUT_IMAGE, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let image = image(input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let id = tx.image_put(&image, call.who.user).await?;
                let record = permit.record().on(&image.image_id).after(json!(image));
                self.audit(tx, &call.context, record).await?;
                Ok(CatalogImage {
                    id: Some(id),
                    owner_name: None,
                    image: image.clone(),
                })
            })
            .await
    }

    pub async fn image_delete(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_IMAGE, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.image_delete(id).await?;
                let record = permit.record().on(id);
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }
}

/// A zone of the tenant's own, or one of the operator's that is published.
async fn zone(tx: &mut TenantTx, name: Option<&str>) -> Result<Option<ZoneRef>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let found = tx.zone_find(name).await?;
    let found = found.ok_or_else(|| Failure::field("landing_zone", "there is no such zone"))?;
    Ok(Some(ZoneRef {
        id: found.id,
        name: found.name,
    }))
}

/// Whether what is deployed, or a run that is not over, may have it.
fn in_use(lease: &ResolverLease) -> bool {
    match lease.status {
        LeaseStatus::Released => false,
        LeaseStatus::Committed => lease.until_run.is_none(),
        LeaseStatus::Leased => lease.holder != nimbus_resolvers::LeaseHolder::Plan,
    }
}

fn definition(input: PoolInput) -> Result<PoolDefinition> {
    let blocks = input.reserved.iter().map(|text| text.parse());
    let reserved = blocks.collect::<std::result::Result<Vec<AddressBlock>, ResolverError>>()?;
    let gateway = match &input.gateway {
        None => None,
        Some(text) => Some(
            text.parse()
                .map_err(|_| Failure::field("gateway", "this is not an address"))?,
        ),
    };
    Ok(PoolDefinition {
        name: input.name,
        cidr: input.cidr.parse()?,
        parent: input.parent,
        purpose: match input.purpose.as_deref() {
            None | Some("blocks") => PoolPurpose::Blocks,
            Some("addresses") => PoolPurpose::Addresses,
            Some(_) => return Err(Failure::field("purpose", "give blocks or addresses")),
        },
        gateway,
        reserved,
    })
}

fn image(input: ImageInput) -> Result<ImageEntry> {
    let architecture = input.architecture.unwrap_or_else(|| "x86_64".to_owned());
    if !["x86_64", "arm64"].contains(&architecture.as_str()) {
        return Err(Failure::field("architecture", "give x86_64 or arm64"));
    }
    let os_family = input::name("os_family", &input.os_family, 100)?;
    let os_version = input::name("os_version", &input.os_version, 100)?;
    let image_name = input
        .image_name
        .unwrap_or_else(|| format!("{os_family} {os_version}"));
    Ok(ImageEntry {
        cloud: input::name("cloud", &input.cloud, 50)?,
        region: match input.region {
            Some(region) => Some(input::name("region", &region, 100)?),
            None => None,
        },
        image_name: input::name("image_name", &image_name, 400)?,
        image_id: input::name("image_id", &input.image_id, 400)?,
        os_family,
        os_version,
        architecture,
        deprecated: input.deprecated,
        replaced_by: match input.replaced_by {
            Some(next) => Some(input::name("replaced_by", &next, 100)?),
            None => None,
        },
    })
}
