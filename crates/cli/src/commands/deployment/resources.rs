//! `nimbus discover-resources`: what is deployed, over deployments and environments.

use nimbus_core::{ComponentName, EnvironmentName, Result, printable_line};
use nimbus_engine_backend::{BackendError, EnvironmentVariables};
use nimbus_engine_model::Snapshot;
use nimbus_engine_operations::{SandboxSettings, StackAccess, StackLocation, key_services};
use nimbus_local::{DeploymentPlace, Records};
use nimbus_workspace::{Workspace, WorkspaceDeployment};
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, workspace};
use crate::commands::admin::ServerArgs;
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ResourcesArgs {
    /// Deployment; all of the workspace when left out
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: Option<String>,
    /// Only this environment
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Only resources whose type has this text in it, such as s3/bucket
    #[arg(long = "type", value_name = "TEXT")]
    pub(crate) type_: Option<String>,
    /// Those of rehearsals
    #[arg(long)]
    pub(crate) rehearse: bool,
    /// Where state is kept, if it is not the deployment's own directory
    #[arg(long, value_name = "URL", conflicts_with = "rehearse")]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(args: ResourcesArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let deployments = match &args.id {
        Some(id) => vec![workspace.deployment(id)?],
        None => {
            let manifests = workspace.readable_deployments()?;
            let ids = manifests
                .iter()
                .map(|manifest| manifest.metadata.id.as_str());
            ids.map(|id| workspace.deployment(id))
                .collect::<Result<_>>()?
        }
    };
    let sandbox = sandbox_settings(context)?;
    let mut resources = Vec::new();
    for deployment in &deployments {
        let environments = deployment.manifest.environments.keys();
        for environment in environments.filter(|e| args.environment.is_none_or(|only| only == **e))
        {
            for stack in deployment.manifest.stacks.keys() {
                let sandbox = sandbox.as_ref();
                let found = of_unit(&args, deployment, &workspace, sandbox, stack, *environment);
                resources.extend(found.await?);
            }
        }
    }
    let wanted = |found: &FoundResource| {
        args.type_
            .as_ref()
            .is_none_or(|text| found.type_.contains(text.as_str()))
    };
    resources.retain(wanted);
    context.output.result(&FoundResourcesReport { resources })?;
    Ok(CommandOutcome::Done)
}

async fn of_unit(
    args: &ResourcesArgs,
    deployment: &WorkspaceDeployment,
    workspace: &Workspace,
    sandbox: Option<&SandboxSettings>,
    stack: &ComponentName,
    environment: EnvironmentName,
) -> Result<Vec<FoundResource>> {
    let place = DeploymentPlace {
        workspace: workspace.clone(),
        deployment: deployment.clone(),
        records: Records::of(&deployment.directory, args.rehearse).beneath(workspace),
    };
    if args.backend.is_none() && !place.state_folder().is_dir() {
        return Ok(Vec::new());
    }
    let states = place.states(args.backend.as_deref(), sandbox);
    let metadata = &deployment.manifest.metadata;
    let location = StackLocation {
        directory: workspace.stack_source(stack),
        ..states.stack(
            deployment
                .manifest
                .pulumi_stack(stack, environment)
                .to_string(),
        )
    };
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &key_services(sandbox),
    )
    .await?;
    let snapshot = match access.stack().load_unverified().await {
        Ok(state) => state.snapshot.unwrap_or_default(),
        Err(BackendError::NotFound { .. }) => Snapshot::default(),
        Err(error) => return Err(error.into()),
    };
    let custom = snapshot
        .resources
        .iter()
        .filter(|resource| resource.custom && !resource.delete);
    Ok(custom
        .map(|resource| FoundResource {
            deployment: metadata.id.to_string(),
            environment: environment.to_string(),
            stack: stack.to_string(),
            type_: resource.type_.clone(),
            name: resource.urn.name().to_owned(),
            id: resource.id.clone(),
            external: resource.external,
        })
        .filter(|found| !found.type_.starts_with("pulumi:providers:"))
        .collect())
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct FoundResourcesReport {
    pub(crate) resources: Vec<FoundResource>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct FoundResource {
    pub(crate) deployment: String,
    pub(crate) environment: String,
    pub(crate) stack: String,
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) name: String,
    /// Id in the cloud.
    pub(crate) id: Option<String>,
    /// Read, not managed.
    pub(crate) external: bool,
}

impl Report for FoundResourcesReport {
    const SCHEMA: &'static str = "nimbus/discover-resources/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        let mut unit = String::new();
        for found in &self.resources {
            let heading = format!("{} {} {}", found.deployment, found.environment, found.stack);
            if heading != unit {
                text.push_str(&format!(
                    "{}\n",
                    terminal.paint(TextStyle::Heading, &heading)
                ));
                unit = heading;
            }
            let id = printable_line(found.id.as_deref().unwrap_or("-"));
            let (type_, name) = (printable_line(&found.type_), printable_line(&found.name));
            text.push_str(&format!("  {type_:<44} {name:<36} {id}\n"));
        }
        let count = self.resources.len();
        let noun = if count == 1 { "resource" } else { "resources" };
        text.push_str(&format!("{count} {noun}\n"));
        text
    }
}
