//! What a version would mean for instances, and roll-outs over them.

use async_graphql::{ID, SimpleObject};
use nimbus_control_wire::{
    ComponentImpact, FleetMember, ImpactedInstance, PreviewedInstance, RolloutDetail,
    RolloutMember, RolloutSummary,
};
use serde::{Deserialize, Serialize};

use crate::scalars::GraphTime;

/// A component of a deployment in an environment, and whose it is.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "FleetMember")]
struct MemberNode {
    id: ID,
    tenant_id: ID,
    tenant_name: String,
    deployment_id: String,
    environment: String,
    rehearsal: bool,
    stack: String,
    /// The version that it has.
    version: Option<i32>,
    status: String,
}

impl From<FleetMember> for MemberNode {
    fn from(one: FleetMember) -> Self {
        Self {
            id: one.id.into(),
            tenant_id: one.tenant.into(),
            tenant_name: one.tenant_name,
            deployment_id: one.deployment,
            environment: one.environment,
            rehearsal: one.rehearsal,
            stack: one.stack,
            version: one.version,
            status: one.status,
        }
    }
}

/// What a version would mean for an instance.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ImpactedInstance")]
struct ImpactedNode {
    instance: MemberNode,
    /// Whether it has the version already.
    current: bool,
    /// Whether nothing stands in the way.
    fits: bool,
    /// It cannot be upgraded as it is now.
    standing: Option<String>,
    /// There is no way to the version.
    path: Option<String>,
    /// Parameters that do not fit the version's contract.
    parameters: Vec<String>,
    /// What takes outputs that change or go.
    dependents: Vec<String>,
    /// Rules that would refuse it.
    rules: Vec<String>,
    /// Versions on the way that name an upgrade workflow.
    workflows: Vec<String>,
}

impl From<ImpactedInstance> for ImpactedNode {
    fn from(one: ImpactedInstance) -> Self {
        Self {
            instance: one.instance.into(),
            current: one.current,
            fits: one.fits,
            standing: one.standing,
            path: one.path,
            parameters: one.parameters,
            dependents: one.dependents,
            rules: one.rules,
            workflows: one.workflows,
        }
    }
}

/// What a version would mean for every instance of a component.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ComponentImpact")]
pub(crate) struct ImpactNode {
    component: String,
    to_version: i32,
    /// Instances that can take it.
    fit: u64,
    /// Instances that cannot.
    unfit: u64,
    /// Instances that have it already.
    current: u64,
    instances: Vec<ImpactedNode>,
}

impl From<ComponentImpact> for ImpactNode {
    fn from(impact: ComponentImpact) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        Self {
            component: impact.component,
            to_version: impact.to_version,
            fit: count(impact.fit),
            unfit: count(impact.unfit),
            current: count(impact.current),
            instances: impact.instances.into_iter().map(Into::into).collect(),
        }
    }
}

/// A preview that was asked for, or why it was not.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "PreviewedInstance")]
pub(crate) struct PreviewedNode {
    instance: MemberNode,
    /// The run, in the tenant of the instance.
    run_id: Option<ID>,
    problem: Option<String>,
}

impl From<PreviewedInstance> for PreviewedNode {
    fn from(one: PreviewedInstance) -> Self {
        Self {
            instance: one.instance.into(),
            run_id: one.run.map(Into::into),
            problem: one.problem,
        }
    }
}

/// A version of a component on its way to many instances.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Rollout")]
pub(crate) struct RolloutNode {
    id: ID,
    component: String,
    to_version: i32,
    /// `planned`, `running`, `paused`, `stopped`, `failed` or `succeeded`.
    status: String,
    /// The wave that it is at, counted from 1.
    wave: Option<u32>,
    /// Why it waits: `asked` or `between_waves`.
    paused_because: Option<String>,
    max_failures: u32,
    pause_between_waves: bool,
    message: String,
    requested_by: ID,
    requested_at: GraphTime,
    updated_at: GraphTime,
    ended_at: Option<GraphTime>,
    /// How many waves there are. Only where one roll-out is asked for.
    waves: Option<u32>,
    /// By wave. Only where one roll-out is asked for.
    instances: Option<Vec<RolloutMemberNode>>,
}

impl From<RolloutSummary> for RolloutNode {
    fn from(row: RolloutSummary) -> Self {
        Self {
            id: row.id.into(),
            component: row.component,
            to_version: row.to_version,
            status: row.status,
            wave: row.wave,
            paused_because: row.paused_because,
            max_failures: row.max_failures,
            pause_between_waves: row.pause_between_waves,
            message: row.message,
            requested_by: row.requested_by.into(),
            requested_at: GraphTime(row.requested_at),
            updated_at: GraphTime(row.updated_at),
            ended_at: row.ended_at.map(GraphTime),
            waves: None,
            instances: None,
        }
    }
}

impl From<RolloutDetail> for RolloutNode {
    fn from(whole: RolloutDetail) -> Self {
        let instances = whole.instances.into_iter();
        Self {
            waves: Some(whole.waves),
            instances: Some(instances.map(RolloutMemberNode::from).collect()),
            ..Self::from(whole.rollout)
        }
    }
}

/// An instance of a roll-out.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "RolloutMember")]
struct RolloutMemberNode {
    /// Counted from 1.
    wave: u32,
    instance_id: ID,
    tenant_id: ID,
    tenant_name: String,
    deployment_id: String,
    environment: String,
    rehearsal: bool,
    stack: String,
    from_version: i32,
    /// `waiting`, `starting`, `running`, `succeeded`, `failed` or `skipped`.
    status: String,
    /// The run, in the tenant of the instance.
    run_id: Option<ID>,
    problem: Option<String>,
}

impl From<RolloutMember> for RolloutMemberNode {
    fn from(one: RolloutMember) -> Self {
        Self {
            wave: one.wave,
            instance_id: one.instance.into(),
            tenant_id: one.tenant.into(),
            tenant_name: one.tenant_name,
            deployment_id: one.deployment,
            environment: one.environment,
            rehearsal: one.rehearsal,
            stack: one.stack,
            from_version: one.from_version,
            status: one.status,
            run_id: one.run.map(Into::into),
            problem: one.problem,
        }
    }
}
