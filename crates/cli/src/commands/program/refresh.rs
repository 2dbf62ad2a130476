//! `nimbus program refresh`: record what is really there. The program runs only if asked for.

use nimbus_core::{Result, StackOperation};
use nimbus_engine_operations::OperationOptions;

use super::args::{ConsentArgs, EffortArgs, LocationArgs, ShowArgs, TargetArgs};
use super::event_sinks::Complaints;
use super::rehearse::RehearsalArgs;
use super::run::ProgramRequest;
use super::sandbox::SandboxArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramRefreshArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Forget creates of unknown outcome: you looked, and there is nothing
    #[arg(long)]
    clear_pending_creates: bool,

    /// Accept that many resources are gone at once
    #[arg(long)]
    allow_mass_removal: bool,

    /// Run the program first, for the configuration of its providers
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
    args: ProgramRefreshArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut options = OperationOptions {
        clear_pending_creates: args.clear_pending_creates,
        allow_mass_removal: args.allow_mass_removal,
        run_program: args.run_program,
        ..OperationOptions::default()
    };
    args.targets.apply(&mut options);
    args.effort.apply(&mut options);
    // Without the program there is still its code: dynamic providers that the state names.
    options.sandbox = args.sandbox.settings(context)?;
    let asked = ProgramRequest {
        location: args.location.location(context)?,
        operation: StackOperation::Refresh,
        options,
        show: args.show,
        rehearsal: &args.rehearsal,
        complaints: Complaints::default(),
    };
    asked.apply(context, &args.consent).await
}
