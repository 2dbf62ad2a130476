//! Pools of addresses, what is free of them and who has the rest.

use nimbus_core::{TenantId, UserId};
use nimbus_resolvers::{
    AddressBlock, PoolDefinition, PoolPurpose, ResolverError, ResolverKind, ipam,
};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::lease_space::base_bytes;
use crate::resolver::{ZoneRef, zone_ref};
use crate::{StoreError, TenantTx, Timestamp};

/// A pool and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressPool {
    pub owner: TenantId,
    pub owner_name: String,
    pub id: Uuid,
    /// Whose environments may take from it; all of them without one.
    pub landing_zone: Option<ZoneRef>,
    pub definition: PoolDefinition,
    pub created_at: Timestamp,
}

/// How much of a pool is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    pub size: u128,
    pub free: u128,
    /// The shortest prefix that is still to be had.
    pub largest_free: Option<u8>,
    pub leased: i64,
    pub committed: i64,
}

#[derive(FromRow)]
struct PoolRow {
    owner: Uuid,
    owner_name: String,
    id: Uuid,
    name: String,
    landing_zone_id: Option<Uuid>,
    landing_zone: Option<String>,
    parent: Option<String>,
    cidr: String,
    purpose: String,
    gateway: Option<String>,
    reserved: Value,
    created_at: Timestamp,
}

impl PoolRow {
    fn read(self) -> Result<AddressPool, StoreError> {
        let damaged = |what: &str| StoreError::Invalid {
            what: format!("the pool {}", self.name),
            why: format!("has a {what} that cannot be read"),
        };
        let definition = PoolDefinition {
            name: self.name.clone(),
            cidr: self.cidr.parse().map_err(|_| damaged("block"))?,
            parent: self.parent.clone(),
            purpose: match self.purpose.as_str() {
                "addresses" => PoolPurpose::Addresses,
                _ => PoolPurpose::Blocks,
            },
            gateway: match &self.gateway {
                Some(text) => Some(text.parse().map_err(|_| damaged("gateway"))?),
                None => None,
            },
            reserved: serde_json::from_value(self.reserved.clone())
                .map_err(|_| damaged("reservation"))?,
        };
        Ok(AddressPool {
            owner: self.owner.into(),
            owner_name: self.owner_name,
            id: self.id,
            landing_zone: zone_ref(self.landing_zone_id, self.landing_zone),
            definition,
            created_at: self.created_at,
        })
    }
}

/// The key of a pool's space.
pub(crate) fn pool_space(id: Uuid) -> String {
    format!("pool {id}")
}

impl TenantTx {
    /// Pools that the tenant may use, its own first; of this name only if one is given.
    pub async fn pool_list(&mut self, name: Option<&str>) -> Result<Vec<AddressPool>, StoreError> {
        let rows: Vec<PoolRow> = sqlx::query_as(
            "SELECT owner, owner_name, id, name, landing_zone_id, landing_zone, parent, cidr, purpose, gateway, reserved,
                 created_at
             FROM nimbus_core.resolver_pools($1) ORDER BY place, name",
        )
        .bind(name)
        .fetch_all(self.connection())
        .await?;
        rows.into_iter().map(PoolRow::read).collect()
    }

    /// The nearest pool of this name.
    pub async fn pool_find(&mut self, name: &str) -> Result<Option<AddressPool>, StoreError> {
        Ok(self.pool_list(Some(name)).await?.into_iter().next())
    }

    /// The nearest pool of this name that an environment of this zone, or of none, may take from.
    pub(crate) async fn pool_for(
        &mut self,
        name: &str,
        zone: Option<Uuid>,
    ) -> Result<Option<AddressPool>, StoreError> {
        let found = self.pool_list(Some(name)).await?.into_iter();
        let mut open = found.filter(|pool| {
            let own = pool.landing_zone.as_ref();
            own.is_none_or(|own| Some(own.id) == zone)
        });
        Ok(open.next())
    }

    /// A pool of the tenant's own.
    async fn pool_own(&mut self, name: &str) -> Result<AddressPool, StoreError> {
        let found = self.pool_find(name).await?;
        let found = found.filter(|pool| pool.owner == self.tenant());
        found.ok_or_else(|| unknown(name, "this tenant").into())
    }

    /// Makes a pool of the tenant's own. Refused when it overlaps another one, or is no free part of its parent.
    pub async fn pool_create(
        &mut self,
        new: &PoolDefinition,
        landing_zone: Option<&ZoneRef>,
        by: UserId,
    ) -> Result<AddressPool, StoreError> {
        new.check()?;
        self.pools_lock().await?;
        let all = self.pool_list(None).await?;
        let own: Vec<_> = all
            .into_iter()
            .filter(|pool| pool.owner == self.tenant())
            .collect();
        if own.iter().any(|pool| pool.definition.name == new.name) {
            return Err(StoreError::Exists(format!("the pool {}", new.name)));
        }
        // Zones may use the same addresses again: they are networks of their own. A pool of no zone is used in all.
        let meet = |pool: &&AddressPool| {
            let other = pool.landing_zone.as_ref();
            landing_zone.is_none() || other.is_none() || other == landing_zone
        };
        for pool in own.iter().filter(meet) {
            ipam::apart(new, &pool.definition, &pool.owner_name)?;
        }
        if let Some(name) = &new.parent {
            let parent = own.iter().find(|pool| pool.definition.name == *name);
            let parent = parent.ok_or_else(|| unknown(name, "this tenant"))?;
            ipam::inside(new, &parent.definition, &parent.owner_name)?;
            let zone = parent.landing_zone.as_ref();
            if zone.is_some() && zone != landing_zone {
                let key = format!("pools.{}.parent", new.name);
                let problem = format!("the pool {name} is of another landing zone");
                return Err(ResolverError::config(ResolverKind::Ipam, key, problem).into());
            }
            self.pool_withhold(parent, new.cidr).await?;
        }
        let id: Uuid = sqlx::query_scalar(
            "INSERT INTO nimbus_core.address_pools
                 (name, landing_zone_id, landing_zone, parent, cidr, purpose, gateway, reserved, created_by)
             VALUES ($1, $2, $9, $3, $4, $5, $6, $7, $8) RETURNING id",
        )
        .bind(&new.name)
        .bind(landing_zone.map(|zone| zone.id))
        .bind(&new.parent)
        .bind(new.cidr.to_string())
        .bind(new.purpose.as_str())
        .bind(new.gateway.map(|gateway| gateway.to_string()))
        .bind(serde_json::to_value(&new.reserved).unwrap_or_default())
        .bind(Uuid::from(by))
        .bind(landing_zone.map(|zone| &zone.name))
        .fetch_one(self.connection())
        .await?;
        for rehearsal in [false, true] {
            let withheld = new.withheld();
            self.space_ensure(&pool_space(id), rehearsal, new.cidr, &withheld)
                .await?;
        }
        self.pool_own(&new.name).await
    }

    /// Removes a pool of which nothing is taken.
    pub async fn pool_delete(&mut self, name: &str) -> Result<AddressPool, StoreError> {
        self.pools_lock().await?;
        let pool = self.pool_own(name).await?;
        let in_use = |users: String| ResolverError::PoolInUse {
            pool: name.to_owned(),
            users,
        };
        let all = self.pool_list(None).await?;
        let child = all
            .iter()
            .find(|one| one.owner == pool.owner && one.definition.parent.as_deref() == Some(name));
        if let Some(child) = child {
            return Err(in_use(format!("the pool {}", child.definition.name)).into());
        }
        for rehearsal in [false, true] {
            let space = self.space_lock(&pool_space(pool.id), rehearsal).await?;
            self.space_drain(&space).await?;
            let held: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM nimbus_core.resolver_leases WHERE space_id = $1 AND NOT returned",
            )
            .bind(space.id)
            .fetch_one(self.connection())
            .await?;
            if held > 0 {
                return Err(in_use(format!("{held} leases")).into());
            }
            self.space_remove(&space).await?;
        }
        sqlx::query("DELETE FROM nimbus_core.address_pools WHERE id = $1")
            .bind(pool.id)
            .execute(self.connection())
            .await?;
        if let Some(parent) = &pool.definition.parent {
            let parent = self.pool_own(parent).await?;
            self.pool_return(&parent, pool.definition.cidr).await?;
        }
        Ok(pool)
    }

    /// Keeps a block of a pool for nobody.
    pub async fn pool_reserve(
        &mut self,
        name: &str,
        block: AddressBlock,
    ) -> Result<AddressPool, StoreError> {
        self.pools_lock().await?;
        let pool = self.pool_own(name).await?;
        if !pool.definition.cidr.contains(block) {
            return Err(StoreError::from(ResolverError::OutsideParent {
                cidr: block.to_string(),
                parent: name.to_owned(),
                parent_cidr: pool.definition.cidr.to_string(),
                owner: pool.owner_name,
            }));
        }
        self.pool_withhold(&pool, block).await?;
        let mut reserved = pool.definition.reserved.clone();
        reserved.push(block);
        self.pool_set_reserved(pool.id, &reserved).await?;
        self.pool_own(name).await
    }

    /// Gives a reserved block free.
    pub async fn pool_unreserve(
        &mut self,
        name: &str,
        block: AddressBlock,
    ) -> Result<AddressPool, StoreError> {
        self.pools_lock().await?;
        let pool = self.pool_own(name).await?;
        let mut reserved = pool.definition.reserved.clone();
        let Some(at) = reserved.iter().position(|one| *one == block) else {
            return Err(StoreError::NotFound("reservation"));
        };
        reserved.remove(at);
        self.pool_set_reserved(pool.id, &reserved).await?;
        self.pool_return(&pool, block).await?;
        self.pool_own(name).await
    }

    /// How much of a pool that the tenant owns is used.
    pub async fn pool_usage(
        &mut self,
        pool: &AddressPool,
        rehearsal: bool,
    ) -> Result<PoolUsage, StoreError> {
        let space = self.space_lock(&pool_space(pool.id), rehearsal).await?;
        self.space_drain(&space).await?;
        let free = self.space_free(&space).await?;
        let (leased, committed): (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE status = 'leased'), count(*) FILTER (WHERE status = 'committed')
             FROM nimbus_core.resolver_leases WHERE space_id = $1",
        )
        .bind(space.id)
        .fetch_one(self.connection())
        .await?;
        Ok(PoolUsage {
            size: pool.definition.cidr.size(),
            free: free
                .iter()
                .fold(0, |sum, block| sum.saturating_add(block.size())),
            largest_free: free.iter().map(|block| block.prefix()).min(),
            leased,
            committed,
        })
    }

    /// Pools of a tenant are compared with each other, so one is made at a time.
    async fn pools_lock(&mut self) -> Result<(), StoreError> {
        let name = format!("address pools of {}", self.tenant());
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(name)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    async fn pool_set_reserved(
        &mut self,
        id: Uuid,
        reserved: &[AddressBlock],
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.address_pools SET reserved = $2 WHERE id = $1")
            .bind(id)
            .bind(serde_json::to_value(reserved).unwrap_or_default())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Takes a block out of a pool for good, or says who has it.
    async fn pool_withhold(
        &mut self,
        pool: &AddressPool,
        block: AddressBlock,
    ) -> Result<(), StoreError> {
        for rehearsal in [false, true] {
            let space = self.space_lock(&pool_space(pool.id), rehearsal).await?;
            self.space_drain(&space).await?;
            if self.space_take_exactly(&space, block).await? {
                continue;
            }
            let last = block.end();
            let holder: Option<String> = sqlx::query_scalar(
                "SELECT deployment || '-' || component || '-' || environment FROM nimbus_core.resolver_leases
                 WHERE space_id = $1 AND NOT returned AND base BETWEEN $2 AND $3 ORDER BY base LIMIT 1",
            )
            .bind(space.id)
            .bind(base_bytes(block))
            .bind(base_bytes(last))
            .fetch_optional(self.connection())
            .await?;
            let holder = holder.unwrap_or_else(|| "a reservation or another pool".to_owned());
            return Err(StoreError::from(ResolverError::BlockTaken {
                cidr: block.to_string(),
                pool: pool.definition.name.clone(),
                holder,
            }));
        }
        Ok(())
    }

    async fn pool_return(
        &mut self,
        pool: &AddressPool,
        block: AddressBlock,
    ) -> Result<(), StoreError> {
        for rehearsal in [false, true] {
            let space = self.space_lock(&pool_space(pool.id), rehearsal).await?;
            self.space_give_back(&space, block).await?;
        }
        Ok(())
    }
}

fn unknown(pool: &str, scope: &str) -> ResolverError {
    ResolverError::PoolUnknown {
        pool: pool.to_owned(),
        scope: scope.to_owned(),
    }
}
