//! Leases: answered, settled and listed.
//!
//! A lease is a row of whose space it was taken from, the operator's say, and names the tenant that has it. How a
//! question is answered with one is in `answer`; what becomes of it is decided by `nimbus_resolvers::lease`.

mod answer;

use nimbus_core::TenantId;
use nimbus_resolvers::secrets::SecretRules;
use nimbus_resolvers::{LeaseHolder, LeaseStatus, LeaseUnit, ResolverLease, Settlement, UnitFacts};
use serde_json::{Map, Value};
use sqlx::FromRow;
use uuid::Uuid;

use crate::address_pool::pool_space;
use crate::{ListPage, RowCursor, Store, StoreError, TenantTx, Timestamp};

/// Who asks, and for what.
#[derive(Clone, Debug)]
pub struct LeaseAsk {
    pub tenant: TenantId,
    pub facts: UnitFacts,
    pub rehearsal: bool,
    pub holder: LeaseHolder,
    /// Of the worker that has the run; 0 for a plan.
    pub epoch: i64,
}

/// Makes a secret by its rules and seals it for the lease of this id.
pub type SecretSeal<'a> =
    dyn Fn(Uuid, SecretRules) -> Result<Vec<u8>, StoreError> + Send + Sync + 'a;

/// A lease as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldLease {
    /// Whose space it was taken from, and who has it.
    pub owner: TenantId,
    pub held_by: TenantId,
    pub rehearsal: bool,
    pub lease: ResolverLease,
    pub taken_at: Timestamp,
}

/// Which leases a list has.
#[derive(Clone, Debug, Default)]
pub struct LeaseFilter {
    pub resolver: Option<String>,
    pub deployment: Option<String>,
    pub status: Option<String>,
    /// Only those of this pool.
    pub pool: Option<Uuid>,
    /// Only those of units in these environments; all of them when absent.
    pub environments: Option<Vec<String>>,
}

/// What became of a unit.
pub type UnitSettlement = (String, Settlement);

#[derive(FromRow)]
struct LeaseRow {
    tenant_id: Uuid,
    id: Uuid,
    held_by: Uuid,
    deployment: String,
    environment: String,
    component: String,
    rehearsal: bool,
    resolver: String,
    question: String,
    status: String,
    holder: Option<i64>,
    earlier_run: Option<i64>,
    used_run: Option<i64>,
    from_run: Option<i64>,
    until_run: Option<i64>,
    unique_name: Option<String>,
    outputs: Value,
    taken_at: Timestamp,
    expires_at: Option<Timestamp>,
}

const COLUMNS: &str = "tenant_id, id, held_by, deployment, environment, component, rehearsal, resolver, question, \
    status, holder, earlier_run, used_run, from_run, until_run, unique_name, outputs, taken_at, expires_at";

fn run_number(number: Option<i64>) -> Option<u64> {
    number.map(i64::unsigned_abs)
}

fn run_column(number: Option<u64>) -> Option<i64> {
    number.map(u64::cast_signed)
}

impl LeaseRow {
    fn read(self) -> Result<HeldLease, StoreError> {
        let outputs = match self.outputs {
            Value::Object(outputs) => outputs,
            _ => Map::new(),
        };
        let lease = ResolverLease {
            id: self.id,
            unit: LeaseUnit {
                deployment: self.deployment,
                environment: self.environment,
                component: self.component,
            },
            resolver: self.resolver.parse()?,
            question: self.question,
            status: self
                .status
                .parse()
                .map_err(|()| StoreError::NotFound("lease"))?,
            holder: match run_number(self.holder) {
                Some(run) => LeaseHolder::Run(run),
                None => LeaseHolder::Plan,
            },
            earlier_run: run_number(self.earlier_run),
            used_run: run_number(self.used_run),
            from_run: run_number(self.from_run),
            until_run: run_number(self.until_run),
            space: None,
            block: None,
            unique_name: self.unique_name,
            outputs,
            sealed: None,
            taken_at: self.taken_at.0.as_second(),
            expires_at: self.expires_at.map(|at| at.0.as_second()),
        };
        Ok(HeldLease {
            owner: self.tenant_id.into(),
            held_by: self.held_by.into(),
            rehearsal: self.rehearsal,
            lease,
            taken_at: self.taken_at,
        })
    }
}

impl Store {
    /// What became of units in a run. A worker whose run was taken by another settles nothing that the other one
    /// asked for.
    pub async fn leases_settle(
        &self,
        ask: &LeaseAsk,
        run: u64,
        units: &[UnitSettlement],
    ) -> Result<(), StoreError> {
        let owners = self
            .tenant_tx(ask.tenant, async |tx| tx.lease_owners(ask).await)
            .await?;
        for owner in owners {
            self.tenant_tx(owner, async |tx| {
                for (component, settlement) in units {
                    tx.lease_settle(ask, component, run, *settlement).await?;
                }
                Ok::<_, StoreError>(())
            })
            .await?;
        }
        Ok(())
    }

    /// Gives back what this plan or run took for nothing. What somebody else holds by now stays.
    pub async fn leases_give_back(&self, ask: &LeaseAsk, ids: &[Uuid]) -> Result<(), StoreError> {
        let owners = self
            .tenant_tx(ask.tenant, async |tx| tx.lease_owners(ask).await)
            .await?;
        for owner in owners {
            self.tenant_tx(owner, async |tx| tx.lease_give_back(ask, ids).await)
                .await?;
        }
        Ok(())
    }

    /// What the tenant's environment holds.
    pub async fn leases_of(&self, ask: &LeaseAsk) -> Result<Vec<HeldLease>, StoreError> {
        let owners = self
            .tenant_tx(ask.tenant, async |tx| tx.lease_owners(ask).await)
            .await?;
        let mut all = Vec::new();
        for owner in owners {
            let held = self.tenant_tx(owner, async |tx| tx.leases_live(ask).await);
            all.extend(held.await?);
        }
        all.sort_by_key(|one| (one.lease.unit.clone(), one.lease.question.clone()));
        Ok(all)
    }
}

impl TenantTx {
    /// Tenants from whose spaces something of an environment was taken.
    async fn lease_owners(&mut self, ask: &LeaseAsk) -> Result<Vec<TenantId>, StoreError> {
        let owners: Vec<Uuid> =
            sqlx::query_scalar("SELECT nimbus_core.resolver_lease_owners($1, $2, $3)")
                .bind(&ask.facts.deployment)
                .bind(&ask.facts.environment)
                .bind(ask.rehearsal)
                .fetch_all(self.connection())
                .await?;
        Ok(owners.into_iter().map(TenantId::from).collect())
    }

    /// The live leases of a unit, or of one question of it, until the transaction ends nobody else's to change. For
    /// whoever settles a run, without those that a later worker of the same run has asked for.
    async fn leases_lock(
        &mut self,
        ask: &LeaseAsk,
        component: &str,
        question: Option<&str>,
        settling: Option<u64>,
    ) -> Result<Vec<HeldLease>, StoreError> {
        let rows: Vec<LeaseRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.resolver_leases
             WHERE held_by = $1 AND deployment = $2 AND environment = $3 AND rehearsal = $4 AND component = $5
               AND ($6::text IS NULL OR question = $6) AND status <> 'released'
               AND ($7::bigint IS NULL OR used_run IS DISTINCT FROM $7 OR epoch <= $8)
             ORDER BY id FOR UPDATE"
        )))
        .bind(Uuid::from(ask.tenant))
        .bind(&ask.facts.deployment)
        .bind(&ask.facts.environment)
        .bind(ask.rehearsal)
        .bind(component)
        .bind(question)
        .bind(run_column(settling))
        .bind(ask.epoch)
        .fetch_all(self.connection())
        .await?;
        rows.into_iter().map(LeaseRow::read).collect()
    }

    async fn lease_settle(
        &mut self,
        ask: &LeaseAsk,
        component: &str,
        run: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        for mut held in self.leases_lock(ask, component, None, Some(run)).await? {
            if held.lease.settle(run, settlement) {
                self.lease_update(&held.lease, None).await?;
            }
        }
        Ok(())
    }

    async fn lease_update(
        &mut self,
        lease: &ResolverLease,
        epoch: Option<i64>,
    ) -> Result<(), StoreError> {
        let holder = match lease.holder {
            LeaseHolder::Plan => None,
            LeaseHolder::Run(run) => Some(run),
        };
        let expires = lease
            .expires_at
            .and_then(|at| jiff::Timestamp::from_second(at).ok());
        sqlx::query(
            "UPDATE nimbus_core.resolver_leases
             SET status = $2, holder = $3, earlier_run = $4, used_run = $5, from_run = $6, until_run = $7,
                 expires_at = $8,
                 epoch = CASE WHEN $9::bigint IS NULL THEN epoch WHEN used_run = $5 THEN GREATEST(epoch, $9) ELSE $9 END,
                 released_at = CASE WHEN $2 = 'released' THEN clock_timestamp() END,
                 returned = $2 = 'released' AND base IS NULL,
                 sealed = CASE WHEN $2 <> 'released' THEN sealed END
             WHERE id = $1",
        )
        .bind(lease.id)
        .bind(lease.status.as_str())
        .bind(run_column(holder))
        .bind(run_column(lease.earlier_run))
        .bind(run_column(lease.used_run))
        .bind(run_column(lease.from_run))
        .bind(run_column(lease.until_run))
        .bind(expires.map(Timestamp))
        .bind(epoch)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn lease_give_back(&mut self, ask: &LeaseAsk, ids: &[Uuid]) -> Result<(), StoreError> {
        let run = match ask.holder {
            LeaseHolder::Plan => None,
            LeaseHolder::Run(run) => Some(run),
        };
        // A run that adopted what a plan took, or a later worker of the same run, has it now.
        sqlx::query(
            "UPDATE nimbus_core.resolver_leases
             SET status = 'released', released_at = clock_timestamp(), expires_at = NULL, sealed = NULL,
                 returned = base IS NULL
             WHERE held_by = $1 AND id = ANY ($2) AND status = 'leased' AND holder IS NOT DISTINCT FROM $3
               AND epoch <= $4",
        )
        .bind(Uuid::from(ask.tenant))
        .bind(ids)
        .bind(run_column(run))
        .bind(ask.epoch)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn leases_live(&mut self, ask: &LeaseAsk) -> Result<Vec<HeldLease>, StoreError> {
        let rows: Vec<LeaseRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.resolver_leases
             WHERE held_by = $1 AND deployment = $2 AND environment = $3 AND rehearsal = $4 AND status <> 'released'"
        )))
        .bind(Uuid::from(ask.tenant))
        .bind(&ask.facts.deployment)
        .bind(&ask.facts.environment)
        .bind(ask.rehearsal)
        .fetch_all(self.connection())
        .await?;
        rows.into_iter().map(LeaseRow::read).collect()
    }

    /// Leases from the tenant's own spaces, whoever has them, newest first.
    pub async fn lease_list(
        &mut self,
        filter: &LeaseFilter,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<HeldLease>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        let rows: Vec<LeaseRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.resolver_leases
             WHERE ($1::text IS NULL OR resolver = $1) AND ($2::text IS NULL OR deployment = $2)
               AND ($3::text IS NULL OR status = $3)
               AND ($4::text IS NULL OR space_id IN (SELECT s.id FROM nimbus_core.lease_spaces s WHERE s.key = $4))
               AND ($5::timestamptz IS NULL OR (taken_at, id) < ($5, $6))
               AND ($8::text[] IS NULL OR environment = ANY($8))
             ORDER BY taken_at DESC, id DESC LIMIT $7"
        )))
        .bind(&filter.resolver)
        .bind(&filter.deployment)
        .bind(&filter.status)
        .bind(filter.pool.map(pool_space))
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .bind(&filter.environments)
        .fetch_all(self.connection())
        .await?;
        rows.into_iter().map(LeaseRow::read).collect()
    }

    /// Environments of the units that have leases, by name.
    pub async fn lease_environments(&mut self) -> Result<Vec<String>, StoreError> {
        let names =
            "SELECT DISTINCT environment FROM nimbus_core.resolver_leases ORDER BY environment";
        Ok(sqlx::query_scalar(names)
            .fetch_all(self.connection())
            .await?)
    }

    /// A lease from the tenant's own spaces, locked.
    pub async fn lease_lock(&mut self, id: Uuid) -> Result<HeldLease, StoreError> {
        let row: Option<LeaseRow> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM nimbus_core.resolver_leases WHERE id = $1 FOR UPDATE"
        )))
        .bind(id)
        .fetch_optional(self.connection())
        .await?;
        row.ok_or(StoreError::NotFound("lease"))?.read()
    }

    /// Gives a lease back by hand.
    pub async fn lease_release(&mut self, held: &HeldLease) -> Result<(), StoreError> {
        let mut lease = held.lease.clone();
        if lease.status == LeaseStatus::Released {
            return Ok(());
        }
        lease.release();
        self.lease_update(&lease, None).await
    }

    /// What a secret's lease has sealed.
    pub async fn lease_sealed(&mut self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let sealed: Option<Option<Vec<u8>>> = sqlx::query_scalar(
            "SELECT sealed FROM nimbus_core.resolver_leases WHERE id = $1 AND status <> 'released'",
        )
        .bind(id)
        .fetch_optional(self.connection())
        .await?;
        Ok(sealed.flatten())
    }
}
