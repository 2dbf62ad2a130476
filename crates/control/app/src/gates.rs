//! Gates of environments: how they stand, and who says that an item is done.
//!
//! Whether a run may pass is decided by the run itself when it begins, from the same records. Here people look at a gate
//! and vouch for what nobody else can know.

use std::collections::BTreeMap;

use nimbus_control_auth::operation;
use nimbus_control_store::{EnvironmentKey, StoredRun, TenantTx};
use nimbus_control_wire::{EnvironmentGate, GateStanding};
use nimbus_core::{EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::gate::GateItemStatus;
use nimbus_orchestrator::{Manifest, RunAction, RunEvent};
use nimbus_runs::ports::GateSignature;
use nimbus_runs::{
    LastChange, LastChangeSearch, changes_environment, gate_status, require_signable,
};
use serde::Deserialize as _;
use serde_json::json;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::input;
use crate::states::StatePlace;

/// So many events are read at once.
const EVENTS_AT_ONCE: u32 = 1000;
const MOST_NOTE_LETTERS: usize = 2_000;

impl App {
    /// The gates of a deployment's environments, in the order of its manifest.
    pub async fn gate_list(
        &self,
        call: &Call,
        tenant: TenantId,
        id: &str,
        rehearsal: bool,
    ) -> Result<Vec<EnvironmentGate>> {
        let permit = self.permit(call, operation::LIST_GATES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let deployment = tx.deployment_get(id).await?;
                let manifest = read_manifest(&deployment.manifest)?;
                let mut gates = Vec::new();
                for name in manifest.environments.keys() {
                    let of = EnvironmentKey {
                        deployment: deployment.id.clone(),
                        environment: name.to_string(),
                        rehearsal,
                    };
                    gates.push(standing(tx, call, &manifest, *name, &of).await?);
                }
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(gates)
            })
            .await
    }

    /// Records that the caller vouches for an item, and says how the gate stands then.
    pub async fn gate_sign(
        &self,
        call: &Call,
        tenant: TenantId,
        place: StatePlace,
        item: &str,
        note: &str,
    ) -> Result<EnvironmentGate> {
        let operation = operation::SIGN_GATE;
        let environment = Some(place.environment.as_str());
        let permit = self.permit_in(call, operation, tenant, environment).await?;
        let note = input::text("note", note, MOST_NOTE_LETTERS)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                // Locked: what is vouched for is an item of this manifest.
                let deployment = tx.deployment_lock(&place.deployment).await?;
                let manifest = read_manifest(&deployment.manifest)?;
                let name = place.environment.parse::<EnvironmentName>();
                let name = name
                    .ok()
                    .filter(|name| manifest.environments.contains_key(name));
                let name = name.ok_or_else(Failure::not_found)?;
                require_signable(&manifest, name, item)
                    .map_err(|error| Failure::field("item", error.to_string()))?;
                let user = tx.user_get(call.who.user).await.map(|user| user.email);
                let signature = GateSignature {
                    // Somebody of a tenant above is not among this tenant's users.
                    user: user.unwrap_or_else(|_| call.who.user.to_string()),
                    at: call.context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    note: note.clone(),
                };
                let of = EnvironmentKey {
                    deployment: deployment.id.clone(),
                    environment: name.to_string(),
                    rehearsal: place.rehearsal,
                };
                let value = serde_json::to_value(&signature)
                    .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
                tx.signature_put(&of, item, &value).await?;
                let record = permit.record().on(&deployment.id).after(json!({
                    "environment": name.as_str(),
                    "rehearsal": place.rehearsal,
                    "item": item,
                    "note": note,
                }));
                self.audit(tx, &call.context, record).await?;
                standing(tx, call, &manifest, name, &of).await
            })
            .await
    }

    /// Whoever goes past a gate could have vouched for it: they need the same permission, where the gate is.
    pub(crate) fn ensure_may_skip(
        &self,
        call: &Call,
        permit: &Permit,
        manifest: &Manifest,
        environment: EnvironmentName,
    ) -> Result<()> {
        const KEY: &str = "deployment:environment:manage";
        let Some(before) = manifest.promoted_from(environment) else {
            return Ok(());
        };
        let mut resource = permit.resource.clone();
        resource.environment = Some(before.to_string());
        if self.has(call, KEY, &resource) {
            return Ok(());
        }
        let message = format!("to skip the gate of {before} needs the permission {KEY} there");
        Err(Error::new(ErrorCode::NOT_PERMITTED, message)
            .with_help("have its items recorded by somebody who may, or ask for a role that has it")
            .into())
    }
}

/// What of an environment is not the manifest's writer's alone, where two manifests differ in it.
pub(crate) fn managed_changes(
    was: &Manifest,
    wanted: &Manifest,
) -> Vec<(EnvironmentName, &'static str)> {
    // One that is not there is off: else it would be switched by taking it out and putting it in again.
    let is_on = |manifest: &Manifest, name: EnvironmentName| {
        let target = manifest.environments.get(&name);
        target.is_some_and(|target| target.enabled)
    };
    let mut changes = Vec::new();
    for name in was.environments.keys().chain(wanted.environments.keys()) {
        let name = *name;
        if is_on(was, name) != is_on(wanted, name) {
            changes.push((name, "switching"));
        }
        let there = was.environments.contains_key(&name);
        if there && was.gate(name) != wanted.gate(name) {
            changes.push((name, "changing the gate"));
        }
        // Whoever moves an environment in the order passes the gate of the one that was before it.
        let before = was.promoted_from(name);
        if there && before != wanted.promoted_from(name) {
            changes.push((name, "changing the place in the promotion"));
            changes.extend(before.map(|before| (before, "passing the gate")));
        }
    }
    changes
}

async fn standing(
    tx: &mut TenantTx,
    call: &Call,
    manifest: &Manifest,
    environment: EnvironmentName,
    of: &EnvironmentKey,
) -> Result<EnvironmentGate> {
    let last = last_change(tx, of).await?;
    let mut signatures = BTreeMap::new();
    for stored in tx.signature_list(of).await? {
        let signature: GateSignature = serde_json::from_value(stored.signature)
            .map_err(|_| Failure::new(ErrorCode::INTERNAL, "a signature cannot be read"))?;
        signatures.insert(stored.item, signature);
    }
    let now = call.context.now;
    let items = gate_status(manifest, environment, last.as_ref(), signatures, now);
    Ok(EnvironmentGate {
        environment: environment.to_string(),
        items: items.into_iter().map(shown).collect(),
    })
}

async fn last_change(tx: &mut TenantTx, of: &EnvironmentKey) -> Result<Option<LastChange>> {
    let runs = tx
        .runs_begun(&of.deployment, &of.environment, of.rehearsal)
        .await?;
    let action = |run: &StoredRun| run.action.parse::<RunAction>().ok();
    let mut search = LastChangeSearch::default();
    for run in runs {
        let Some(action) = action(&run).filter(|action| changes_environment(*action)) else {
            continue;
        };
        let started: jiff::Timestamp = run.began_at.unwrap_or(run.queued_at).into();
        let older = LastChange {
            action,
            started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            events: events(tx, &run).await?,
        };
        if !search.take(older) {
            break;
        }
    }
    Ok(search.found())
}

async fn events(tx: &mut TenantTx, run: &StoredRun) -> Result<Vec<RunEvent>> {
    let mut events = Vec::new();
    let mut after = 0;
    loop {
        let page = tx
            .events_after(&run.deployment, run.number, after, EVENTS_AT_ONCE)
            .await?;
        let Some(last) = page.last() else {
            return Ok(events);
        };
        after = last.seq;
        // Layers are not of the run core, and nothing follows from them.
        let known = page
            .iter()
            .filter_map(|one| RunEvent::deserialize(&one.event).ok());
        events.extend(known);
    }
}

fn shown(status: GateItemStatus) -> GateStanding {
    GateStanding {
        item: status.item.as_str().to_owned(),
        done: status.done,
        note: status.note,
    }
}
