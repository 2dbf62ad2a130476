//! `nimbus sandbox`: what a sandbox would let a program do.

pub(crate) mod audit;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show what a program could see, open, start and use up, without running it
    Audit(audit::SandboxAuditArgs),
}

pub(crate) async fn run(
    command: SandboxCommand,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    match command {
        SandboxCommand::Audit(args) => audit::run(args, context).await,
    }
}
