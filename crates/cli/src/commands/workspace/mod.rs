//! `nimbus workspace`: a whole workspace as one file, and back.

mod backup;
mod restore;

use clap::Subcommand;
use nimbus_core::Result;

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
}

impl WorkspaceCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Backup(args) => backup::run(args, context).await,
            Self::Restore(args) => restore::run(args, context).await,
        }
    }
}
