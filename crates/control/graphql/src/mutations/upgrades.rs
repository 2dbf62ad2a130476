//! What is done with components that are deployed: one by one, and in waves.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{
    FleetFilter, InstanceInput, RolloutSignal, describe_preview, describe_rollout_detail,
    operation, rollout_input,
};
use nimbus_control_auth::operation::Operation;
use nimbus_control_wire::{RolloutWaves, StartRollout};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{PreviewedNode, RolloutNode, RunNode};
use crate::page::whole_cost;
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct UpgradeChanges;

/// Which version an instance is upgraded to, or previewed with.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "InstanceVersionInput")]
struct InstanceVersionArgs {
    /// An upgrade goes to the newest that can be used when absent; a preview is of the version that it has.
    version: Option<i32>,
    /// Why, for whoever looks at the run.
    message: Option<String>,
}

/// Which instances are previewed, and with what.
#[derive(Debug, InputObject)]
#[graphql(name = "PreviewComponentVersionInput")]
struct VersionPreviewArgs {
    version: i32,
    /// Only of these environments; all of them when absent.
    environments: Option<Vec<String>>,
    /// On simulated clouds instead of real ones.
    #[graphql(default)]
    rehearsal: bool,
}

/// How instances are divided. One of these, or none of them for a wave for each place in the order of environments.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "RolloutWavesInput")]
struct WavesArgs {
    /// So many in each wave; whatever is left is one more.
    counts: Option<Vec<u32>>,
    /// So much of all of them has been started with each wave, in percent; whatever is left is one more.
    percentages: Option<Vec<u8>>,
    /// These environments in each wave; whatever is left is one more.
    environments: Option<Vec<Vec<String>>>,
}

/// A roll-out to be made.
#[derive(Debug, InputObject)]
#[graphql(name = "StartRolloutInput")]
struct StartRolloutArgs {
    /// The newest that can be used when absent.
    version: Option<i32>,
    waves: Option<WavesArgs>,
    /// So many instances may fail before nothing further starts.
    #[graphql(default)]
    max_failures: u32,
    /// Wait for somebody before each wave but the first.
    #[graphql(default)]
    pause_between_waves: bool,
    /// Only instances of these environments; all of them when absent.
    environments: Option<Vec<String>>,
    /// Instances on simulated clouds instead of real ones.
    #[graphql(default)]
    rehearsal: bool,
    /// Leave out instances that cannot take the version, instead of refusing.
    #[graphql(default)]
    skip_unfit: bool,
    /// Only make the plan; it begins when somebody lets it go on.
    #[graphql(default)]
    plan_only: bool,
    /// Why, for whoever looks at it.
    message: Option<String>,
}

impl From<StartRolloutArgs> for StartRollout {
    fn from(given: StartRolloutArgs) -> Self {
        let waves = given.waves.unwrap_or_default();
        Self {
            version: given.version,
            waves: RolloutWaves {
                counts: waves.counts,
                percentages: waves.percentages,
                environments: waves.environments,
            },
            max_failures: given.max_failures,
            pause_between_waves: given.pause_between_waves,
            environments: given.environments,
            rehearsal: given.rehearsal,
            skip_unfit: given.skip_unfit,
            plan_only: given.plan_only,
            message: given.message,
        }
    }
}

async fn run_of(
    ctx: &Context<'_>,
    operation: Operation,
    tenant_id: Option<ID>,
    id: ID,
    input: InstanceInput,
    key: Option<String>,
) -> FieldResult<RunNode> {
    let asked = asked(ctx)?;
    act_once(ctx, key, false, async move {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let queued = app.instance_act(call, operation, tenant, thing(&id)?, input);
        Ok(RunNode::queued(tenant, queued.await?))
    })
    .await
}

async fn signal(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    id: ID,
    signal: RolloutSignal,
) -> FieldResult<RolloutNode> {
    let asked = asked(ctx)?;
    act(ctx, async move {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let changed = app.rollout_signal(call, tenant, thing(&id)?, signal);
        Ok(describe_rollout_detail(changed.await?)?.into())
    })
    .await
}

#[Object]
impl UpgradeChanges {
    /// Deploy a component that is deployed once more, with the version that it has.
    #[graphql(complexity = "20 + child_complexity")]
    async fn deploy_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        message: Option<String>,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        let input = InstanceInput {
            version: None,
            message,
        };
        let operation = operation::DEPLOY_INSTANCE;
        run_of(ctx, operation, tenant_id, id, input, idempotency_key).await
    }

    /// Destroy a component that is deployed. One that is destroyed already is refused.
    #[graphql(complexity = "20 + child_complexity")]
    async fn destroy_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        message: Option<String>,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        let input = InstanceInput {
            version: None,
            message,
        };
        let operation = operation::DESTROY_INSTANCE;
        run_of(ctx, operation, tenant_id, id, input, idempotency_key).await
    }

    /// Preview a component that is deployed, with another version if one is given. Nothing is recorded as deployed.
    #[graphql(complexity = "20 + child_complexity")]
    async fn preview_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        input: InstanceVersionArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        let input = InstanceInput {
            version: input.version,
            message: input.message,
        };
        let operation = operation::PREVIEW_INSTANCE;
        run_of(ctx, operation, tenant_id, id, input, idempotency_key).await
    }

    /// Upgrade a component that is deployed. When the run comes to nothing it has the version of before.
    #[graphql(complexity = "20 + child_complexity")]
    async fn upgrade_component(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        input: InstanceVersionArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        let input = InstanceInput {
            version: input.version,
            message: input.message,
        };
        let operation = operation::UPGRADE_INSTANCE;
        run_of(ctx, operation, tenant_id, id, input, idempotency_key).await
    }

    /// Preview every instance with a version that it does not have, in a tenant and all below it.
    #[graphql(complexity = "100 + whole_cost(child_complexity)")]
    async fn preview_component_version(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: VersionPreviewArgs,
    ) -> FieldResult<Vec<PreviewedNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let filter = FleetFilter {
                environments: input.environments,
                rehearsal: Some(input.rehearsal),
            };
            let (app, call) = (asked.app(), asked.call()?);
            let previews = app.fleet_previews(call, tenant, &name, input.version, filter);
            let previews = previews.await?.into_iter().map(describe_preview);
            Ok(previews.map(PreviewedNode::from).collect())
        })
        .await
    }

    /// Roll a version out over the instances of a component, in a tenant and all below it, in waves.
    #[graphql(complexity = "100 + whole_cost(child_complexity)")]
    async fn start_rollout(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: StartRolloutArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RolloutNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let input = rollout_input(input.into())?;
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.rollout_start(call, tenant, &name, input).await?;
            Ok(describe_rollout_detail(made)?.into())
        })
        .await
    }

    /// Let nothing further of a roll-out start. What was started goes on to its own end.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn pause_rollout(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<RolloutNode> {
        signal(ctx, tenant_id, id, RolloutSignal::Pause).await
    }

    /// Go on with a roll-out that waits, or begin one that is planned.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn resume_rollout(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<RolloutNode> {
        signal(ctx, tenant_id, id, RolloutSignal::Resume).await
    }

    /// Stop a roll-out for good. What was started goes on to its own end.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn stop_rollout(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<RolloutNode> {
        signal(ctx, tenant_id, id, RolloutSignal::Stop).await
    }
}
