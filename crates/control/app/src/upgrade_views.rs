//! Upgrades and roll-outs as transports tell them.

use nimbus_catalog::{PauseReason, RolloutPolicy, RolloutState, WaveRule};
use nimbus_control_store::{FleetInstance, RolloutInstance, StoredRollout};
use nimbus_control_wire::{
    ComponentImpact, FleetMember, ImpactedInstance, PreviewedInstance, RolloutDetail,
    RolloutMember, RolloutSummary, RolloutWaves, StartRollout,
};

use crate::failure::{Failure, Result};
use crate::fleet::{FleetImpact, FleetPreview, InstanceImpact};
use crate::rollouts::{RolloutInput, RolloutView, read};

/// What a version would mean, as it is told.
pub fn describe_impact(impact: FleetImpact) -> ComponentImpact {
    let of = |wanted: fn(&InstanceImpact) -> bool| {
        let instances = impact.instances.iter();
        instances.filter(|one| wanted(one)).count()
    };
    ComponentImpact {
        fit: of(|one| !one.current && one.verdict.fits()),
        unfit: of(|one| !one.current && !one.verdict.fits()),
        current: of(|one| one.current),
        component: impact.component,
        to_version: impact.to_version,
        instances: impact.instances.into_iter().map(impacted).collect(),
    }
}

fn impacted(one: InstanceImpact) -> ImpactedInstance {
    let InstanceImpact {
        place,
        current,
        verdict,
        ..
    } = one;
    let workflows = verdict.workflows.iter();
    ImpactedInstance {
        current,
        fits: current || verdict.fits(),
        workflows: workflows
            .map(|(version, workflow)| format!("{version}: {workflow}"))
            .collect(),
        standing: verdict.standing.filter(|_| !current),
        path: verdict.path.filter(|_| !current),
        parameters: verdict.parameters,
        dependents: verdict.dependents,
        rules: verdict.rules,
        instance: member(place),
    }
}

fn member(place: FleetInstance) -> FleetMember {
    FleetMember {
        id: place.id.to_string(),
        tenant: place.tenant.to_string(),
        tenant_name: place.tenant_name,
        deployment: place.deployment,
        environment: place.environment,
        rehearsal: place.rehearsal,
        stack: place.stack,
        version: place.version,
        status: place.status,
    }
}

/// A preview that was asked for, as it is told.
pub fn describe_preview(preview: FleetPreview) -> PreviewedInstance {
    PreviewedInstance {
        instance: member(preview.place),
        run: preview.run.map(|run| run.to_string()),
        problem: preview.problem,
    }
}

/// A roll-out as lists tell it.
///
/// # Errors
///
/// When its row cannot be read.
pub fn describe_rollout(rollout: StoredRollout) -> Result<RolloutSummary> {
    let state: RolloutState = read(&rollout.state)?;
    let policy: RolloutPolicy = read(&rollout.policy)?;
    let (wave, reason) = match state {
        RolloutState::Planned | RolloutState::Succeeded => (None, None),
        RolloutState::Running { wave }
        | RolloutState::Stopped { wave }
        | RolloutState::Failed { wave, .. } => (Some(wave), None),
        RolloutState::Paused { wave, reason } => (Some(wave), Some(reason)),
    };
    let reason = reason.map(|reason| match reason {
        PauseReason::Asked => "asked",
        PauseReason::BetweenWaves => "between_waves",
    });
    Ok(RolloutSummary {
        id: rollout.id.to_string(),
        component: rollout.component,
        to_version: rollout.to_version,
        status: rollout.status,
        wave: wave.map(counted),
        paused_because: reason.map(str::to_owned),
        max_failures: policy.max_failures,
        pause_between_waves: policy.pause_between_waves,
        message: rollout.message,
        requested_by: rollout.requested_by.to_string(),
        requested_at: rollout.requested_at.0.to_string(),
        updated_at: rollout.updated_at.0.to_string(),
        ended_at: rollout.ended_at.map(|at| at.0.to_string()),
    })
}

/// A roll-out with its instances, as it is told.
///
/// # Errors
///
/// When its row cannot be read.
pub fn describe_rollout_detail(view: RolloutView) -> Result<RolloutDetail> {
    let last = view.instances.iter().map(|one| one.wave).max();
    Ok(RolloutDetail {
        rollout: describe_rollout(view.rollout)?,
        waves: last.map_or(0, wave),
        instances: view.instances.into_iter().map(part).collect(),
    })
}

fn part(one: RolloutInstance) -> RolloutMember {
    RolloutMember {
        wave: wave(one.wave),
        instance: one.instance.to_string(),
        tenant: one.instance_tenant.to_string(),
        tenant_name: one.tenant_name,
        deployment: one.deployment,
        environment: one.environment,
        rehearsal: one.rehearsal,
        stack: one.stack,
        from_version: one.from_version,
        status: one.status,
        run: one.run.map(|run| run.to_string()),
        problem: one.problem,
    }
}

fn wave(stored: i32) -> u32 {
    u32::try_from(stored).map_or(0, |wave| wave.saturating_add(1))
}

/// People count from one.
fn counted(wave: usize) -> u32 {
    u32::try_from(wave).map_or(u32::MAX, |wave| wave.saturating_add(1))
}

/// A roll-out as somebody asks for it.
///
/// # Errors
///
/// When its waves are said in two ways.
pub fn rollout_input(body: StartRollout) -> Result<RolloutInput> {
    let RolloutWaves {
        counts,
        percentages,
        environments,
    } = body.waves;
    let waves = match (counts, percentages, environments) {
        (None, None, None) => WaveRule::Promotion,
        (Some(counts), None, None) => WaveRule::Counts(counts),
        (None, Some(parts), None) => WaveRule::Percentages(parts),
        (None, None, Some(groups)) => WaveRule::Environments(groups),
        _ => {
            let words = "give one of counts, percentages and environments";
            return Err(Failure::field("waves", words));
        }
    };
    Ok(RolloutInput {
        version: body.version,
        waves,
        policy: RolloutPolicy {
            max_failures: body.max_failures,
            pause_between_waves: body.pause_between_waves,
        },
        environments: body.environments,
        rehearsal: body.rehearsal,
        skip_unfit: body.skip_unfit,
        plan_only: body.plan_only,
        message: body.message,
    })
}
