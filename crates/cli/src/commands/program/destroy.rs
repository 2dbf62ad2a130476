//! `nimbus program destroy`: delete everything that the stack has. The program runs only if
//! asked for.

use nimbus_core::{Result, StackOperation};
use nimbus_engine_operations::OperationOptions;

use super::args::{ConsentArgs, EffortArgs, LocationArgs, RefreshArgs, ShowArgs, TargetArgs};
use super::event_sinks::Complaints;
use super::rehearse::RehearsalArgs;
use super::run::ProgramRequest;
use super::sandbox::SandboxArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramDestroyArgs {
    #[command(flatten)]
    location: LocationArgs,

    #[command(flatten)]
    refresh: RefreshArgs,

    /// Run the program first, for its delete hooks and the configuration of its providers
    #[arg(long)]
    run_program: bool,

    #[command(flatten)]
    targets: TargetArgs,
    #[command(flatten)]
    pub(super) effort: EffortArgs,
    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) async fn run(
    args: ProgramDestroyArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut options = OperationOptions {
        run_program: args.run_program,
        ..OperationOptions::default()
    };
    args.refresh.apply(&mut options);
    args.targets.apply(&mut options);
    args.effort.apply(&mut options);
    // Without the program there is still its code: dynamic providers that the state names.
    options.sandbox = args.sandbox.settings(context)?;
    let asked = ProgramRequest {
        location: args.location.location(context)?,
        operation: StackOperation::Destroy,
        options,
        show: args.show,
        rehearsal: &args.rehearsal,
        complaints: Complaints::default(),
    };
    asked.apply(context, &args.consent).await
}
