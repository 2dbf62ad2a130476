//! `nimbus unregister-stack`: a stack leaves the registry, its program stays.

use nimbus_core::Result;

use super::StackReport;
use crate::commands::deployment::workspace;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct UnregisterStackArgs {
    /// Name of the stack
    name: String,
    /// Also when templates or deployments use it
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(
    args: UnregisterStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let name = workspace.registered(&args.name)?;
    let known = workspace.library()?.stacks.remove(&name);
    workspace.unregister(&name, args.force)?;
    if let Some(template) = known {
        let file = workspace.stack_template(&name);
        context
            .output
            .result(&StackReport::new("unregistered", template, &file))?;
    }
    Ok(CommandOutcome::Done)
}
