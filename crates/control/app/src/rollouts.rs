//! Roll-outs of a version over many instances: made, watched, paused, gone on with and stopped.
//!
//! What happens next is the catalog core's to say; [`advance`](App::advance_rollout) does it, whoever calls, any number of times and on
//! any number of servers at once.

use nimbus_catalog::{
    RolloutPlace, RolloutPolicy, RolloutSignal, RolloutState, WaveRule, plan_waves, signal_rollout,
};
use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    ListPage, NewRollout, RolloutInstance, RowCursor, StoreError, StoredRollout, TenantTx,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::{Value, json};
use tracing::warn;
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, FieldProblem, Result};
use crate::fleet::{FleetFilter, InstanceImpact};
use crate::input;

const MOST_MESSAGE_LETTERS: usize = 2_000;
/// Whoever looks at instances needs this.
const SEE: &str = "component:instance:read";

/// A roll-out to be made.
#[derive(Clone, Debug)]
pub struct RolloutInput {
    /// The newest version that can be used when absent.
    pub version: Option<i32>,
    pub waves: WaveRule,
    pub policy: RolloutPolicy,
    /// Only instances of these environments; all of them when absent.
    pub environments: Option<Vec<String>>,
    /// Instances on simulated clouds instead of real ones.
    pub rehearsal: bool,
    /// Leave out instances that cannot take the version, instead of refusing.
    pub skip_unfit: bool,
    /// Only make the plan; it begins when somebody lets it go on.
    pub plan_only: bool,
    pub message: Option<String>,
}

/// A roll-out with those of its instances that the caller may see.
#[derive(Clone, Debug)]
pub struct RolloutView {
    pub rollout: StoredRollout,
    pub state: RolloutState,
    pub policy: RolloutPolicy,
    pub instances: Vec<RolloutInstance>,
}

impl App {
    /// Makes a roll-out over every instance that the caller may upgrade, and begins it unless only a plan is wanted.
    pub async fn rollout_start(
        &self,
        call: &Call,
        tenant: TenantId,
        component: &str,
        input: RolloutInput,
    ) -> Result<RolloutView> {
        let operation = operation::START_ROLLOUT;
        let permit = self.permit(call, operation, tenant).await?;
        let problem =
            |error: nimbus_catalog::WaveProblem| Err(Failure::field("waves", error.to_string()));
        input.waves.check().or_else(problem)?;
        let message = input.message.as_deref().unwrap_or_default();
        let message = input::text("message", message, MOST_MESSAGE_LETTERS)?;
        let filter = FleetFilter {
            environments: input.environments.clone(),
            rehearsal: Some(input.rehearsal),
        };
        let fleet = self
            .find_fleet(call, operation, tenant, component, &filter)
            .await?;
        let owner = fleet.known.component.tenant_id;
        // Said first: instances that another one is at do not fit for that reason alone.
        let is_open = self.inner.store.tenant_tx(tenant, async |tx| {
            tx.rollout_is_open(component, owner).await
        });
        if is_open.await? {
            return Err(other_open(component));
        }
        let to = fleet.known.target(input.version)?;
        let impacts = self.assess_fleet(&fleet, to).await?;
        let instances = planned(impacts, to, &input)?;
        let state = match input.plan_only {
            true => RolloutState::Planned,
            false => RolloutState::Running { wave: 0 },
        };
        let new = NewRollout {
            component: component.to_owned(),
            component_owner: owner,
            to_version: to,
            waves: json!(input.waves),
            policy: json!(input.policy),
            status: state.word(),
            state: json!(state),
            message,
            requested_by: call.who.user,
            requested_from: call.who.home,
        };
        let made = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let made = tx.rollout_create(&new, &instances).await;
                let made = made.map_err(|error| taken(error, component))?;
                let waves = instances.iter().map(|one| one.wave).max();
                let record = permit.record().on(made.id).after(json!({
                    "component": component,
                    "version": to,
                    "status": made.status,
                    "instances": instances.len(),
                    "waves": waves.map_or(0, |last| last + 1),
                    "max_failures": input.policy.max_failures,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(made)
            })
            .await?;
        self.go_on_with(tenant, made.id, call).await;
        self.rollout_seen(call, &permit, made.id).await
    }

    pub async fn rollout_list(
        &self,
        call: &Call,
        tenant: TenantId,
        component: Option<String>,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredRollout>> {
        let permit = self.permit(call, operation::LIST_ROLLOUTS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.rollout_list(component.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn rollout_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<RolloutView> {
        let permit = self.permit(call, operation::GET_ROLLOUT, tenant).await?;
        let view = self.rollout_seen(call, &permit, id).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let record = permit.record().on(id);
                self.audit(tx, &call.context, record).await
            })
            .await?;
        Ok(view)
    }

    /// Pauses a roll-out, lets it go on, or stops it. What was started goes on to its own end.
    pub async fn rollout_signal(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        signal: RolloutSignal,
    ) -> Result<RolloutView> {
        let permit = self.permit(call, operation_of(signal), tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.rollout_lock(id).await?;
                for one in tx.rollout_instances(id).await? {
                    self.ensure_in(call, &permit, &one.environment)?;
                }
                let state: RolloutState = read(&found.state)?;
                let next = signal_rollout(&state, signal).map_err(|refusal| {
                    Error::new(ErrorCode::ROLLOUT_STATE, refusal.to_string())
                        .with_help("one that has ended is made anew")
                })?;
                tx.rollout_move(id, &json!(next), next.word()).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(json!({"status": found.status}))
                    .after(json!({"status": next.word()}));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(())
            })
            .await?;
        self.go_on_with(tenant, id, call).await;
        self.rollout_seen(call, &permit, id).await
    }

    /// Right away, so that nobody waits for a server's round. A round tries again what does not work now.
    async fn go_on_with(&self, tenant: TenantId, id: Uuid, call: &Call) {
        if let Err(failure) = self.advance_rollout(tenant, id, call.context.now).await {
            warn!(error = %failure.error.log_text(), %id, "a roll-out did not go on");
        }
    }

    /// A roll-out without instances that the caller may not see.
    async fn rollout_seen(&self, call: &Call, permit: &Permit, id: Uuid) -> Result<RolloutView> {
        let tenant = permit.resource.tenant;
        let (rollout, instances, tenants) = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let rollout = tx.rollout_get(id).await?;
                let instances = tx.rollout_instances(id).await?;
                let mut ids: Vec<Uuid> = instances.iter().map(|one| one.instance_tenant).collect();
                ids.sort_unstable();
                ids.dedup();
                let ids: Vec<TenantId> = ids.into_iter().map(TenantId::from).collect();
                let tenants = tx.tenants_named(&ids).await?;
                Ok::<_, StoreError>((rollout, instances, tenants))
            })
            .await?;
        let visible = |one: &RolloutInstance| {
            let place = tenants
                .iter()
                .find(|tenant| tenant.id == TenantId::from(one.instance_tenant));
            let resource = place.and_then(|tenant| Resource::in_tenant(&tenant.path, "rollouts"));
            resource.is_some_and(|mut resource| {
                resource.environment = Some(one.environment.clone());
                self.has(call, SEE, &resource)
            })
        };
        Ok(RolloutView {
            state: read(&rollout.state)?,
            policy: read(&rollout.policy)?,
            instances: instances.into_iter().filter(visible).collect(),
            rollout,
        })
    }
}

fn operation_of(signal: RolloutSignal) -> Operation {
    match signal {
        RolloutSignal::Pause => operation::PAUSE_ROLLOUT,
        RolloutSignal::Resume => operation::RESUME_ROLLOUT,
        RolloutSignal::Stop => operation::STOP_ROLLOUT,
    }
}

/// Instances by wave and place. Those that cannot take the version are refused, or left out with the reason.
fn planned(
    impacts: Vec<InstanceImpact>,
    to: i32,
    input: &RolloutInput,
) -> Result<Vec<RolloutInstance>> {
    let impacts: Vec<_> = impacts.into_iter().filter(|one| !one.current).collect();
    let unfit: Vec<FieldProblem> = impacts
        .iter()
        .filter(|one| !one.verdict.fits())
        .map(|one| FieldProblem {
            field: place_name(one).into(),
            message: one.verdict.reasons().join("; "),
        })
        .collect();
    if !unfit.is_empty() && !input.skip_unfit {
        let message = format!(
            "{} of {} instances cannot take version {to}",
            unfit.len(),
            impacts.len()
        );
        let error = Error::new(ErrorCode::UPGRADE_UNFIT, message).with_help(
            "put right what `nimbus component impact` says, or leave them out with `skip_unfit`",
        );
        return Err(Failure {
            details: unfit,
            ..error.into()
        });
    }
    if unfit.len() == impacts.len() {
        let message = format!("no instance can be upgraded to version {to}");
        return Err(Error::new(ErrorCode::ROLLOUT_EMPTY, message)
            .with_help("`nimbus component impact` says what there is and what stands in the way")
            .into());
    }
    let places: Vec<RolloutPlace> = impacts
        .iter()
        .map(|one| RolloutPlace {
            environment: one.place.environment.clone(),
            rank: one.rank,
            size: one.size,
            name: place_name(one),
        })
        .collect();
    let small = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let mut instances = Vec::new();
    for (wave, members) in plan_waves(&places, &input.waves).into_iter().enumerate() {
        for (place, at) in members.into_iter().enumerate() {
            let one = &impacts[at];
            let fits = one.verdict.fits();
            instances.push(RolloutInstance {
                wave: small(wave),
                place: small(place),
                instance: one.place.id,
                instance_tenant: one.place.tenant,
                tenant_name: one.place.tenant_name.clone(),
                deployment: one.place.deployment.clone(),
                environment: one.place.environment.clone(),
                rehearsal: one.place.rehearsal,
                stack: one.place.stack.clone(),
                from_version: one.place.version.unwrap_or_default(),
                status: if fits { "waiting" } else { "skipped" }.to_owned(),
                run: None,
                problem: (!fits).then(|| one.verdict.reasons().join("; ")),
            });
        }
    }
    Ok(instances)
}

fn place_name(one: &InstanceImpact) -> String {
    let place = &one.place;
    format!(
        "{}/{}/{}/{}",
        place.tenant_name, place.deployment, place.environment, place.stack
    )
}

fn taken(error: StoreError, component: &str) -> Failure {
    match error {
        StoreError::Exists(_) => other_open(component),
        error => error.into(),
    }
}

fn other_open(component: &str) -> Failure {
    let message = format!("another roll-out of {component} has not ended");
    Error::new(ErrorCode::ROLLOUT_OPEN, message)
        .with_help("wait for it, or stop it: `nimbus component rollout list` names it")
        .into()
}

/// What the catalog core wrote.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = format!("a roll-out cannot be read: {error}");
        Failure::new(ErrorCode::INTERNAL, message)
    })
}

/// Instances of a roll-out by wave, as the core sees them.
pub(crate) fn progress_of(
    instances: &[RolloutInstance],
) -> Vec<Vec<nimbus_catalog::InstanceProgress>> {
    use nimbus_catalog::InstanceProgress;
    let mut waves: Vec<Vec<InstanceProgress>> = Vec::new();
    for one in instances {
        let wave = usize::try_from(one.wave).unwrap_or_default();
        if waves.len() <= wave {
            waves.resize(wave + 1, Vec::new());
        }
        let progress = match one.status.as_str() {
            "waiting" => InstanceProgress::Waiting,
            "succeeded" => InstanceProgress::Succeeded,
            "failed" => InstanceProgress::Failed,
            "skipped" => InstanceProgress::Skipped,
            // The table takes no other word than these and `running`.
            _ => InstanceProgress::UnderWay,
        };
        waves[wave].push(progress);
    }
    waves
}

/// The instance at a place of a wave.
pub(crate) fn at(
    instances: &mut [RolloutInstance],
    (wave, place): (usize, usize),
) -> Option<&mut RolloutInstance> {
    let is = |number: i32, wanted: usize| usize::try_from(number).is_ok_and(|one| one == wanted);
    instances
        .iter_mut()
        .find(|one| is(one.wave, wave) && is(one.place, place))
}

/// A roll-out that is locked, with its instances.
pub(crate) async fn locked(
    tx: &mut TenantTx,
    id: Uuid,
) -> Result<(StoredRollout, Vec<RolloutInstance>)> {
    let rollout = tx.rollout_lock(id).await?;
    let instances = tx.rollout_instances(id).await?;
    Ok((rollout, instances))
}
