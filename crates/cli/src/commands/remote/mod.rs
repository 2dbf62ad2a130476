//! Deployment commands on a server: the same arguments, views, reports and exit codes as on local files.
//!
//! What is shown comes from the events of a run and from what the server tells of a deployment. What needs files only,
//! such as checking a manifest, is done by the local command on a copy of the tenant's workspace. Every command says
//! here whether it has a form for a server; one that has none never runs locally instead.

mod copies;
mod following;
mod inspect;
mod operations;
mod plan_file;
mod workspace;

use nimbus_control_client::RemoteDeployments;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest};

use super::NimbusCommand;
use super::admin::{Connection, ServerArgs};
use super::deployment::run::PreviewEndingArgs;
use crate::context::{CommandContext, NamedServer};
use crate::exit::CommandOutcome;

use operations::ServerPreview;

pub(crate) use inspect::RunsReport;
pub(crate) use workspace::{PullReport, PushReport};

/// What a command has to do with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerReach {
    /// It asks one.
    Asks,
    /// It is about deployments and works on local files only; what to use instead.
    LocalOnly(&'static str),
    /// It is about this machine.
    Apart,
}

const PUSH: &str = "change it locally, then send it with `nimbus workspace push`";
const MACHINE: &str = "leave --server out";

impl NimbusCommand {
    /// Every command, so that a new one has to decide.
    pub(crate) fn reach(&self) -> ServerReach {
        use ServerReach::{Apart, Asks, LocalOnly};
        match self {
            Self::Setup(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Tenant(_)
            | Self::User(_)
            | Self::Group(_)
            | Self::Role(_)
            | Self::Key(_)
            | Self::Audit(_)
            | Self::Catalog(_)
            | Self::Rule(_)
            | Self::Zone(_)
            | Self::Cmdb(_)
            | Self::Approve(_)
            | Self::Notification(_)
            | Self::Webhook(_)
            | Self::Workflow(_)
            | Self::Schedule(_)
            | Self::Worker(_)
            | Self::Resolver(_)
            | Self::Ipam(_)
            | Self::Naming(_)
            | Self::Image(_)
            | Self::Init(_)
            | Self::Deploy(_)
            | Self::Preview(_)
            | Self::Destroy(_)
            | Self::DeployStack(_)
            | Self::DestroyStack(_)
            | Self::Resume(_)
            | Self::Rollback(_)
            | Self::Refresh(_)
            | Self::Status(_)
            | Self::Logs(_)
            | Self::Runs(_)
            | Self::ExportState(_)
            | Self::DiscoverResources(_)
            | Self::Decommission(_)
            | Self::List(_)
            | Self::Validate(_)
            | Self::ValidateStack(_)
            | Self::ValidateDependencies(_)
            | Self::Graph(_)
            | Self::EnableEnvironment(_)
            | Self::DisableEnvironment(_)
            | Self::ListEnvironments(_)
            | Self::Gate(_)
            | Self::ListTemplates(_)
            | Self::ShowTemplate(_)
            | Self::ValidateTemplate(_)
            | Self::ListStacks(_) => Asks,
            Self::Workspace(command) => match command.asks_server() {
                true => Asks,
                false => LocalOnly("`nimbus backup` saves what a server has, on its machine"),
            },
            Self::New(_) => LocalOnly("a server has a workspace for every tenant already"),
            Self::Latencies(_) => LocalOnly("`nimbus logs --server URL` has how long steps took"),
            Self::Locks(_) => LocalOnly("`nimbus run list --server URL` shows what is under way"),
            Self::Unlock(_) => {
                LocalOnly("a server frees an environment itself; `nimbus run cancel` ends a run")
            }
            Self::Why(_) => LocalOnly("`nimbus preview --server URL` says what would change"),
            Self::Rotate(_) => LocalOnly("a server keeps what it made up"),
            Self::Secret(_) => LocalOnly("secrets of a manifest are kept where it is written"),
            Self::Adopt(_)
            | Self::Discover(_)
            | Self::NewStack(_)
            | Self::RegisterStack(_)
            | Self::UpdateStack(_)
            | Self::UnregisterStack(_)
            | Self::RegisterAllStacks(_)
            | Self::CreateTemplate(_)
            | Self::UpdateTemplate(_)
            | Self::Migrate(_)
            | Self::MigrateEnvironmentNames(_)
            | Self::MigrateStackNaming(_)
            | Self::MigrateStackScripts(_)
            | Self::MigrateUndo(_) => LocalOnly(PUSH),
            Self::Doctor(_)
            | Self::Sandbox(_)
            | Self::ValidateAws(_)
            | Self::ValidatePulumi(_)
            | Self::Program(_)
            | Self::Stack(_)
            | Self::State(_)
            | Self::StackConfig(_)
            | Self::Plugin(_)
            | Self::Config(_)
            | Self::Up(_)
            | Self::MigrateDatabase(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Recover(_)
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::InternalDocs(_)
            // They have become what they stand for.
            | Self::Deployment(_)
            | Self::Environment(_)
            | Self::Template(_)
            | Self::Component(_) => Apart,
        }
    }

    /// Whose options name a sign-in, of the deployment commands.
    fn server_args(&self) -> Option<&ServerArgs> {
        Some(match self {
            Self::Init(args) => &args.remote,
            Self::Deploy(args) => &args.run.remote,
            Self::Preview(args) => &args.run.remote,
            Self::Destroy(args) => &args.run.remote,
            Self::DeployStack(args) => &args.deploy.run.remote,
            Self::DestroyStack(args) => &args.destroy.run.remote,
            Self::Resume(args) => &args.remote,
            Self::Rollback(args) => &args.run.remote,
            Self::Refresh(args) => &args.run.remote,
            Self::Status(args) => &args.remote,
            Self::Logs(args) => &args.remote,
            Self::Runs(args) => &args.remote,
            Self::ExportState(args) => &args.run.remote,
            Self::DiscoverResources(args) => &args.remote,
            Self::Decommission(args) => &args.remote,
            Self::List(args) => &args.remote,
            Self::Validate(args) => &args.remote,
            Self::ValidateStack(args) => &args.remote,
            Self::ValidateDependencies(args) => &args.remote,
            Self::Graph(args) => &args.remote,
            Self::EnableEnvironment(args) | Self::DisableEnvironment(args) => &args.remote,
            Self::ListEnvironments(args) => &args.remote,
            Self::Gate(args) => &args.remote,
            Self::ListTemplates(args) => &args.remote,
            Self::ShowTemplate(args) | Self::ValidateTemplate(args) => &args.remote,
            Self::ListStacks(args) | Self::Discover(args) => &args.remote,
            Self::Workspace(command) => return command.server_args(),
            _ => return None,
        })
    }
}

/// Carries a command out on the server that was named, or says that it cannot be. `Err` of the outer result is the
/// command itself, which is to run here.
pub(super) async fn run(
    command: NimbusCommand,
    context: &CommandContext,
) -> std::result::Result<Result<CommandOutcome>, NimbusCommand> {
    let Some(server) = &context.server else {
        return match command.server_args().and_then(ServerArgs::given) {
            Some(option) => Ok(Err(without_server(option))),
            None => Err(command),
        };
    };
    match command.reach() {
        ServerReach::Asks => {}
        ServerReach::LocalOnly(instead) => return Ok(Err(not_remote(server, instead))),
        ServerReach::Apart if server.by_flag => return Ok(Err(not_remote(server, MACHINE))),
        ServerReach::Apart => return Err(command),
    }
    let Some(args) = command.server_args() else {
        return Err(command);
    };
    let remote = match Connection::open(args, context).await {
        Ok(connection) => connection.deployments(),
        Err(error) => return Ok(Err(error)),
    };
    Ok(Box::pin(carry_out(command, remote, context)).await)
}

async fn carry_out(
    command: NimbusCommand,
    remote: RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    match command {
        NimbusCommand::Init(args) => copies::init(args, &remote, context).await,
        NimbusCommand::Deploy(args) => operations::deploy(args, None, &remote, context).await,
        NimbusCommand::DeployStack(args) if args.preview => {
            let asked = ServerPreview {
                parallel: 4,
                components: Some(vec![args.stack]),
                ending: PreviewEndingArgs::default(),
                save: None,
            };
            operations::preview(args.deploy.run, asked, &remote, context).await
        }
        NimbusCommand::DeployStack(args) => {
            let chosen = Some(vec![args.stack]);
            operations::deploy(args.deploy, chosen, &remote, context).await
        }
        NimbusCommand::Preview(args) => {
            operations::refuse_of_preview(&args)?;
            let asked = ServerPreview {
                parallel: args.parallel,
                components: None,
                ending: args.ending,
                save: args.save,
            };
            operations::preview(args.run, asked, &remote, context).await
        }
        NimbusCommand::Destroy(args) => operations::destroy(args, None, &remote, context).await,
        NimbusCommand::DestroyStack(args) => {
            let chosen = Some(vec![args.stack]);
            operations::destroy(args.destroy, chosen, &remote, context).await
        }
        NimbusCommand::Resume(args) => operations::resume(args, &remote, context).await,
        NimbusCommand::Rollback(args) => operations::rollback(args, &remote, context).await,
        NimbusCommand::Refresh(args) => operations::refresh(args, &remote, context).await,
        NimbusCommand::Status(args) => inspect::status(args, &remote, context).await,
        NimbusCommand::Logs(args) => inspect::logs(args, &remote, context).await,
        NimbusCommand::Runs(args) => inspect::runs(args.command, &remote, context).await,
        NimbusCommand::ExportState(args) => inspect::export(args, &remote, context).await,
        NimbusCommand::DiscoverResources(args) => inspect::resources(args, &remote, context).await,
        NimbusCommand::Decommission(args) => inspect::decommission(args, &remote, context).await,
        NimbusCommand::List(_) => inspect::list(&remote, context).await,
        NimbusCommand::EnableEnvironment(args) => {
            inspect::switch(args, true, &remote, context).await
        }
        NimbusCommand::DisableEnvironment(args) => {
            inspect::switch(args, false, &remote, context).await
        }
        NimbusCommand::Gate(args) => inspect::gate(args, &remote, context).await,
        NimbusCommand::Workspace(command) => workspace::run(command, &remote, context).await,
        // What is left needs files only: a copy of them does.
        files => copies::run(files, &remote, context).await,
    }
}

fn not_remote(server: &NamedServer, instead: &str) -> Error {
    let how = if server.by_flag {
        "--server"
    } else {
        "NIMBUS_SERVER"
    };
    let message = format!("{how} names a server, and this command has no form for one");
    Error::new(ErrorCode::NOT_REMOTE, message).with_help(instead.to_owned())
}

fn without_server(option: &str) -> Error {
    let message = format!("{option} means a sign-in at a server, and no server was named");
    Error::new(ErrorCode::USAGE, message).with_help("give --server URL, or set NIMBUS_SERVER")
}

/// An option of a local run that a server does not have.
fn no_option(option: &str, instead: &str) -> Error {
    let message = format!("{option} has no form for a server");
    Error::new(ErrorCode::NOT_REMOTE, message).with_help(instead.to_owned())
}

/// Ids are written in capital letters.
fn deployment_id(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// The manifest of a deployment on the server.
async fn manifest_of(remote: &RemoteDeployments, id: &str) -> Result<Manifest> {
    let text = remote
        .manifest(id)
        .await
        .map_err(|error| named(error.into(), id, remote))?;
    Manifest::read(&Document::parse_bytes(FILE_NAME, text.as_bytes())?)
}

/// The server's "no such thing" says which.
fn named(error: Error, id: &str, remote: &RemoteDeployments) -> Error {
    if error.code() != ErrorCode::RESOURCE_NOT_FOUND {
        return error;
    }
    let message = format!(
        "there is no deployment {id} at {} that you may see",
        remote.server()
    );
    Error::new(ErrorCode::DEPLOYMENT_UNKNOWN, message)
        .with_help("`nimbus list --server URL` shows what there is; --tenant names another tenant")
        .with_source(error)
}
