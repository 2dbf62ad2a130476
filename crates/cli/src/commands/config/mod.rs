//! `nimbus config …`: the settings of Nimbus itself.

pub(crate) mod show;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting in force
    Show(show::ConfigShowArgs),
}

impl ConfigCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Show(args) => show::run(args, context).await,
        }
    }
}
