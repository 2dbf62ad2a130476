//! `nimbus state …`: look at, move and mend what is recorded of a stack.
//!
//! Looking needs no lease and no passphrase. What changes the state shows a diff first and asks.

mod diff;
mod edit;
mod export;
mod history;
mod import;
mod ls;
mod moving;
mod repair;
mod show;
mod unlock;
mod versions;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use diff::DiffReport;
pub(crate) use edit::StateEditReport;
pub(crate) use history::HistoryReport;
pub(crate) use import::ImportReport;
pub(crate) use ls::{StateResourcesReport, StateStacksReport};
pub(crate) use moving::StateMoveReport;
pub(crate) use repair::RepairReport;
pub(crate) use show::ResourceReport;
pub(crate) use unlock::UnlockReport;

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// List the resources of a stack, or the stacks of a backend
    Ls(ls::StateLsArgs),
    /// Show what is recorded of one resource
    Show(show::StateShowArgs),
    /// Write the state in the official export form
    Export(export::StateExportArgs),
    /// Replace the state by an exported one
    Import(import::StateImportArgs),
    /// List the operations on a stack
    History(history::StateHistoryArgs),
    /// Compare two versions of the state
    Diff(diff::StateDiffArgs),
    /// Forget a resource; what it stands for stays in the cloud
    Delete(edit::StateDeleteArgs),
    /// Give a resource another name, without replacing it
    Rename(edit::StateRenameArgs),
    /// Hand resources to another stack, with their children
    Move(moving::StateMoveArgs),
    /// Let a protected resource be deleted again
    Unprotect(edit::StateUnprotectArgs),
    /// Mend a state that contradicts itself, on a copy first
    Repair(repair::StateRepairArgs),
    /// End the lease of a writer that is gone
    Unlock(unlock::StateUnlockArgs),
}

impl StateCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Ls(args) => ls::run(args, context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Export(args) => export::run(args, context).await,
            Self::Import(args) => import::run(args, context).await,
            Self::History(args) => history::run(args, context).await,
            Self::Diff(args) => diff::run(args, context).await,
            Self::Delete(args) => edit::delete(args, context).await,
            Self::Rename(args) => edit::rename(args, context).await,
            Self::Move(args) => moving::run(args, context).await,
            Self::Unprotect(args) => edit::unprotected(args, context).await,
            Self::Repair(args) => repair::run(args, context).await,
            Self::Unlock(args) => unlock::run(args, context).await,
        }
    }
}
