//! `nimbus program …`: run a Pulumi program and change what it describes.
//!
//! Every verb that changes something goes the same way, in `run`: show a preview, ask, act. The
//! verbs only say what is asked for.

mod args;
mod cancel;
mod confirm;
mod destroy;
mod engine;
mod event_sinks;
mod forecast;
mod import;
mod orders;
mod outputs;
mod preview;
mod processes;
mod refresh;
mod rehearse;
mod run;
mod sandbox;
mod signals;
mod up;

use std::path::Path;

use clap::Subcommand;
use nimbus_core::Result;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use args::{LocationArgs, PolicyArgs, ProgramLocationArgs};
pub(crate) use cancel::{CancelReport, ask_to_stop};
pub(crate) use confirm::{ConfirmAnswer, confirm, confirm_or_details, is_attended};
pub(crate) use engine::EngineArgs;
pub(crate) use forecast::{sentence, spoken};
pub(crate) use orders::OrderArgs;
pub(crate) use outputs::OutputsReport;
pub(crate) use processes::shared_providers;
pub(crate) use rehearse::refuse_rehearsed;
pub(crate) use sandbox::{
    SandboxArgs, for_demo as demo_sandbox, for_tenants as tenant_sandbox,
    from_settings as sandbox_settings,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Show what the program would change
    Preview(preview::ProgramPreviewArgs),
    /// Bring the stack to what the program wants
    Up(up::ProgramUpArgs),
    /// Delete everything that the stack has
    Destroy(destroy::ProgramDestroyArgs),
    /// Record what is really there
    Refresh(refresh::ProgramRefreshArgs),
    /// Take existing objects under management
    Import(import::ProgramImportArgs),
    /// Print the outputs of the stack
    Outputs(outputs::ProgramOutputsArgs),
    /// Ask the operation that is running on the stack to stop
    Cancel(cancel::ProgramCancelArgs),
}

impl ProgramCommand {
    /// Where a trace of it goes, if somebody wants one.
    pub(crate) fn trace_file(&self) -> Option<&Path> {
        match self {
            Self::Preview(args) => args.effort.trace_file(),
            Self::Up(args) => args.effort.trace_file(),
            Self::Destroy(args) => args.effort.trace_file(),
            Self::Refresh(args) => args.effort.trace_file(),
            Self::Import(args) => args.effort.trace_file(),
            // Neither runs an operation.
            Self::Outputs(_) | Self::Cancel(_) => None,
        }
    }

    /// What it was told about its sandbox.
    pub(crate) fn sandbox(&self) -> Option<&SandboxArgs> {
        match self {
            Self::Preview(args) => Some(&args.program.sandbox),
            Self::Up(args) => Some(&args.program.sandbox),
            Self::Destroy(args) => Some(&args.sandbox),
            Self::Refresh(args) => Some(&args.sandbox),
            Self::Import(args) => Some(&args.sandbox),
            // Neither runs a program.
            Self::Outputs(_) | Self::Cancel(_) => None,
        }
    }

    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Preview(args) => preview::run(args, context).await,
            Self::Up(args) => up::run(args, context).await,
            Self::Destroy(args) => destroy::run(args, context).await,
            Self::Refresh(args) => refresh::run(args, context).await,
            Self::Import(args) => import::run(args, context).await,
            Self::Outputs(args) => outputs::run(args, context).await,
            Self::Cancel(args) => cancel::run(args, context).await,
        }
    }
}
