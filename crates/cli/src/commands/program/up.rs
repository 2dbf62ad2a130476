//! `nimbus program up`: bring the stack to what the program wants.

use std::path::PathBuf;

use nimbus_core::{Result, StackOperation};
use nimbus_engine_operations::OperationOptions;

use super::args::{
    ConsentArgs, EffortArgs, LocationArgs, ProgramArgs, RefreshArgs, ShowArgs, TargetArgs,
};
use super::event_sinks::Complaints;
use super::rehearse::RehearsalArgs;
use super::run::ProgramRequest;
use crate::commands::stack_config::save_assignments;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramUpArgs {
    #[command(flatten)]
    location: LocationArgs,

    #[command(flatten)]
    refresh: RefreshArgs,

    /// Do nothing but what this file, written by `preview --save-plan`, allows
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArgs,
    #[command(flatten)]
    pub(super) effort: EffortArgs,
    #[command(flatten)]
    pub(super) program: ProgramArgs,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) async fn run(args: ProgramUpArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut options = OperationOptions {
        plan: args.plan.map(|file| context.directory.join(file)),
        ..OperationOptions::default()
    };
    args.refresh.apply(&mut options);
    args.targets.apply(&mut options);
    args.effort.apply(&mut options);
    args.program.apply(&mut options, context)?;
    save_assignments(&args.location, options.sandbox.as_ref(), context)?;
    let asked = ProgramRequest {
        location: args.location.location(context)?,
        operation: StackOperation::Update,
        options,
        show: args.show,
        rehearsal: &args.rehearsal,
        complaints: Complaints::default(),
    };
    asked.apply(context, &args.consent).await
}
