//! `nimbus sandbox`: what a sandbox would let a program do.

pub(crate) mod audit;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::Context;
use crate::exit::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a program could see, open, start and use up, without running it
    Audit(audit::Args),
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<Outcome> {
    match command {
        Command::Audit(args) => audit::run(args, context).await,
    }
}
