//! `nimbus config …`: the settings of Nimbus itself.

pub(crate) mod show;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::Context;
use crate::exit::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print every setting in force
    Show(show::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Outcome> {
        match self {
            Self::Show(args) => show::run(args, context).await,
        }
    }
}
