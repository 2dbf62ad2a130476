//! Deployments, their environments, and accounts with clouds.

use async_graphql::{ComplexObject, Context, ID, Json, SimpleObject};
use nimbus_control_app::{
    CloudAccount, DeploymentEnvironment, QueuedRun, StoredDeployment, outline,
};
use nimbus_control_wire::EnvironmentVersion;
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{RunNode, UserNode};
use crate::act::{FieldResult, asked};
use crate::loaders::{EnvironmentsKey, RunsKey, UserKey, load};
use crate::page::{items_cost, size};
use crate::refusal::refused;
use crate::scalars::{AnyJson, GraphTime, maybe_time};

/// A deployment.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Deployment", complex)]
pub(crate) struct DeploymentNode {
    #[graphql(skip)]
    tenant: TenantId,
    #[graphql(skip)]
    creator: Uuid,
    id: String,
    organization: String,
    project: String,
    template: String,
    /// Counts changes of the manifest.
    revision: i64,
    created_at: GraphTime,
    updated_at: GraphTime,
    /// When it was taken out of use.
    archived_at: Option<GraphTime>,
    /// How many stacks its manifest switches on.
    stack_count: usize,
    /// Environments that are switched on, in the order of the manifest.
    enabled_environments: Vec<String>,
}

impl DeploymentNode {
    /// A manifest that cannot be read hides nothing else of it.
    pub(crate) fn new(tenant: TenantId, row: StoredDeployment) -> Self {
        let outline = outline(&row.manifest).unwrap_or_default();
        Self {
            tenant,
            creator: row.created_by,
            id: row.id,
            organization: row.organization,
            project: row.project,
            template: row.template,
            revision: row.revision,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
            archived_at: maybe_time(row.archived_at),
            stack_count: outline.stacks,
            enabled_environments: outline.environments,
        }
    }
}

#[ComplexObject]
impl DeploymentNode {
    /// Who made it, if they are of the tenant.
    async fn created_by(&self, ctx: &Context<'_>) -> FieldResult<Option<UserNode>> {
        let found = load(ctx, UserKey(self.tenant, self.creator)).await?;
        Ok(found.map(UserNode::from))
    }

    /// Its newest runs, newest first, 1 to 500. For more than those ask `runs` with `filter: {deployment}`.
    #[graphql(complexity = "items_cost(first, child_complexity)")]
    async fn runs(&self, ctx: &Context<'_>, first: Option<u32>) -> FieldResult<Vec<RunNode>> {
        let trace_id = asked(ctx)?.caller.context.trace_id;
        let first = size(first).map_err(|failure| refused(&failure, trace_id))?;
        let found = load(ctx, RunsKey(self.tenant, self.id.clone(), first)).await?;
        let runs = found.into_iter().flatten();
        Ok(runs.map(|run| RunNode::stored(self.tenant, run)).collect())
    }

    /// Its environments in the order of promotion, with the newest run of each.
    async fn environments(&self, ctx: &Context<'_>) -> FieldResult<Vec<EnvironmentNode>> {
        let found = load(ctx, EnvironmentsKey(self.tenant, self.id.clone())).await?;
        let environments = found.into_iter().flatten();
        Ok(environments
            .map(|one| EnvironmentNode::new(self.tenant, one))
            .collect())
    }
}

/// One environment of a deployment.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Environment")]
pub(crate) struct EnvironmentNode {
    name: String,
    enabled: bool,
    account: String,
    region: String,
    last_run: Option<RunNode>,
    /// Its current version, where `rehearsal` was asked for.
    version: Option<u32>,
    /// Who is changing it now, where `rehearsal` was asked for.
    locked_by: Option<String>,
    /// Where its stacks stand, where `rehearsal` was asked for.
    stacks: Vec<StandingNode>,
}

/// Where a stack of an environment stands.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "StackStanding")]
struct StandingNode {
    name: String,
    /// `deployed`, `not_deployed`, `rolled_back`, `incomplete` or `drifted`.
    state: String,
    resources: u64,
    /// What its last run took.
    seconds: u64,
    version: Option<usize>,
}

impl EnvironmentNode {
    pub(crate) fn new(tenant: TenantId, row: DeploymentEnvironment) -> Self {
        let stacks = row.stacks.into_iter().map(|one| StandingNode {
            name: one.name,
            state: one.state,
            resources: one.resources,
            seconds: one.seconds,
            version: one.version,
        });
        Self {
            name: row.name.to_string(),
            enabled: row.enabled,
            account: row.account,
            region: row.region,
            last_run: row.last_run.map(|run| {
                let queued = QueuedRun {
                    run,
                    position: None,
                };
                RunNode::queued(tenant, queued)
            }),
            version: row.version,
            locked_by: row.locked_by,
            stacks: stacks.collect(),
        }
    }
}

/// A version of an environment, to which a rollback can return.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "EnvironmentVersion")]
pub(crate) struct EnvironmentVersionNode {
    version: u32,
    /// The run that left it, such as `R0003`.
    run: String,
    /// `deploy`, `destroy` or `rollback`.
    kind: String,
    at: GraphTime,
    user: String,
    /// State of each unit: its number in the unit's own history.
    units: AnyJson,
}

impl From<EnvironmentVersion> for EnvironmentVersionNode {
    fn from(version: EnvironmentVersion) -> Self {
        Self {
            version: version.version,
            run: version.run,
            kind: version.kind,
            at: GraphTime(version.at),
            user: version.user,
            units: Json(serde_json::json!(version.units)),
        }
    }
}

/// An account with a cloud. What opens it is never given back.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "CloudAccount")]
pub(crate) struct CloudAccountNode {
    id: ID,
    name: String,
    /// `aws`, `azure` or `gcp`.
    provider: String,
    /// For this environment; for all that have none of their own without one.
    environment: Option<String>,
    created_at: GraphTime,
    updated_at: GraphTime,
}

impl From<CloudAccount> for CloudAccountNode {
    fn from(row: CloudAccount) -> Self {
        Self {
            id: row.id.to_string().into(),
            name: row.name,
            provider: row.provider_type,
            environment: row.environment,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}
