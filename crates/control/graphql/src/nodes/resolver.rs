//! Resolvers: how they are configured, the pools and images that they have, and what was leased from them.

use async_graphql::{ID, Json, SimpleObject};
use nimbus_control_app::{
    AddressPool, CatalogImage, HeldLease, PoolUsage, ResolverConfiguration, StoredResolver, ZoneRef,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scalars::{AnyJson, GraphTime};

/// A resolver with its typed inputs and outputs.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Resolver")]
pub(crate) struct ResolverNode {
    id: ID,
    /// Such as `ipam`.
    resolver_type: String,
    display_name: String,
    description: String,
    input_schema: AnyJson,
    output_schema: AnyJson,
    /// Whether it belongs to the platform.
    system: bool,
}

impl From<StoredResolver> for ResolverNode {
    fn from(row: StoredResolver) -> Self {
        Self {
            id: row.id.to_string().into(),
            resolver_type: row.resolver_type,
            display_name: row.display_name,
            description: row.description,
            input_schema: Json(row.input_schema),
            output_schema: Json(row.output_schema),
            system: row.is_system,
        }
    }
}

/// The configuration of a resolver at one place. Each lies over those before it in the list.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ResolverConfiguration")]
pub(crate) struct ResolverConfigurationNode {
    resolver: String,
    /// The tenant that it was made for.
    owner: String,
    owner_id: ID,
    landing_zone_id: Option<ID>,
    /// The zone's name.
    landing_zone: Option<String>,
    environment: Option<String>,
    config: AnyJson,
}

impl From<ResolverConfiguration> for ResolverConfigurationNode {
    fn from(one: ResolverConfiguration) -> Self {
        let (landing_zone_id, landing_zone) = zone_parts(one.place.landing_zone);
        Self {
            resolver: one.resolver.to_string(),
            owner: one.owner_name,
            owner_id: one.owner.to_string().into(),
            landing_zone_id,
            landing_zone,
            environment: one.place.environment,
            config: Json(Value::Object(one.config)),
        }
    }
}

/// A pool of addresses.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "AddressPool")]
pub(crate) struct PoolNode {
    id: ID,
    name: String,
    /// The tenant whose pool it is.
    owner: String,
    owner_id: ID,
    cidr: String,
    /// The pool that it is a block of.
    parent: Option<String>,
    landing_zone_id: Option<ID>,
    /// The name of the zone whose environments alone may take from it.
    landing_zone: Option<String>,
    /// `blocks` or `addresses`.
    purpose: String,
    gateway: Option<String>,
    reserved: Vec<String>,
    created_at: GraphTime,
    /// Only where one pool of your own is asked for.
    usage: Option<UsageNode>,
}

impl From<AddressPool> for PoolNode {
    fn from(pool: AddressPool) -> Self {
        let definition = pool.definition;
        let (landing_zone_id, landing_zone) = zone_parts(pool.landing_zone);
        let reserved = definition.reserved.iter();
        Self {
            id: pool.id.to_string().into(),
            owner: pool.owner_name,
            owner_id: pool.owner.to_string().into(),
            cidr: definition.cidr.to_string(),
            landing_zone_id,
            landing_zone,
            purpose: definition.purpose.as_str().to_owned(),
            gateway: definition.gateway.map(|gateway| gateway.to_string()),
            reserved: reserved.map(ToString::to_string).collect(),
            created_at: pool.created_at.into(),
            usage: None,
            name: definition.name,
            parent: definition.parent,
        }
    }
}

impl PoolNode {
    pub(crate) fn with_usage(pool: AddressPool, usage: Option<PoolUsage>) -> Self {
        Self {
            usage: usage.map(UsageNode::from),
            ..Self::from(pool)
        }
    }
}

/// How much of a pool is used. Numbers of addresses are texts: those of IPv6 are too large for JSON.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "AddressPoolUsage")]
struct UsageNode {
    addresses: String,
    free: String,
    used_percent: f64,
    /// The shortest prefix that is still to be had.
    largest_free_prefix: Option<u8>,
    leased: i64,
    committed: i64,
}

impl From<PoolUsage> for UsageNode {
    fn from(usage: PoolUsage) -> Self {
        let used = (usage.size - usage.free.min(usage.size)) as f64 / usage.size as f64;
        Self {
            addresses: usage.size.to_string(),
            free: usage.free.to_string(),
            used_percent: (used * 10_000.0).round() / 100.0,
            largest_free_prefix: usage.largest_free,
            leased: usage.leased,
            committed: usage.committed,
        }
    }
}

/// Something that was taken for a unit. A secret is shown by its reference.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ResolverLease")]
pub(crate) struct LeaseNode {
    id: ID,
    /// The tenant that has it.
    held_by: ID,
    deployment_id: String,
    environment: String,
    component: String,
    rehearsal: bool,
    resolver: String,
    question: String,
    /// `leased`, `committed` or `released`.
    status: String,
    /// The plan or run that holds it.
    holder: String,
    /// The run that committed it.
    from_run: Option<u64>,
    /// The run after which the unit no longer had it.
    until_run: Option<u64>,
    outputs: AnyJson,
    taken_at: GraphTime,
}

impl From<HeldLease> for LeaseNode {
    fn from(held: HeldLease) -> Self {
        let lease = held.lease;
        Self {
            id: lease.id.to_string().into(),
            held_by: held.held_by.to_string().into(),
            deployment_id: lease.unit.deployment,
            environment: lease.unit.environment,
            component: lease.unit.component,
            rehearsal: held.rehearsal,
            resolver: lease.resolver.to_string(),
            question: lease.question,
            status: lease.status.as_str().to_owned(),
            holder: lease.holder.to_string(),
            from_run: lease.from_run,
            until_run: lease.until_run,
            outputs: Json(Value::Object(lease.outputs)),
            taken_at: held.taken_at.into(),
        }
    }
}

/// An image of the catalog.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "CatalogImage")]
pub(crate) struct ImageNode {
    /// Absent for one that is shipped.
    id: Option<ID>,
    /// The tenant whose entry it is; absent for one that is shipped.
    owner: Option<String>,
    cloud: String,
    region: Option<String>,
    os_family: String,
    os_version: String,
    architecture: String,
    image_id: String,
    image_name: String,
    deprecated: bool,
    /// The version to take instead.
    replaced_by: Option<String>,
}

impl From<CatalogImage> for ImageNode {
    fn from(entry: CatalogImage) -> Self {
        let image = entry.image;
        Self {
            id: entry.id.map(|id| id.to_string().into()),
            owner: entry.owner_name,
            cloud: image.cloud,
            region: image.region,
            os_family: image.os_family,
            os_version: image.os_version,
            architecture: image.architecture,
            image_id: image.image_id,
            image_name: image.image_name,
            deprecated: image.deprecated,
            replaced_by: image.replaced_by,
        }
    }
}

/// A zone's id and name.
fn zone_parts(zone: Option<ZoneRef>) -> (Option<ID>, Option<String>) {
    zone.map(|zone| (ID::from(zone.id.to_string()), zone.name))
        .unzip()
}
