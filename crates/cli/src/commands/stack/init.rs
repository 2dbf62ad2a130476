//! `nimbus stack init`.

use nimbus_core::Result;
use nimbus_engine_backend::Owner;

use super::{ChosenStack, StackChangeReport};
use crate::commands::program::ProgramLocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StackInitArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The new stack: dev, or organization/project/dev
    #[arg(value_name = "NAME")]
    name: String,

    /// Leave the selection as it is
    #[arg(long)]
    no_select: bool,
}

pub(crate) async fn run(args: StackInitArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let chosen = ChosenStack::open(&args.place, &args.name, context).await?;
    let owner = Owner::current("nimbus stack init");
    chosen.access.stack().create(owner).await?;
    let select = chosen.selection.as_ref().filter(|_| !args.no_select);
    if let Some(selection) = select {
        selection.set(&args.name)?;
    }
    context.output.result(&StackChangeReport {
        stack: chosen.access.name.to_string(),
        change: "made",
        selected: select.is_some(),
        earlier: None,
    })?;
    Ok(CommandOutcome::Done)
}
