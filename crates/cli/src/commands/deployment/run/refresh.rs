//! `nimbus refresh`: look at what an environment really has, and record it.

use nimbus_core::Result;
use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs::RunChoices;

use super::{ChangeArgs, LocalRunner};
use crate::commands::deployment::local::{RunArgs, find_place};
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct RefreshDeploymentArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Believe it when much of what is recorded is gone
    #[arg(long)]
    pub(crate) allow_mass_removal: bool,
}

impl RefreshDeploymentArgs {
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.change.trace.file()
    }
}

pub(crate) async fn refresh(
    args: RefreshDeploymentArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let choices = RunChoices {
        parallel: args.change.parallel,
        allow_mass_removal: args.allow_mass_removal,
        // One stack that cannot be looked at says nothing about the others.
        on_failure: OnFailure::Continue,
        message: args.change.message.clone(),
        ..run.how.choices(context)?
    };
    let environment = run.environment;
    let runner = LocalRunner::open(place, environment, choices.clone(), None, context)?;
    if !args.change.yes && !run.how.rehearse {
        let question = format!("Record what {} really has in {environment}?", run.id);
        confirm(context, &question).await?;
    }
    let request = runner.request(RunAction::Refresh, choices);
    let session = runner.session(request, args.change.wait, context).await?;
    runner.rehearsal_note(context);
    let planned = session.plan().await?;
    runner
        .carry_out(planned, run.how.engine.is_official(), context)
        .await
}
