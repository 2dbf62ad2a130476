//! Leases in memory, with everything that an answer needs: for files of a workspace and for tests.
//!
//! Free space is worked out from the leases every time, so there is nothing to get out of step. The
//! control plane keeps free space as rows instead, because it has many more leases.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use uuid::Uuid;

use crate::config::ResolverSettings;
use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::images;
use crate::ipam::{IpamRequest, PoolDefinition};
use crate::lease::{
    LeaseHolder, LeaseStatus, LeaseUnit, PLAN_LEASE_SECONDS, ResolverLease, Settlement,
};
use crate::naming::{NameRequest, block_number, number_block};
use crate::question::{ResolverAnswer, ResolverQuestion, UnitFacts};
use crate::secrets::{self, SecretRules};
use crate::space::FreeSpace;

/// All leases of one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeaseRegister {
    leases: Vec<ResolverLease>,
}

/// Who asks, and when.
#[derive(Clone, Debug)]
pub struct LeaseAsker<'a> {
    pub facts: &'a UnitFacts,
    pub holder: LeaseHolder,
    /// Seconds since 1970.
    pub now: i64,
}

/// Makes a secret and seals it.
pub type SecretMaker<'a> = dyn FnMut(SecretRules) -> Result<String, ResolverError> + 'a;

const OWNER: &str = "this workspace";

impl LeaseUnit {
    pub fn of(facts: &UnitFacts) -> Self {
        Self {
            deployment: facts.deployment.clone(),
            environment: facts.environment.clone(),
            component: facts.component.clone(),
        }
    }
}

impl LeaseRegister {
    /// Answers a question, with the lease that there is or with a new one.
    pub fn answer(
        &mut self,
        settings: &ResolverSettings,
        question: &ResolverQuestion,
        asker: &LeaseAsker<'_>,
        make_secret: &mut SecretMaker<'_>,
    ) -> Result<ResolverAnswer, ResolverError> {
        if question.resolver == ResolverKind::ImageCatalog {
            let own = settings.catalog.iter().cloned();
            let catalog: Vec<_> = own.chain(images::shipped()).collect();
            return images::find(question, &settings.images, asker.facts, &catalog, OWNER);
        }
        let unit = LeaseUnit::of(asker.facts);
        let key = question.key();
        let known = self
            .leases
            .iter_mut()
            .find(|one| one.is_live() && one.unit == unit && one.question == key);
        if let Some(known) = known {
            known.ask(asker.holder, asker.now);
            return Ok(ResolverAnswer {
                outputs: known.outputs.clone(),
                lease: Some(known.id),
                fresh: false,
                notes: Vec::new(),
            });
        }
        self.expire(asker.now);
        let mut lease = ResolverLease {
            id: Uuid::new_v4(),
            unit,
            resolver: question.resolver,
            question: key,
            status: LeaseStatus::Leased,
            holder: asker.holder,
            earlier_run: None,
            used_run: None,
            from_run: None,
            until_run: None,
            space: None,
            block: None,
            unique_name: None,
            outputs: Map::new(),
            sealed: None,
            taken_at: asker.now,
            expires_at: Some(asker.now + PLAN_LEASE_SECONDS),
        };
        match question.resolver {
            ResolverKind::Ipam => self.take_block(settings, question, asker, &mut lease)?,
            ResolverKind::Naming => self.take_name(settings, question, asker, &mut lease)?,
            ResolverKind::Secret => {
                let rules = SecretRules::of(question, &settings.secret);
                lease.sealed = Some(make_secret(rules)?);
                lease.outputs = secrets::outputs(&format!("nimbus-secret:{}", lease.id));
            }
            ResolverKind::ImageCatalog => {}
        }
        lease.ask(asker.holder, asker.now);
        let answer = ResolverAnswer {
            outputs: lease.outputs.clone(),
            lease: Some(lease.id),
            fresh: true,
            notes: Vec::new(),
        };
        self.leases.push(lease);
        Ok(answer)
    }

    fn take_block(
        &self,
        settings: &ResolverSettings,
        question: &ResolverQuestion,
        asker: &LeaseAsker<'_>,
        lease: &mut ResolverLease,
    ) -> Result<(), ResolverError> {
        let scope = &asker.facts.environment;
        let request = IpamRequest::read(question, &settings.ipam, scope)?;
        let pool = settings.pools.iter().find(|pool| pool.name == request.pool);
        let pool = pool.ok_or_else(|| ResolverError::PoolUnknown {
            pool: request.pool.clone(),
            scope: scope.clone(),
        })?;
        let prefix = request.prefix(pool)?;
        let block = self.free(settings, pool).take(prefix);
        let block = block.ok_or_else(|| pool.exhausted(prefix, OWNER))?;
        lease.outputs = pool.outputs(block, lease.id, &pool.name);
        lease.space = Some(pool.name.clone());
        lease.block = Some(block);
        Ok(())
    }

    fn take_name(
        &self,
        settings: &ResolverSettings,
        question: &ResolverQuestion,
        asker: &LeaseAsker<'_>,
        lease: &mut ResolverLease,
    ) -> Result<(), ResolverError> {
        let request = NameRequest::read(question, &settings.naming, asker.facts, OWNER)?;
        let space = request.sequence_key();
        let mut free = FreeSpace::new(request.numbers());
        let taken = self.in_space(&space).chain(request.withheld());
        for block in taken {
            free.take_exactly(block);
        }
        let unique = |name: &str| format!("{} {name}", request.resource_type);
        let (block, name) = loop {
            let block = match request.sequence {
                Some(number) => Some(number_block(number)).filter(|one| free.take_exactly(*one)),
                None => free.take(32),
            };
            let Some(block) = block else {
                let holder = self.in_space_of(&space).next();
                let holder = holder.map_or(String::new(), |one| one.unit.to_string());
                return Err(request.taken(request.sequence, &holder));
            };
            let name = request.name(block_number(block))?;
            // Another pattern may have made the same name.
            let other = self
                .live()
                .find(|one| one.unique_name == Some(unique(&name)));
            match other {
                None => break (block, name),
                Some(other) if request.sequence.is_some() => {
                    return Err(request.taken(request.sequence, &other.unit.to_string()));
                }
                Some(_) => {}
            }
        };
        lease.outputs = request.outputs(&name);
        lease.unique_name = Some(unique(&name));
        lease.space = Some(space);
        lease.block = Some(block);
        Ok(())
    }

    /// What is free of a pool.
    pub fn free(&self, settings: &ResolverSettings, pool: &PoolDefinition) -> FreeSpace {
        let mut free = pool.free();
        let children = settings.pools.iter();
        let children = children.filter(|one| one.parent.as_deref() == Some(pool.name.as_str()));
        for child in children {
            free.take_exactly(child.cidr);
        }
        for block in self.in_space(&pool.name) {
            free.take_exactly(block);
        }
        free
    }

    fn in_space_of<'a>(&'a self, space: &'a str) -> impl Iterator<Item = &'a ResolverLease> {
        self.live()
            .filter(move |one| one.space.as_deref() == Some(space))
    }

    fn in_space<'a>(
        &'a self,
        space: &'a str,
    ) -> impl Iterator<Item = crate::address::AddressBlock> + 'a {
        self.in_space_of(space).filter_map(|one| one.block)
    }

    /// Everything that is held.
    pub fn live(&self) -> impl Iterator<Item = &ResolverLease> {
        self.leases.iter().filter(|one| one.is_live())
    }

    /// What a unit holds.
    pub fn of_unit<'a>(&'a self, unit: &'a LeaseUnit) -> impl Iterator<Item = &'a ResolverLease> {
        self.live().filter(move |one| one.unit == *unit)
    }

    pub fn find(&self, id: Uuid) -> Option<&ResolverLease> {
        self.live().find(|one| one.id == id)
    }

    /// What became of a unit in a run.
    pub fn settle(&mut self, unit: &LeaseUnit, run: u64, settlement: Settlement) {
        for lease in self.leases.iter_mut().filter(|one| one.unit == *unit) {
            lease.settle(run, settlement);
        }
        self.forget();
    }

    /// Gives leases back that were taken for nothing. What a run has adopted since is no longer the plan's to give.
    pub fn give_back(&mut self, holder: LeaseHolder, ids: &[Uuid]) {
        for lease in self.leases.iter_mut().filter(|one| ids.contains(&one.id)) {
            if lease.status == LeaseStatus::Leased && lease.holder == holder {
                lease.release();
            }
        }
        self.forget();
    }

    /// Gives back what plans have held for too long.
    fn expire(&mut self, now: i64) {
        for lease in self.leases.iter_mut().filter(|one| one.is_expired(now)) {
            lease.release();
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.leases.retain(ResolverLease::is_live);
    }
}

#[cfg(test)]
mod tests;
