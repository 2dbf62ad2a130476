//! Changes of deployments and their environments, runs that are asked for, and accounts with clouds.

use std::collections::BTreeMap;

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::operation::{self, Operation};
use nimbus_control_app::{CloudAccountInput, DeploymentInput, RunInput, RunSignal};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::act::{FieldResult, act, asked, repeat_key};
use crate::nodes::{CloudAccountNode, DeploymentNode, RunNode};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct DeploymentChanges;

/// What a deployment is made from: a template and values for it, or a manifest as it is.
#[derive(InputObject)]
#[graphql(name = "CreateDeploymentInput")]
struct DeploymentDraftArgs {
    /// `D` and up to 15 capital letters and digits; made from the time when absent.
    id: Option<String>,
    #[graphql(default)]
    organization: String,
    #[graphql(default)]
    project: String,
    #[graphql(default)]
    domain: String,
    /// `default` when absent.
    template: Option<String>,
    description: Option<String>,
    /// Account of each environment, as an object of texts.
    accounts: Option<Json<BTreeMap<String, String>>>,
    /// Variables of the template, as an object of texts.
    variables: Option<Json<BTreeMap<String, String>>>,
    /// Also stacks that the template leaves off.
    #[graphql(default)]
    all_stacks: bool,
    /// A whole manifest, in YAML, which says all of this itself; give nothing else with it.
    manifest: Option<String>,
}

impl From<DeploymentDraftArgs> for DeploymentInput {
    fn from(given: DeploymentDraftArgs) -> Self {
        Self {
            id: given.id,
            organization: given.organization,
            project: given.project,
            domain: given.domain,
            template: given.template,
            description: given.description,
            accounts: given.accounts.map(|Json(map)| map).unwrap_or_default(),
            variables: given.variables.map(|Json(map)| map).unwrap_or_default(),
            all_stacks: given.all_stacks,
            manifest: given.manifest,
        }
    }
}

/// What a run is asked to do.
#[derive(InputObject)]
#[graphql(name = "StartRunInput")]
struct StartRunArgs {
    environment: String,
    /// On a simulated cloud: nothing real is touched.
    #[graphql(default)]
    rehearsal: bool,
    /// Also stacks that did not change.
    #[graphql(default)]
    force: bool,
    /// So many stacks at once, 1 to 32; 4 when absent.
    parallel: Option<u32>,
    /// Only these; all of them when absent.
    stacks: Option<Vec<String>>,
    /// `automatic`, `rollback`, `hold` or `continue`.
    on_failure: Option<String>,
    /// Skip checking the types of TypeScript programs.
    #[graphql(default)]
    transpile_only: bool,
    /// The version that a rollback returns to; the one before when absent.
    to_version: Option<u32>,
    /// Of a rollback: creates of unknown outcome were looked for in the cloud, in vain.
    #[graphql(default)]
    forget_creates: bool,
    /// Of a refresh: believe it when much of what is recorded is gone.
    #[graphql(default)]
    allow_mass_removal: bool,
    /// The id of a preview that succeeded: the deploy does what it showed, or nothing if anything moved since.
    plan: Option<ID>,
    /// Deploy although the environment before is not ready, for this reason. It is recorded.
    skip_gate: Option<String>,
    /// Why, in your words.
    message: Option<String>,
    /// Of a rehearsal: what the simulated cloud does wrong, such as `on: create, type: aws:s3/bucket:Bucket, do: fail`.
    #[graphql(default)]
    orders: Vec<String>,
    /// Of a rehearsal: milliseconds that every call of the simulated cloud takes.
    latency_ms: Option<u32>,
}

impl From<StartRunArgs> for RunInput {
    fn from(given: StartRunArgs) -> Self {
        let parallel = given.parallel;
        Self {
            environment: given.environment,
            rehearsal: given.rehearsal,
            force: given.force,
            parallel: parallel.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
            components: given.stacks,
            on_failure: given.on_failure,
            transpile_only: given.transpile_only,
            to_version: given.to_version,
            forget_creates: given.forget_creates,
            allow_mass_removal: given.allow_mass_removal,
            plan: given.plan.map(|plan| plan.0),
            skip_gate: given.skip_gate,
            message: given.message,
            orders: given.orders,
            latency_ms: given.latency_ms,
        }
    }
}

/// What opens an account.
#[derive(InputObject)]
#[graphql(name = "CloudAccountInput")]
struct CloudAccountArgs {
    /// `aws`, `azure` or `gcp`.
    provider: String,
    /// For this environment; for all that have none of their own without one.
    environment: Option<String>,
    /// Variables of the cloud's providers, such as `AWS_ACCESS_KEY_ID`, as an object of texts.
    #[graphql(secret)]
    credentials: Json<BTreeMap<String, String>>,
}

async fn start(
    ctx: &Context<'_>,
    operation: Operation,
    tenant_id: Option<ID>,
    id: String,
    input: StartRunArgs,
    key: Option<String>,
) -> FieldResult<RunNode> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let key = repeat_key(ctx, key)?;
        let (app, call) = (asked.app(), asked.call()?);
        let queued = app.run_start(call, operation, tenant, &id, input.into(), key);
        Ok(RunNode::queued(tenant, queued.await?))
    })
    .await
}

async fn signal(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    id: ID,
    signal: RunSignal,
) -> FieldResult<RunNode> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let run: Uuid = thing(&id)?;
        let (app, call) = (asked.app(), asked.call()?);
        let changed = app.run_signal(call, tenant, run, signal).await?;
        Ok(RunNode::queued(tenant, changed))
    })
    .await
}

async fn switch(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    id: String,
    environment: String,
    enabled: bool,
) -> FieldResult<DeploymentNode> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let written = app.environment_switch(call, tenant, &id, &environment, enabled);
        Ok(DeploymentNode::new(tenant, written.await?))
    })
    .await
}

#[Object]
impl DeploymentChanges {
    /// Make a deployment from a template or a manifest.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_deployment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: DeploymentDraftArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<DeploymentNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let key = repeat_key(ctx, idempotency_key)?;
            let (app, call) = (asked.app(), asked.call()?);
            let made = app
                .deployment_create(call, tenant, input.into(), key)
                .await?;
            Ok(DeploymentNode::new(tenant, made))
        })
        .await
    }

    /// Replace a deployment's manifest, if it is still the one of `revision`.
    async fn update_deployment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        manifest: String,
        revision: Option<i64>,
    ) -> FieldResult<DeploymentNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let written = app.deployment_write(call, tenant, &id, revision, manifest);
            Ok(DeploymentNode::new(tenant, written.await?))
        })
        .await
    }

    /// Take a deployment out of use.
    async fn delete_deployment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            asked
                .app()
                .deployment_delete(asked.call()?, tenant, &id)
                .await?;
            Ok(true)
        })
        .await
    }

    /// Switch an environment on.
    async fn enable_environment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        environment: String,
    ) -> FieldResult<DeploymentNode> {
        switch(ctx, tenant_id, id, environment, true).await
    }

    /// Switch an environment off.
    async fn disable_environment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        environment: String,
    ) -> FieldResult<DeploymentNode> {
        switch(ctx, tenant_id, id, environment, false).await
    }

    /// Queue a run that deploys an environment.
    #[graphql(complexity = "20 + child_complexity")]
    async fn deploy(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: StartRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        start(
            ctx,
            operation::DEPLOY,
            tenant_id,
            id,
            input,
            idempotency_key,
        )
        .await
    }

    /// Queue a run that destroys an environment.
    #[graphql(complexity = "20 + child_complexity")]
    async fn destroy(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: StartRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        start(
            ctx,
            operation::DESTROY,
            tenant_id,
            id,
            input,
            idempotency_key,
        )
        .await
    }

    /// Queue a run that shows what a deploy would do.
    #[graphql(complexity = "20 + child_complexity")]
    async fn preview(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: StartRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        start(
            ctx,
            operation::PREVIEW,
            tenant_id,
            id,
            input,
            idempotency_key,
        )
        .await
    }

    /// Queue a run that returns to an earlier version.
    #[graphql(complexity = "20 + child_complexity")]
    async fn rollback(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: StartRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        start(
            ctx,
            operation::ROLL_BACK,
            tenant_id,
            id,
            input,
            idempotency_key,
        )
        .await
    }

    /// Queue a run that records what an environment really has.
    #[graphql(complexity = "20 + child_complexity")]
    async fn refresh(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: StartRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        start(
            ctx,
            operation::REFRESH_DEPLOYMENT,
            tenant_id,
            id,
            input,
            idempotency_key,
        )
        .await
    }

    /// Stop a run between two steps.
    async fn cancel_run(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<RunNode> {
        signal(ctx, tenant_id, id, RunSignal::Cancel).await
    }

    /// Let a run wait.
    async fn pause_run(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<RunNode> {
        signal(ctx, tenant_id, id, RunSignal::Pause).await
    }

    /// Go on with a run; without creates of unknown outcome, when they were looked for in the cloud in vain.
    async fn resume_run(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        #[graphql(default)] forget_creates: bool,
    ) -> FieldResult<RunNode> {
        let resume = RunSignal::Resume { forget_creates };
        signal(ctx, tenant_id, id, resume).await
    }

    /// Store a cloud account with its credentials.
    async fn put_cloud_account(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: CloudAccountArgs,
    ) -> FieldResult<CloudAccountNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let Json(credentials) = input.credentials;
            let credentials = credentials.into_iter();
            let account = CloudAccountInput {
                provider: input.provider,
                environment: input.environment,
                credentials: credentials
                    .map(|(name, value)| (name, Zeroizing::new(value)))
                    .collect(),
            };
            let (app, call) = (asked.app(), asked.call()?);
            let stored = app.cloud_account_put(call, tenant, &name, account).await?;
            Ok(stored.into())
        })
        .await
    }

    /// Delete a cloud account.
    async fn delete_cloud_account(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.cloud_account_delete(call, tenant, &name).await?;
            Ok(true)
        })
        .await
    }
}
