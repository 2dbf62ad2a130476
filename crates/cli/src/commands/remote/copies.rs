//! Commands that need files only, on a copy of what the tenant has; and a new deployment.

use nimbus_control_client::RemoteDeployments;
use nimbus_control_wire::NewDeployment;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::{FILE_NAME, Manifest, configs, naming};
use nimbus_workspace::{ROOT, Workspace};
use tempfile::TempDir;

use super::workspace::fetch;
use super::{deployment_id, manifest_of, named};
use crate::commands::NimbusCommand;
use crate::commands::deployment::init::{InitArgs, InitReport, gathered};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// Runs a command in a copy of the tenant's workspace, which goes with it.
pub(super) async fn run(
    command: NimbusCommand,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let folder = copy(remote, deployment_of(&command)).await?;
    let there = context.in_directory(folder.path().to_owned());
    Box::pin(command.run_here(&there)).await
}

/// The deployment that a command is about.
fn deployment_of(command: &NimbusCommand) -> Option<&str> {
    match command {
        NimbusCommand::Validate(args) => Some(&args.id),
        NimbusCommand::ValidateStack(args) => Some(&args.id),
        NimbusCommand::ValidateDependencies(args) => Some(&args.id),
        NimbusCommand::Graph(args) => Some(&args.id),
        NimbusCommand::ListEnvironments(args) => Some(&args.id),
        _ => None,
    }
}

fn unwritable(error: std::io::Error) -> Error {
    let message = format!("the copy of the workspace cannot be written: {error}");
    Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
}

/// The tenant's files over the shipped ones, with one deployment.
async fn copy(remote: &RemoteDeployments, deployment: Option<&str>) -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("nimbus-")
        .tempdir()
        .map_err(unwritable)?;
    let root = folder.path().join(ROOT);
    fetch(remote).await?.write(&root)?;
    nimbus_library::write_missing(&root).map_err(unwritable)?;
    if let Some(id) = deployment {
        let id = deployment_id(id);
        let text = remote
            .manifest(&id)
            .await
            .map_err(|error| named(error.into(), &id, remote))?;
        let metadata = manifest_of(remote, &id).await?.metadata;
        let name = naming::directory(&metadata.id, &metadata.organization, &metadata.project);
        let place = Workspace::find(&root)?.deployments().join(name);
        std::fs::create_dir_all(&place).map_err(unwritable)?;
        std::fs::write(place.join(FILE_NAME), text).map_err(unwritable)?;
    }
    Ok(folder)
}

/// Makes a deployment from a template of the tenant.
pub(super) async fn init(
    args: InitArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let folder = copy(remote, None).await?;
    let library = Workspace::find(folder.path())?.library()?;
    let (id, answers) = gathered(&args, &library, context)?;
    let accounts = answers.accounts.iter();
    let new = NewDeployment {
        id: id.map(|id| deployment_id(&id)),
        organization: answers.organization.clone(),
        project: answers.project.clone(),
        domain: answers.domain.clone(),
        template: Some(answers.template.clone()),
        description: answers.description.clone(),
        accounts: accounts
            .map(|(name, account)| (name.to_string(), account.clone()))
            .collect(),
        variables: answers.variables.clone(),
        all_stacks: answers.all_stacks,
        manifest: None,
    };
    let made = remote.create(&new).await?;
    let manifest: Manifest = manifest_of(remote, &made.id).await?;
    let report = InitReport::of_server(
        context.program,
        made.id,
        remote.server(),
        answers.template,
        configs(&manifest).len(),
        &manifest,
    );
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
