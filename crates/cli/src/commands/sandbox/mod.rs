//! `nimbus sandbox`: what a sandbox would let a program do.

pub(crate) mod audit;

use clap::Subcommand;
use nimbus_core::Result;

use crate::commands::program::SandboxArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show what a program could see, open, start and use up, without running it
    Audit(audit::SandboxAuditArgs),
}

impl SandboxCommand {
    /// What it was told about the sandbox that it looks at.
    pub(crate) fn sandbox(&self) -> &SandboxArgs {
        match self {
            Self::Audit(args) => &args.sandbox,
        }
    }
}

pub(crate) async fn run(
    command: SandboxCommand,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    match command {
        SandboxCommand::Audit(args) => audit::run(args, context).await,
    }
}
