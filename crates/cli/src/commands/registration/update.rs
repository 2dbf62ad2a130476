//! `nimbus update-stack`: another description, other defaults or dependencies.

use nimbus_core::Result;

use super::{StackMetadataArgs, StackReport};
use crate::commands::deployment::{usage, workspace};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct UpdateStackArgs {
    /// Name of the stack
    name: String,
    #[command(flatten)]
    stack: StackMetadataArgs,
}

pub(crate) async fn run(args: UpdateStackArgs, context: &CommandContext) -> Result<CommandOutcome> {
    if args.stack.says_nothing() {
        return Err(usage("nothing was said to change")
            .with_help("give --description, --dependencies, --priority or --defaults-file"));
    }
    let workspace = workspace(context)?;
    let change = args.stack.registration(&context.directory)?;
    let name = workspace.registered(&args.name)?;
    let template = workspace.update_registration(&name, &change)?;
    let file = workspace.stack_template(&name);
    let report = StackReport::new("updated", template, &file);
    context.output.result(&report)?;
    if change.dependencies.is_some() {
        context.output.note("Deployments keep their copy of the dependencies; `nimbus validate` shows where they differ");
    }
    Ok(CommandOutcome::Done)
}
