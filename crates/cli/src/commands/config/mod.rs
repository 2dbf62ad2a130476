//! `nimbus config …`: the settings of Nimbus itself, the configuration of deployments, and by the names
//! that Pulumi's users know the configuration of a stack, which is `stack-config` too.

pub(crate) mod show;
pub(crate) mod values;

use clap::Subcommand;
use nimbus_core::Result;

use super::stack_config::StackConfigCommand;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting in force, or the configuration of a deployment
    Show(show::ConfigShowArgs),
    #[command(flatten)]
    Stack(StackConfigCommand),
}

impl ConfigCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Show(args) => show::run(args, context).await,
            Self::Stack(command) => command.run(context).await,
        }
    }
}
