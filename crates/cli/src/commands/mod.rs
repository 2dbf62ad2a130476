//! The commands, one file per verb, a folder per noun.
//!
//! To add one: write `commands/<verb>.rs` (or `commands/<noun>/<verb>.rs`) with
//! `pub(crate) struct Args`, deriving `clap::Args`, and
//! `pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome>`; add a variant and
//! an arm below; name it in a group of `args::GROUPS`; run `cargo xtask tidy --bless`.
//!
//! A command prints its result once, through [`Output::result`](crate::output::Output::result),
//! as a `Report` that has a text form and a JSON form. It returns errors and never prints them.

mod completions;
mod config;
mod doctor;
mod explain;
mod internal_docs;
mod man;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::Context;
use crate::exit::Outcome;

pub(crate) use config::show::ShowReport;
pub(crate) use doctor::DoctorReport;
pub(crate) use explain::{ExplainReport, ListReport};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check what this machine has, and how to get what it lacks
    Doctor(doctor::Args),
    /// Look at the settings of Nimbus
    #[command(subcommand)]
    Config(config::Command),
    /// Explain an error code
    Explain(explain::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write the manual pages
    Man(man::Args),
    /// Write the reference documents of this repository
    #[command(hide = true)]
    InternalDocs(internal_docs::Args),
}

/// How much machinery a command needs before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// One thread, no log; settings only if it asks. Works even when the settings are wrong.
    Light,
    /// Settings, log, traces and worker threads.
    Heavy,
}

impl Command {
    pub(crate) fn weight(&self) -> Weight {
        match self {
            Self::Config(_) => Weight::Heavy,
            Self::Doctor(_)
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::InternalDocs(_) => Weight::Light,
        }
    }

    pub(crate) async fn run(self, context: &Context) -> Result<Outcome> {
        match self {
            Self::Doctor(args) => doctor::run(args, context).await,
            Self::Config(command) => command.run(context).await,
            Self::Explain(args) => explain::run(args, context).await,
            Self::Completions(args) => completions::run(args, context).await,
            Self::Man(args) => man::run(args, context).await,
            Self::InternalDocs(args) => internal_docs::run(args, context).await,
        }
    }
}
