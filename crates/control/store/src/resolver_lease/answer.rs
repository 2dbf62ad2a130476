//! Answers: with the lease that there is, or with a new one.
//!
//! Taking one is one transaction for the owner of the space, with the space's lock: look whether the question was
//! answered before, take back what was released, take the lowest that is free, write it down. A secret is of no
//! space; there the question itself is locked.

use nimbus_resolvers::ipam::IpamRequest;
use nimbus_resolvers::lease::PLAN_LEASE_SECONDS;
use nimbus_resolvers::naming::{NameRequest, block_number, number_block};
use nimbus_resolvers::secrets::{self, SecretRules};
use nimbus_resolvers::{
    AddressBlock, LeaseHolder, LeaseUnit, ResolverAnswer, ResolverKind, ResolverQuestion, images,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{LeaseAsk, SecretSeal};
use crate::address_pool::pool_space;
use crate::lease_space::{LockedSpace, base_bytes, prefix_number};
use crate::{Store, StoreError, TenantTx};

/// So long it can be seen who had something that was given back.
const FORGOTTEN_AFTER_DAYS: i32 = 90;

/// Who has a lease, for the tenant `$1` that wants it: of others it is told nothing.
const HOLDER: &str = "CASE WHEN held_by = $1 THEN deployment || '-' || component || '-' || environment \
    ELSE 'another tenant' END";

/// What is written down of a new lease.
struct NewLease<'a> {
    id: Uuid,
    ask: &'a LeaseAsk,
    question: &'a ResolverQuestion,
    place: Option<(LockedSpace, AddressBlock)>,
    unique_name: Option<&'a str>,
    outputs: Map<String, Value>,
    sealed: Option<Vec<u8>>,
}

impl Store {
    /// Answers a question: with the lease that there is, or with a new one.
    pub async fn resolver_answer(
        &self,
        ask: &LeaseAsk,
        question: &ResolverQuestion,
        seal: &SecretSeal<'_>,
    ) -> Result<ResolverAnswer, StoreError> {
        let environment = &ask.facts.environment;
        // One transaction for the asker: what is in force, and where an answer of before may be.
        let (scoped, owners, pool) = self
            .tenant_tx(ask.tenant, async |tx| {
                let zone = tx
                    .environment_zone(&ask.facts.deployment, environment)
                    .await?;
                let scoped = tx
                    .resolver_settings(question.resolver, zone, environment)
                    .await?;
                let owners = tx.lease_owners(ask).await?;
                let pool = match question.resolver {
                    ResolverKind::Ipam => {
                        let scope = format!("{environment} of this tenant");
                        let request = IpamRequest::read(question, &scoped.settings.ipam, &scope);
                        // An answer of before needs no pool; its absence is told below.
                        match request {
                            Ok(request) => tx.pool_for(&request.pool, zone).await?,
                            Err(_) => None,
                        }
                    }
                    _ => None,
                };
                Ok::<_, StoreError>((scoped, owners, pool))
            })
            .await?;
        if question.resolver == ResolverKind::ImageCatalog {
            let (_, owner) = scoped.owner("cloud", ask.tenant);
            let settings = &scoped.settings;
            let answer = images::find(
                question,
                &settings.images,
                &ask.facts,
                &settings.catalog,
                &owner,
            )?;
            return Ok(answer);
        }
        for owner in owners {
            let known = self
                .tenant_tx(owner, async |tx| tx.lease_again(ask, question).await)
                .await?;
            if let Some(known) = known {
                return Ok(known);
            }
        }
        match question.resolver {
            ResolverKind::Ipam => {
                let scope = format!("{environment} of this tenant");
                let request = IpamRequest::read(question, &scoped.settings.ipam, &scope)?;
                let pool = pool.ok_or_else(|| nimbus_resolvers::ResolverError::PoolUnknown {
                    pool: request.pool.clone(),
                    scope,
                })?;
                let prefix = request.prefix(&pool.definition)?;
                self.tenant_tx(pool.owner, async |tx| {
                    let space = tx.space_lock(&pool_space(pool.id), ask.rehearsal).await?;
                    if let Some(known) = tx.lease_again(ask, question).await? {
                        return Ok(known);
                    }
                    tx.space_drain(&space).await?;
                    let block = tx.space_take(&space, prefix).await?;
                    let block =
                        block.ok_or_else(|| pool.definition.exhausted(prefix, &pool.owner_name))?;
                    let id = Uuid::new_v4();
                    tx.lease_insert(NewLease {
                        id,
                        ask,
                        question,
                        place: Some((space, block)),
                        unique_name: None,
                        outputs: pool.definition.outputs(block, id, &pool.id.to_string()),
                        sealed: None,
                    })
                    .await
                })
                .await
            }
            ResolverKind::Naming => {
                let (owner, name) = scoped.owner("pattern", ask.tenant);
                let naming = &scoped.settings.naming;
                let request = NameRequest::read(question, naming, &ask.facts, &name)?;
                self.tenant_tx(owner, async |tx| {
                    tx.lease_name(ask, question, &request).await
                })
                .await
            }
            ResolverKind::Secret => {
                let id = Uuid::new_v4();
                let rules = SecretRules::of(question, &scoped.settings.secret);
                let sealed = seal(id, rules)?;
                self.tenant_tx(ask.tenant, async |tx| {
                    // There is no space whose lock would keep two who ask at once apart.
                    tx.question_lock(ask, question).await?;
                    if let Some(known) = tx.lease_again(ask, question).await? {
                        return Ok(known);
                    }
                    tx.secrets_expire().await?;
                    tx.lease_insert(NewLease {
                        id,
                        ask,
                        question,
                        place: None,
                        unique_name: None,
                        outputs: secrets::outputs(&format!("nimbus-secret:{id}")),
                        sealed: Some(sealed),
                    })
                    .await
                })
                .await
            }
            ResolverKind::ImageCatalog => Err(StoreError::NotFound("image")),
        }
    }
}

impl TenantTx {
    /// The answer of before, if there is one.
    async fn lease_again(
        &mut self,
        ask: &LeaseAsk,
        question: &ResolverQuestion,
    ) -> Result<Option<ResolverAnswer>, StoreError> {
        let key = question.key();
        let component = &ask.facts.component;
        let known = self.leases_lock(ask, component, Some(&key), None).await?;
        let Some(mut known) = known.into_iter().next() else {
            return Ok(None);
        };
        let now = match ask.holder {
            // A plan holds by the clock that ends it, which is the database's.
            LeaseHolder::Plan => self.clock_seconds().await?,
            LeaseHolder::Run(_) => 0,
        };
        // A later worker of the same run marks what it asks for, even if nothing else about it changes.
        if known.lease.ask(ask.holder, now) || ask.epoch > 0 {
            self.lease_update(&known.lease, Some(ask.epoch)).await?;
        }
        Ok(Some(ResolverAnswer {
            outputs: known.lease.outputs,
            lease: Some(known.lease.id),
            fresh: false,
            notes: Vec::new(),
        }))
    }

    async fn clock_seconds(&mut self) -> Result<i64, StoreError> {
        let now = sqlx::query_scalar("SELECT extract(epoch FROM clock_timestamp())::bigint");
        Ok(now.fetch_one(self.connection()).await?)
    }

    /// Whoever asks the same for the same unit waits until the transaction ends.
    async fn question_lock(
        &mut self,
        ask: &LeaseAsk,
        question: &ResolverQuestion,
    ) -> Result<(), StoreError> {
        let unit = LeaseUnit::of(&ask.facts);
        let name = format!(
            "question {} {unit} {} {}",
            ask.tenant,
            ask.rehearsal,
            question.key()
        );
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(name)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Secrets that plans have held for too long are forgotten. They are of no space that would be drained.
    async fn secrets_expire(&mut self) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE nimbus_core.resolver_leases
             SET status = 'released', released_at = clock_timestamp(), expires_at = NULL, sealed = NULL, returned = true
             WHERE id IN (
                 SELECT l.id FROM nimbus_core.resolver_leases l
                 WHERE l.space_id IS NULL AND NOT l.returned AND l.status = 'leased'
                   AND l.expires_at <= clock_timestamp()
                 FOR UPDATE SKIP LOCKED)",
        )
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Every lease that is written takes some old ones with it, so that none have to be looked for.
    async fn leases_forget(&mut self) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM nimbus_core.resolver_leases WHERE id IN (
                 SELECT l.id FROM nimbus_core.resolver_leases l
                 WHERE l.returned AND l.released_at < clock_timestamp() - make_interval(days => $1)
                 ORDER BY l.released_at LIMIT 20 FOR UPDATE SKIP LOCKED)",
        )
        .bind(FORGOTTEN_AFTER_DAYS)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn lease_insert(&mut self, new: NewLease<'_>) -> Result<ResolverAnswer, StoreError> {
        self.leases_forget().await?;
        let ask = new.ask;
        let (space, block) = new.place.unzip();
        let run = match ask.holder {
            LeaseHolder::Plan => None,
            LeaseHolder::Run(run) => Some(run.cast_signed()),
        };
        sqlx::query(
            "INSERT INTO nimbus_core.resolver_leases (id, held_by, deployment, environment, component, rehearsal,
                 resolver, question, status, holder, used_run, epoch, space_id, base, prefix, unique_name, outputs,
                 sealed, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'leased', $9, $9, $10, $11, $12, $13, $14, $15, $16,
                 CASE WHEN $9 IS NULL THEN clock_timestamp() + make_interval(secs => $17) END)",
        )
        .bind(new.id)
        .bind(Uuid::from(ask.tenant))
        .bind(&ask.facts.deployment)
        .bind(&ask.facts.environment)
        .bind(&ask.facts.component)
        .bind(ask.rehearsal)
        .bind(new.question.resolver.as_str())
        .bind(new.question.key())
        .bind(run)
        .bind(ask.epoch)
        .bind(space.map(|space| space.id))
        .bind(block.map(base_bytes))
        .bind(block.map(prefix_number))
        .bind(new.unique_name)
        .bind(Value::Object(new.outputs.clone()))
        .bind(new.sealed)
        .bind(PLAN_LEASE_SECONDS as f64)
        .execute(self.connection())
        .await?;
        Ok(ResolverAnswer {
            outputs: new.outputs,
            lease: Some(new.id),
            fresh: true,
            notes: Vec::new(),
        })
    }

    async fn lease_name(
        &mut self,
        ask: &LeaseAsk,
        question: &ResolverQuestion,
        request: &NameRequest,
    ) -> Result<ResolverAnswer, StoreError> {
        let key = format!("sequence {}", request.sequence_key());
        let withheld: Vec<_> = request.withheld().into_iter().collect();
        self.space_ensure(&key, ask.rehearsal, request.numbers(), &withheld)
            .await?;
        let space = self.space_lock(&key, ask.rehearsal).await?;
        if let Some(known) = self.lease_again(ask, question).await? {
            return Ok(known);
        }
        self.space_drain(&space).await?;
        let mut passed = Vec::new();
        loop {
            let block = match request.sequence {
                Some(number) => {
                    let wanted = number_block(number);
                    let taken = self.space_take_exactly(&space, wanted).await?;
                    taken.then_some(wanted)
                }
                None => self.space_take(&space, 32).await?,
            };
            let Some(block) = block else {
                let holder = self.space_holder(ask, &space, request.sequence).await?;
                return Err(request.taken(request.sequence, &holder).into());
            };
            let name = request.name(block_number(block))?;
            let unique = format!("{} {name}", request.resource_type);
            let other: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
                "SELECT {HOLDER} FROM nimbus_core.resolver_leases
                 WHERE rehearsal = $2 AND unique_name = $3 AND status <> 'released'"
            )))
            .bind(Uuid::from(ask.tenant))
            .bind(ask.rehearsal)
            .bind(&unique)
            .fetch_optional(self.connection())
            .await?;
            match other {
                None => {
                    // Numbers that another pattern's names stand on are free for when those are gone.
                    for block in passed {
                        self.space_give_back(&space, block).await?;
                    }
                    return self
                        .lease_insert(NewLease {
                            id: Uuid::new_v4(),
                            ask,
                            question,
                            place: Some((space, block)),
                            unique_name: Some(&unique),
                            outputs: request.outputs(&name),
                            sealed: None,
                        })
                        .await;
                }
                Some(holder) if request.sequence.is_some() => {
                    return Err(request.taken(request.sequence, &holder).into());
                }
                Some(_) => passed.push(block),
            }
        }
    }

    /// Who has a number of a sequence, or any of it.
    async fn space_holder(
        &mut self,
        ask: &LeaseAsk,
        space: &LockedSpace,
        number: Option<u32>,
    ) -> Result<String, StoreError> {
        let holder: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT {HOLDER} FROM nimbus_core.resolver_leases
             WHERE space_id = $2 AND NOT returned AND ($3::bytea IS NULL OR base = $3) ORDER BY base LIMIT 1"
        )))
        .bind(Uuid::from(ask.tenant))
        .bind(space.id)
        .bind(number.map(|number| base_bytes(number_block(number))))
        .fetch_optional(self.connection())
        .await?;
        Ok(holder.unwrap_or_else(|| "nobody; counting begins with 1".to_owned()))
    }
}
