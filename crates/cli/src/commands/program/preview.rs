//! `nimbus program preview`: what would change, without changing anything.

use std::path::PathBuf;

use nimbus_core::{Result, StackOperation};
use nimbus_engine_operations::OperationOptions;

use super::args::{EffortArgs, LocationArgs, ProgramArgs, RefreshArgs, ShowArgs, TargetArgs};
use super::event_sinks::Complaints;
use super::rehearse::RehearsalArgs;
use super::run::ProgramRequest;
use crate::commands::deployment::run::{PreviewEndingArgs, PreviewFormat, changes_found};
use crate::commands::stack_config::save_assignments;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramPreviewArgs {
    #[command(flatten)]
    location: LocationArgs,

    #[command(flatten)]
    refresh: RefreshArgs,

    #[command(flatten)]
    ending: PreviewEndingArgs,

    /// Write what would be done to this file, so that `up --plan` can be held to it
    #[arg(long, alias = "save", value_name = "FILE")]
    save_plan: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArgs,
    #[command(flatten)]
    pub(super) effort: EffortArgs,
    #[command(flatten)]
    pub(super) program: ProgramArgs,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) async fn run(
    args: ProgramPreviewArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    args.ending.format.check(context)?;
    let mut options = OperationOptions {
        save_plan: args.save_plan.map(|file| context.directory.join(file)),
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
    let report = asked.preview(args.ending.format, context).await?;
    let has_changes = report.has_changes();
    let shown = args.ending.format == PreviewFormat::Text;
    let outcome = asked.ended(context, report.result, shown)?;
    if outcome == CommandOutcome::Done && args.ending.expect_no_changes && has_changes {
        return Err(changes_found());
    }
    Ok(outcome)
}
