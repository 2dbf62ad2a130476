//! Free space as rows: what can be taken, what was taken, and what comes back.
//!
//! Whoever takes something locks the row of its space first, so takes from one space are one after the
//! other and those from different spaces are not. Which block is split, and what stays of it, is decided by
//! `nimbus_resolvers`; here it is written down. What was released comes back when somebody next looks at the
//! space: releasing needs no lock of it.

use nimbus_resolvers::space::rest;
use nimbus_resolvers::{AddressBlock, AddressFamily};
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// A space that is locked until its transaction ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockedSpace {
    pub(crate) id: Uuid,
    family: AddressFamily,
}

/// Rows of `lease_free` and of leases, as blocks.
type BlockRow = (Vec<u8>, i16);

impl LockedSpace {
    fn block(&self, (base, prefix): BlockRow) -> Result<AddressBlock, StoreError> {
        let number = <[u8; 16]>::try_from(base.as_slice()).map(u128::from_be_bytes);
        let block = number.ok().zip(u8::try_from(prefix).ok());
        let block = block.and_then(|(base, prefix)| AddressBlock::new(self.family, base, prefix));
        block.ok_or(StoreError::NotFound("block of addresses"))
    }
}

/// The address as the database keeps and orders it.
pub(crate) fn base_bytes(block: AddressBlock) -> Vec<u8> {
    block.base().to_be_bytes().to_vec()
}

pub(crate) fn prefix_number(block: AddressBlock) -> i16 {
    i16::from(block.prefix())
}

impl TenantTx {
    /// Makes a space if there is none, of which everything is free but what is withheld.
    pub(crate) async fn space_ensure(
        &mut self,
        key: &str,
        rehearsal: bool,
        root: AddressBlock,
        withheld: &[AddressBlock],
    ) -> Result<(), StoreError> {
        let made: Option<Uuid> = sqlx::query_scalar(
            "INSERT INTO nimbus_core.lease_spaces (key, rehearsal, bits) VALUES ($1, $2, $3)
             ON CONFLICT (tenant_id, key, rehearsal) DO NOTHING RETURNING id",
        )
        .bind(key)
        .bind(rehearsal)
        .bind(i16::from(root.family().bits()))
        .fetch_optional(self.connection())
        .await?;
        let Some(id) = made else {
            return Ok(());
        };
        let space = LockedSpace {
            id,
            family: root.family(),
        };
        let mut free = nimbus_resolvers::FreeSpace::new(root);
        for block in withheld {
            free.take_exactly(*block);
        }
        let blocks: Vec<_> = free.blocks().collect();
        self.free_insert(&space, &blocks).await
    }

    /// Locks a space for this transaction.
    pub(crate) async fn space_lock(
        &mut self,
        key: &str,
        rehearsal: bool,
    ) -> Result<LockedSpace, StoreError> {
        let found: Option<(Uuid, i16)> = sqlx::query_as(
            "SELECT id, bits FROM nimbus_core.lease_spaces WHERE key = $1 AND rehearsal = $2 FOR UPDATE",
        )
        .bind(key)
        .bind(rehearsal)
        .fetch_optional(self.connection())
        .await?;
        let (id, bits) = found.ok_or(StoreError::NotFound("space"))?;
        let family = match bits {
            32 => AddressFamily::V4,
            _ => AddressFamily::V6,
        };
        Ok(LockedSpace { id, family })
    }

    /// Takes back what was released, and what plans have held for too long. A lease that somebody is at comes back
    /// another time: whoever holds a space waits for nobody.
    pub(crate) async fn space_drain(&mut self, space: &LockedSpace) -> Result<(), StoreError> {
        let ended: Vec<BlockRow> = sqlx::query_as(
            "UPDATE nimbus_core.resolver_leases
             SET returned = true, status = 'released', expires_at = NULL,
                 released_at = COALESCE(released_at, clock_timestamp())
             WHERE id IN (
                 SELECT l.id FROM nimbus_core.resolver_leases l
                 WHERE l.space_id = $1 AND NOT l.returned AND l.base IS NOT NULL
                   AND (l.status = 'released' OR (l.status = 'leased' AND l.expires_at <= clock_timestamp()))
                 FOR UPDATE SKIP LOCKED)
             RETURNING base, prefix",
        )
        .bind(space.id)
        .fetch_all(self.connection())
        .await?;
        for row in ended {
            let block = space.block(row)?;
            self.space_give_back(space, block).await?;
        }
        Ok(())
    }

    /// Takes the lowest free block of this prefix.
    pub(crate) async fn space_take(
        &mut self,
        space: &LockedSpace,
        prefix: u8,
    ) -> Result<Option<AddressBlock>, StoreError> {
        let found: Option<BlockRow> = sqlx::query_as(
            "DELETE FROM nimbus_core.lease_free WHERE space_id = $1 AND base = (
                 SELECT base FROM nimbus_core.lease_free WHERE space_id = $1 AND prefix <= $2
                 ORDER BY base LIMIT 1)
             RETURNING base, prefix",
        )
        .bind(space.id)
        .bind(i16::from(prefix))
        .fetch_optional(self.connection())
        .await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let free = space.block(row)?;
        let taken = free
            .first(prefix)
            .ok_or(StoreError::NotFound("block of addresses"))?;
        self.free_insert(space, &rest(free, taken)).await?;
        Ok(Some(taken))
    }

    /// Takes this very block; false when a part of it is not free.
    pub(crate) async fn space_take_exactly(
        &mut self,
        space: &LockedSpace,
        wanted: AddressBlock,
    ) -> Result<bool, StoreError> {
        // The free block around it is the last that does not begin after it.
        let found: Option<BlockRow> = sqlx::query_as(
            "SELECT base, prefix FROM nimbus_core.lease_free WHERE space_id = $1 AND base <= $2
             ORDER BY base DESC LIMIT 1",
        )
        .bind(space.id)
        .bind(base_bytes(wanted))
        .fetch_optional(self.connection())
        .await?;
        let Some(row) = found else {
            return Ok(false);
        };
        let free = space.block(row)?;
        if !free.contains(wanted) {
            return Ok(false);
        }
        self.free_delete(space, &[free]).await?;
        self.free_insert(space, &rest(free, wanted)).await?;
        Ok(true)
    }

    /// Joins a block with the halves beside it that are free.
    pub(crate) async fn space_give_back(
        &mut self,
        space: &LockedSpace,
        block: AddressBlock,
    ) -> Result<(), StoreError> {
        let mut candidates = Vec::new();
        let mut whole = Some(block);
        while let Some(one) = whole {
            candidates.extend(one.buddy());
            whole = one.joined();
        }
        let bases: Vec<Vec<u8>> = candidates.iter().map(|one| base_bytes(*one)).collect();
        let rows: Vec<BlockRow> = sqlx::query_as(
            "SELECT base, prefix FROM nimbus_core.lease_free WHERE space_id = $1 AND base = ANY ($2)",
        )
        .bind(space.id)
        .bind(bases)
        .fetch_all(self.connection())
        .await?;
        let free = rows.into_iter().map(|row| space.block(row));
        let free = free.collect::<Result<Vec<_>, _>>()?;
        let mut joined = Vec::new();
        let mut whole = block;
        while let Some((buddy, wider)) = whole.buddy().zip(whole.joined()) {
            if !free.contains(&buddy) {
                break;
            }
            joined.push(buddy);
            whole = wider;
        }
        self.free_delete(space, &joined).await?;
        self.free_insert(space, &[whole]).await
    }

    async fn free_insert(
        &mut self,
        space: &LockedSpace,
        blocks: &[AddressBlock],
    ) -> Result<(), StoreError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let bases: Vec<Vec<u8>> = blocks.iter().map(|one| base_bytes(*one)).collect();
        let prefixes: Vec<i16> = blocks.iter().map(|one| prefix_number(*one)).collect();
        sqlx::query(
            "INSERT INTO nimbus_core.lease_free (space_id, base, prefix)
             SELECT $1, given.base, given.prefix FROM unnest($2::bytea[], $3::smallint[]) AS given (base, prefix)",
        )
        .bind(space.id)
        .bind(bases)
        .bind(prefixes)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn free_delete(
        &mut self,
        space: &LockedSpace,
        blocks: &[AddressBlock],
    ) -> Result<(), StoreError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let bases: Vec<Vec<u8>> = blocks.iter().map(|one| base_bytes(*one)).collect();
        sqlx::query("DELETE FROM nimbus_core.lease_free WHERE space_id = $1 AND base = ANY ($2)")
            .bind(space.id)
            .bind(bases)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// What is free of a space, lowest first.
    pub(crate) async fn space_free(
        &mut self,
        space: &LockedSpace,
    ) -> Result<Vec<AddressBlock>, StoreError> {
        let rows: Vec<BlockRow> = sqlx::query_as(
            "SELECT base, prefix FROM nimbus_core.lease_free WHERE space_id = $1 ORDER BY base",
        )
        .bind(space.id)
        .fetch_all(self.connection())
        .await?;
        rows.into_iter().map(|row| space.block(row)).collect()
    }

    /// Removes a space with what is free of it.
    pub(crate) async fn space_remove(&mut self, space: &LockedSpace) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM nimbus_core.lease_spaces WHERE id = $1")
            .bind(space.id)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
