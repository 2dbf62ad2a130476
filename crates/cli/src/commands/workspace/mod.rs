//! `nimbus workspace`: a whole workspace as one file, or at a server, and back.

mod backup;
mod restore;

use clap::Subcommand;
use nimbus_core::Result;

use crate::commands::admin::ServerArgs;
use crate::commands::deployment::usage;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use backup::WorkspaceBackupReport;
pub(crate) use restore::WorkspaceRestoreReport;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Write everything of this workspace into one file, local state included
    Backup(backup::WorkspaceBackupArgs),
    /// Make a workspace from such a file
    Restore(restore::WorkspaceRestoreArgs),
    /// Send manifests, templates and programs to a server: what changed, and no state or secret
    Push(PushArgs),
    /// Fetch manifests, templates and programs from a server
    Pull(PullArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct PushArgs {
    /// Deployments whose manifests go; all of the workspace when left out
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) ids: Vec<String>,
    /// Replace manifests that somebody changed at the server since
    #[arg(long)]
    pub(crate) force: bool,
    /// Take away what the tenant has there and this workspace has not
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PullArgs {
    /// Deployments whose manifests come; all of the tenant when left out
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) ids: Vec<String>,
    /// Replace what is another one here
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

impl WorkspaceCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Backup(args) => backup::run(args, context).await,
            Self::Restore(args) => restore::run(args, context).await,
            Self::Push(_) | Self::Pull(_) => {
                Err(usage("no server was named")
                    .with_help("give --server URL, or set NIMBUS_SERVER"))
            }
        }
    }

    /// Whether it has a form for a server.
    pub(crate) fn asks_server(&self) -> bool {
        matches!(self, Self::Push(_) | Self::Pull(_))
    }

    pub(crate) fn server_args(&self) -> Option<&ServerArgs> {
        match self {
            Self::Push(args) => Some(&args.remote),
            Self::Pull(args) => Some(&args.remote),
            Self::Backup(_) | Self::Restore(_) => None,
        }
    }
}
