//! Deployments, their environments, and accounts with clouds.

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{
    CloudAccount, DeploymentFilter, Failure, StatePlace, StoredDeployment, operation,
};
use nimbus_control_wire::EnvironmentVersion;
use nimbus_core::EnvironmentName;
use serde_json::json;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{CloudAccountNode, DeploymentNode, EnvironmentNode, EnvironmentVersionNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page};
use crate::scalars::AnyJson;

/// Where states are. What is no name of an environment has none.
fn state_place(
    deployment: String,
    environment: String,
    rehearsal: bool,
) -> Result<StatePlace, Failure> {
    environment
        .parse::<EnvironmentName>()
        .map_err(|_| Failure::field("environment", "this is not the name of an environment"))?;
    Ok(StatePlace {
        deployment,
        environment,
        rehearsal,
    })
}

#[derive(Default)]
pub(crate) struct DeploymentQueries;

/// Which deployments.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "DeploymentFilter")]
struct DeploymentChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    organization: Option<String>,
    project: Option<String>,
    template: Option<String>,
    /// Also those that were taken out of use.
    #[graphql(default)]
    archived: bool,
}

#[Object]
impl DeploymentQueries {
    /// A deployment.
    async fn deployment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
    ) -> FieldResult<Option<DeploymentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::GET_DEPLOYMENT;
            let found = app.deployment_get(call, operation, tenant, &id).await?;
            Ok(Some(DeploymentNode::new(tenant, found)))
        })
        .await
    }

    /// Deployments by id.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn deployments(
        &self,
        ctx: &Context<'_>,
        filter: Option<DeploymentChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<DeploymentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = DeploymentFilter {
                organization: given.organization,
                project: given.project,
                template: given.template,
                archived: given.archived,
            };
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.deployment_list(call, tenant, filter, page).await?;
            let place = |row: &StoredDeployment| row.id.clone();
            Ok(connection(rows, limit, place, |row| {
                DeploymentNode::new(tenant, row)
            }))
        })
        .await
    }

    /// A deployment's manifest as it is written, in YAML.
    async fn deployment_manifest(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
    ) -> FieldResult<Option<String>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::GET_MANIFEST;
            let found = app.deployment_get(call, operation, tenant, &id).await?;
            Ok(Some(found.manifest))
        })
        .await
    }

    /// What is deployed in each environment: of the simulated cloud, or of the real one.
    #[graphql(complexity = "20 + child_complexity")]
    async fn deployment_status(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        #[graphql(default)] rehearsal: bool,
    ) -> FieldResult<Option<Vec<EnvironmentNode>>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::DEPLOYMENT_STATUS;
            let found = app
                .deployment_environments(call, operation, tenant, &id, Some(rehearsal))
                .await?;
            let nodes = found.into_iter();
            Ok(Some(
                nodes.map(|one| EnvironmentNode::new(tenant, one)).collect(),
            ))
        })
        .await
    }

    /// The resources of each unit of an environment.
    #[graphql(complexity = "100")]
    async fn deployment_state(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        environment: String,
        #[graphql(default)] rehearsal: bool,
    ) -> FieldResult<Option<AnyJson>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let place = state_place(id, environment, rehearsal)?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.deployment_state(call, tenant, place).await?;
            Ok(Some(Json(json!(found))))
        })
        .await
    }

    /// The outputs of each unit of an environment, without secrets.
    #[graphql(complexity = "100")]
    async fn deployment_outputs(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        environment: String,
        #[graphql(default)] rehearsal: bool,
    ) -> FieldResult<Option<AnyJson>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let place = state_place(id, environment, rehearsal)?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.deployment_outputs(call, tenant, place).await?;
            Ok(Some(Json(json!(found))))
        })
        .await
    }

    /// Versions of an environment, oldest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn environment_versions(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        environment: String,
        #[graphql(default)] rehearsal: bool,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<EnvironmentVersionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<u32>(pagination)?;
            let limit = page.limit;
            let place = state_place(id, environment, rehearsal)?;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.environment_versions(call, tenant, place, page).await?;
            let at = |row: &EnvironmentVersion| row.version.to_string();
            Ok(connection(rows, limit, at, EnvironmentVersionNode::from))
        })
        .await
    }

    /// Accounts with clouds by name, without what opens them.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn cloud_accounts(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<CloudAccountNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<String>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app
                .cloud_account_list(call, tenant, page.after, limit)
                .await?;
            let place = |row: &CloudAccount| row.name.clone();
            Ok(connection(rows, limit, place, CloudAccountNode::from))
        })
        .await
    }
}
