//! Goes on with roll-outs: looks how runs ended, asks the core what follows, and asks for the next runs.
//!
//! A roll-out and its instances may be of different tenants, so nothing of it is one transaction. An instance is marked as
//! being started first, in the roll-out's tenant; then its run is asked for, in its own, where a roll-out gets the same run
//! however often it asks; then the run is written down. Whoever comes between two of these goes on with the next, so servers
//! may end at any moment and any number of them may do this at once.
//!
//! Runs are asked for in the name of whoever made the roll-out, with what they may do now: somebody who lost the permission, or
//! is disabled, upgrades nothing more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nimbus_catalog::{RolloutPolicy, RolloutState, advance_rollout};
use nimbus_control_audit::{Actor, AuditRecord};
use nimbus_control_auth::access::Resource;
use nimbus_control_store::{RolloutInstance, StoreError, StoredRollout, StoredRun};
use nimbus_core::{ErrorCode, ErrorKind, TenantId, UserId};
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::fleet::told_problem;
use crate::instances::told;
use crate::rollouts::{at, locked, progress_of, read};

const UPGRADE: &str = "component:upgrade";

/// How an instance's run ended, or that it was never there.
struct EndedRun {
    instance: Uuid,
    run: Uuid,
    succeeded: bool,
    problem: Option<String>,
}

/// What became of an instance that was to be started.
enum StartedInstance {
    Run(Uuid),
    /// It will not be: the reason.
    Refused(String),
    /// Nobody knows; the next round asks again.
    Later,
}

impl App {
    /// Goes on with every roll-out that is to go on. How many moved. The server calls this once in a while.
    pub async fn sweep_rollouts(&self, now: Timestamp) -> Result<usize> {
        let mut moved = 0;
        let store = &self.inner.store;
        for tenant in store.rollout_tenants().await? {
            let open = store.tenant_tx(tenant, async |tx| {
                tx.rollout_settle().await?;
                tx.rollouts_open().await
            });
            let open = match open.await {
                Ok(open) => open,
                Err(StoreError::TenantUnknown) => {
                    store.rollout_forget(tenant).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for id in open {
                match self.advance_rollout(tenant, id, now).await {
                    Ok(true) => moved += 1,
                    Ok(false) => {}
                    // One that cannot be read keeps no other from going on.
                    Err(failure) => {
                        warn!(error = %failure.error.log_text(), %tenant, %id, "a roll-out did not go on");
                    }
                }
            }
        }
        Ok(moved)
    }

    /// Every tenant may have roll-outs: after a start, when nobody knows.
    pub async fn note_rollouts(&self) -> Result<()> {
        Ok(self.inner.store.rollout_note_all().await?)
    }

    /// Goes on with one roll-out as far as it can go now. Whether anything moved.
    pub async fn advance_rollout(
        &self,
        tenant: TenantId,
        id: Uuid,
        now: Timestamp,
    ) -> Result<bool> {
        let store = &self.inner.store;
        let instances = store
            .tenant_tx(tenant, async |tx| tx.rollout_instances(id).await)
            .await?;
        let ended = self.ended_runs(&instances).await?;
        let (rollout, starting, mut moved) = store
            .tenant_tx(tenant, async |tx| {
                let (rollout, mut instances) = locked(tx, id).await?;
                let mut moved = false;
                for one in &mut instances {
                    let end = ended.iter().find(|end| {
                        end.instance == one.instance
                            && one.status == "running"
                            && one.run == Some(end.run)
                    });
                    if let Some(end) = end {
                        one.status = if end.succeeded { "succeeded" } else { "failed" }.to_owned();
                        one.problem.clone_from(&end.problem);
                        tx.rollout_instance_move(id, one).await?;
                        moved = true;
                    }
                }
                let state: RolloutState = read(&rollout.state)?;
                let policy: RolloutPolicy = read(&rollout.policy)?;
                let next = advance_rollout(&state, &policy, &progress_of(&instances));
                for place in &next.start {
                    if let Some(one) = at(&mut instances, *place) {
                        one.status = "starting".to_owned();
                        tx.rollout_instance_move(id, one).await?;
                        moved = true;
                    }
                }
                let rollout = if next.state == state {
                    rollout
                } else {
                    moved = true;
                    let word = next.state.word();
                    let record = AuditRecord::new(Actor::system(), "rollouts.advance", "rollouts")
                        .on(id)
                        .before(json!({"status": rollout.status, "state": rollout.state}))
                        .after(json!({"status": word, "state": next.state}));
                    let written = tx.rollout_move(id, &json!(next.state), word).await?;
                    tx.audit_append(&self.inner.keys.audit, now, record).await?;
                    written
                };
                instances.retain(|one| one.status == "starting");
                Ok::<_, Failure>((rollout, instances, moved))
            })
            .await?;
        if starting.is_empty() {
            return Ok(moved);
        }
        let started = self.start_all(&rollout, &starting, now).await;
        self.inner.wakeup.notify_one();
        moved |= store
            .tenant_tx(tenant, async |tx| {
                let (_, mut instances) = locked(tx, id).await?;
                let mut moved = false;
                for one in &mut instances {
                    // Somebody else may have written it down meanwhile.
                    if one.status != "starting" {
                        continue;
                    }
                    match started.get(&one.instance) {
                        Some(StartedInstance::Run(run)) => {
                            one.status = "running".to_owned();
                            one.run = Some(*run);
                        }
                        Some(StartedInstance::Refused(problem)) => {
                            one.status = "failed".to_owned();
                            one.problem = Some(problem.clone());
                        }
                        Some(StartedInstance::Later) | None => continue,
                    }
                    tx.rollout_instance_move(id, one).await?;
                    moved = true;
                }
                Ok::<_, Failure>(moved)
            })
            .await?;
        Ok(moved)
    }

    /// Runs of these instances that have ended, from the tenants of each.
    async fn ended_runs(&self, instances: &[RolloutInstance]) -> Result<Vec<EndedRun>> {
        let mut by_tenant: BTreeMap<Uuid, Vec<(Uuid, Uuid)>> = BTreeMap::new();
        for one in instances.iter().filter(|one| one.status == "running") {
            if let Some(run) = one.run {
                let of_tenant = by_tenant.entry(one.instance_tenant).or_default();
                of_tenant.push((one.instance, run));
            }
        }
        let mut ended = Vec::new();
        for (tenant, runs) in by_tenant {
            let found = self
                .inner
                .store
                .tenant_tx(tenant.into(), async |tx| {
                    let ids: Vec<Uuid> = runs.iter().map(|(_, run)| *run).collect();
                    let found = tx.runs_named(&ids).await?;
                    let ended = runs.iter().filter_map(|(instance, run)| {
                        let found = found.iter().find(|one| one.id == *run);
                        end_of(*instance, *run, found)
                    });
                    Ok::<_, StoreError>(ended.collect::<Vec<_>>())
                })
                .await;
            match found {
                Ok(found) => ended.extend(found),
                Err(StoreError::TenantUnknown) => {
                    let gone = |(instance, run)| end_of(instance, run, None);
                    ended.extend(runs.into_iter().filter_map(gone));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(ended)
    }

    async fn start_all(
        &self,
        rollout: &StoredRollout,
        starting: &[RolloutInstance],
        now: Timestamp,
    ) -> BTreeMap<Uuid, StartedInstance> {
        let mut started = BTreeMap::new();
        let call = self
            .call_in_name(
                TenantId::from(rollout.requested_from),
                UserId::from(rollout.requested_by),
                "the roll-out",
                now,
            )
            .await;
        for one in starting {
            let asked = match &call {
                Ok(call) => self.start_one(call, rollout, one).await,
                Err(failure) => Err(Failure::new(
                    failure.error.code(),
                    failure.error.to_string(),
                )),
            };
            let outcome = match asked {
                Ok(run) => StartedInstance::Run(run),
                Err(failure) => match failure.error.code().kind() {
                    // The database or this server, and not the instance.
                    ErrorKind::Unavailable | ErrorKind::Internal => {
                        let error = failure.error.log_text();
                        warn!(%error, instance = %one.instance, "an instance of a roll-out was not started");
                        StartedInstance::Later
                    }
                    _ => StartedInstance::Refused(told_problem(&failure)),
                },
            };
            started.insert(one.instance, outcome);
        }
        started
    }

    async fn start_one(
        &self,
        call: &Call,
        rollout: &StoredRollout,
        one: &RolloutInstance,
    ) -> Result<Uuid> {
        let tenant = TenantId::from(one.instance_tenant);
        let path = self.path(call, tenant).await?;
        let mut resource =
            Resource::in_tenant(&path, "instances").ok_or_else(Failure::not_found)?;
        resource.environment = Some(one.environment.clone());
        let permitted = self.has(call, UPGRADE, &resource);
        let state: RolloutState = read(&rollout.state)?;
        let run = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.instance_get(one.instance).await?;
                // Asked for before somebody stopped it, or lost the permission: it is there all the same.
                if found.rollout == Some(rollout.id)
                    && let Some(run) = found.rollout_run
                {
                    return Ok(tx.run_find(run).await?);
                }
                if state.has_ended() {
                    let message = format!("the roll-out is {}", state.word());
                    return Err(Failure::new(ErrorCode::ROLLOUT_STATE, message));
                }
                if !permitted {
                    let message = format!(
                        "whoever made the roll-out needs the permission {UPGRADE} in {}",
                        one.environment
                    );
                    return Err(Failure::new(ErrorCode::NOT_PERMITTED, message));
                }
                let to = rollout.to_version;
                let message = format!(
                    "roll-out {}: {} to version {to}",
                    rollout.id, rollout.component
                );
                let asked = self.upgrade_in(
                    tx,
                    call,
                    one.instance,
                    Some(to),
                    Some(rollout.id),
                    Some(message),
                );
                let (run, is_new) = asked.await?;
                if !is_new {
                    return Ok(run);
                }
                let mut after = told(&found, &run);
                after["rollout"] = json!(rollout.id);
                let record = self
                    .record_of(call, "instances.upgrade", "instances")
                    .on(one.instance)
                    .before(json!({"version": found.component_version, "status": found.status}))
                    .after(after);
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(run)
            })
            .await?;
        if run.status != "ended" {
            self.flow_begins(tenant, &run);
        }
        Ok(run.id)
    }
}

/// How a run ended, if it did. One that is not there any more did not succeed.
fn end_of(instance: Uuid, run: Uuid, found: Option<&StoredRun>) -> Option<EndedRun> {
    let Some(found) = found else {
        return Some(EndedRun {
            instance,
            run,
            succeeded: false,
            problem: Some("its run is not there any more".to_owned()),
        });
    };
    if found.status != "ended" {
        return None;
    }
    let result = found.result.as_deref().unwrap_or("ended early");
    let succeeded = result == "succeeded";
    let words = found.problem.as_ref();
    let words = words.and_then(|problem| problem["message"].as_str());
    let problem = match (succeeded, words) {
        (true, _) => None,
        (false, Some(words)) => Some(format!("its run is {result}: {words}")),
        (false, None) => Some(format!("its run is {result}")),
    };
    Some(EndedRun {
        instance,
        run,
        succeeded,
        problem,
    })
}
