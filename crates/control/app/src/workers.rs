//! Workers on other machines: they join with a key that has a permission of its own, take runs and ask about those that
//! they have.
//!
//! Every call proves itself anew, so a key that was revoked ends with the next call. What a worker may see is what the
//! run needs that it holds, and it holds it for as long as the row says so.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use nimbus_control_audit::ActorKind;
use nimbus_control_auth::operation::{self, Need, Operation};
use nimbus_control_store::{NewWorker, StoredWorker};
use nimbus_control_wire::{
    JoinWorker, TakeRun, TakenRunView, WorkerAbilities, WorkerAnswer, WorkerBeat, WorkerCall,
    WorkerList, WorkerOrders, WorkerView,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// Which run of whom a worker speaks of, and under which epoch.
#[derive(Clone, Copy, Debug)]
pub struct HeldRunCall {
    pub worker: Uuid,
    pub tenant: TenantId,
    pub run: Uuid,
    pub epoch: i64,
}

/// Where runs are taken from and asked about.
#[async_trait]
pub trait HeldRunSource: Send + Sync {
    /// Runs of an earlier process of this worker are nobody's.
    async fn take_back(&self, worker: Uuid) -> Result<(), Error>;

    /// The next run, with its tenant and customer.
    async fn take(&self, worker: Uuid, full: &BTreeSet<TenantId>) -> Result<Option<Value>, Error>;

    /// Answers a call about a run that the worker has; refused when it has it no longer.
    async fn call(&self, of: &HeldRunCall, call: Value) -> Result<Value, Error>;
}

impl fmt::Debug for dyn HeldRunSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldRunSource(..)")
    }
}

impl App {
    pub async fn worker_join(
        &self,
        call: &Call,
        tenant: TenantId,
        join: JoinWorker,
    ) -> Result<WorkerView> {
        let permit = self
            .permit_worker(call, operation::JOIN_WORKER, tenant)
            .await?;
        let id = join.id.parse();
        let id: Uuid = id.map_err(|_| Failure::field("id", "this is not an id"))?;
        let slots = i32::try_from(join.slots).ok();
        let new = NewWorker {
            id,
            name: input::name("name", &join.name, 100)?,
            account: call.who.user.into(),
            version: input::name("version", &join.version, 100)?,
            slots: slots
                .filter(|slots| (1..=1000).contains(slots))
                .ok_or_else(|| Failure::field("slots", "give 1 to 1000"))?,
            abilities: json!(join.abilities),
        };
        let record = permit
            .record()
            .on(id)
            .after(json!({"name": new.name, "version": new.version, "slots": new.slots, "abilities": new.abilities}));
        let store = &self.inner.store;
        let joined = store
            .tenant_tx(tenant, async |tx| {
                let joined = tx.worker_join(&new).await?;
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(joined)
            })
            .await?;
        self.held_runs()?.take_back(id).await?;
        Ok(view(joined))
    }

    pub async fn worker_list(&self, call: &Call, tenant: TenantId) -> Result<WorkerList> {
        let permit = self
            .permit_platform(call, operation::LIST_WORKERS, tenant)
            .await?;
        let store = &self.inner.store;
        store
            .tenant_tx(tenant, async |tx| {
                let all = tx.worker_list().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(WorkerList {
                    items: all.into_iter().map(view).collect(),
                })
            })
            .await
    }

    /// Lets a worker take no more runs, or take some again. What it has goes on either way.
    pub async fn worker_drain(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        drain: bool,
    ) -> Result<WorkerView> {
        let operation = match drain {
            true => operation::DRAIN_WORKER,
            false => operation::RESUME_WORKER,
        };
        let permit = self.permit_platform(call, operation, tenant).await?;
        let store = &self.inner.store;
        store
            .tenant_tx(tenant, async |tx| {
                let changed = tx.worker_drain(name, drain).await?;
                let record = permit.record().on(name).after(json!({"draining": drain}));
                self.audit(tx, &call.context, record).await?;
                Ok(view(changed))
            })
            .await
    }

    pub async fn worker_leave(&self, call: &Call, tenant: TenantId, worker: Uuid) -> Result<()> {
        let permit = self
            .permit_worker(call, operation::LEAVE_WORKER, tenant)
            .await?;
        let store = &self.inner.store;
        store
            .tenant_tx(tenant, async |tx| {
                tx.worker_leave(worker, call.who.user.into()).await?;
                let record = permit.record().on(worker);
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    pub async fn worker_beat(
        &self,
        call: &Call,
        tenant: TenantId,
        worker: Uuid,
        beat: WorkerBeat,
    ) -> Result<WorkerOrders> {
        self.permit_worker(call, operation::BEAT_WORKER, tenant)
            .await?;
        let running = i32::try_from(beat.running).unwrap_or(i32::MAX);
        let account = call.who.user.into();
        let store = &self.inner.store;
        let drain = store
            .tenant_tx(tenant, async |tx| {
                tx.worker_beat(worker, account, running).await
            })
            .await?;
        Ok(WorkerOrders { drain })
    }

    pub async fn worker_take(
        &self,
        call: &Call,
        tenant: TenantId,
        worker: Uuid,
        take: TakeRun,
    ) -> Result<TakenRunView> {
        let permit = self
            .permit_worker(call, operation::TAKE_RUN, tenant)
            .await?;
        let known = self.worker_of(call, tenant, worker).await?;
        if known.draining || known.left_at.is_some() {
            return Ok(TakenRunView { taken: None });
        }
        let full = take.full.iter().map(|customer| customer.parse());
        let full: Result<BTreeSet<TenantId>, _> = full.collect();
        let full = full.map_err(|_| Failure::field("full", "these are not ids of tenants"))?;
        let taken = self.held_runs()?.take(worker, &full).await?;
        if let Some(taken) = &taken {
            let record = permit.record().on(&known.name).after(
                json!({"run": taken["run"]["id"], "tenant": taken["tenant"], "epoch": taken["run"]["epoch"]}),
            );
            let store = &self.inner.store;
            store
                .tenant_tx(tenant, async |tx| {
                    self.audit(tx, &call.context, record).await
                })
                .await?;
        }
        Ok(TakenRunView { taken })
    }

    pub async fn worker_call(
        &self,
        call: &Call,
        tenant: TenantId,
        worker: Uuid,
        run: Uuid,
        body: WorkerCall,
    ) -> Result<WorkerAnswer> {
        let permit = self
            .permit_worker(call, operation::CALL_RUN, tenant)
            .await?;
        let known = self.worker_of(call, tenant, worker).await?;
        let whose = body.tenant.parse();
        let of = HeldRunCall {
            worker,
            tenant: whose.map_err(|_| Failure::field("tenant", "this is not an id"))?,
            run,
            epoch: body.epoch,
        };
        // That somebody's credentials left the server is proved; everything else is in the run's own record.
        if body.call["call"] == "credentials" {
            let record = permit.record().on(&known.name).after(
                json!({"call": "credentials", "run": run.to_string(), "tenant": of.tenant.to_string()}),
            );
            let store = &self.inner.store;
            store
                .tenant_tx(tenant, async |tx| {
                    self.audit(tx, &call.context, record).await
                })
                .await?;
        }
        let answer = self.held_runs()?.call(&of, body.call).await?;
        Ok(WorkerAnswer { answer })
    }

    /// Whether a caller has a key that workers join with.
    pub fn is_worker(&self, call: &Call) -> bool {
        let Need::Permission(key) = operation::JOIN_WORKER.need else {
            return false;
        };
        let home = &[call.who.home];
        call.who.kind == ActorKind::ServiceAccount && call.who.caller.names(key, home)
    }

    /// Only programs with a key are workers: what a worker is given is nothing for a person's session.
    async fn permit_worker(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
    ) -> Result<Permit> {
        let permit = self.permit_platform(call, operation, tenant).await?;
        if call.who.kind == ActorKind::ServiceAccount {
            return Ok(permit);
        }
        Err(Error::new(
            ErrorCode::NOT_PERMITTED,
            "workers join with the key of a service account",
        )
        .with_help("`nimbus worker token NAME` makes one")
        .into())
    }

    /// A worker that joined with the caller's account.
    async fn worker_of(&self, call: &Call, tenant: TenantId, worker: Uuid) -> Result<StoredWorker> {
        let account = call.who.user.into();
        let store = &self.inner.store;
        Ok(store
            .tenant_tx(tenant, async |tx| tx.worker_get(worker, account).await)
            .await?)
    }

    fn held_runs(&self) -> Result<&dyn HeldRunSource> {
        match self.inner.held_runs.get() {
            Some(source) => Ok(&**source),
            None => Err(Failure::new(
                ErrorCode::SERVER_UNREACHABLE,
                "this server is not ready for workers yet",
            )),
        }
    }
}

pub(crate) fn view(worker: StoredWorker) -> WorkerView {
    let abilities: Option<WorkerAbilities> = serde_json::from_value(worker.abilities).ok();
    let status = match (worker.left_at, worker.present, worker.draining) {
        (Some(_), _, _) => "left",
        (None, false, _) => "away",
        (None, true, true) => "draining",
        (None, true, false) => "present",
    };
    WorkerView {
        id: worker.id.to_string(),
        name: worker.name,
        status: status.to_owned(),
        version: worker.version,
        slots: worker.slots.unsigned_abs(),
        running: worker.running.unsigned_abs(),
        abilities: abilities.unwrap_or_default(),
        joined_at: worker.joined_at.0.to_string(),
        seen_at: worker.seen_at.0.to_string(),
    }
}
