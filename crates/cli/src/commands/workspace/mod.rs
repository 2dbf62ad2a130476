//! `nimbus workspace`: a whole workspace as one file, and back.

mod backup;
mod restore;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::Context;
use crate::exit::Outcome;

pub(crate) use backup::WorkspaceBackupReport;
pub(crate) use restore::WorkspaceRestoreReport;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write everything of this workspace into one file, local state included
    Backup(backup::Args),
    /// Make a workspace from such a file
    Restore(restore::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Outcome> {
        match self {
            Self::Backup(args) => backup::run(args, context).await,
            Self::Restore(args) => restore::run(args, context).await,
        }
    }
}
