//! `nimbus stack rm`.

use std::io;

use nimbus_core::Result;
use nimbus_disk::unwritable;
use nimbus_engine_backend::Owner;

use super::{ChosenStack, StackChangeReport};
use crate::commands::program::{ProgramLocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StackRmArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The stack: dev, or organization/project/dev
    #[arg(value_name = "NAME")]
    name: String,

    /// Also when it still has resources, which nobody manages then
    #[arg(long, short)]
    force: bool,

    /// Keep Pulumi.<stack>.yaml
    #[arg(long)]
    preserve_config: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: StackRmArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let chosen = ChosenStack::open(&args.place, &args.name, context).await?;
    let access = &chosen.access;
    let was_selected = chosen.is_selected()?;
    if !args.yes {
        let left = if args.force {
            "; its resources stay, and nobody manages them"
        } else {
            ""
        };
        let question = format!("Remove {} and its history{left}?", access.name);
        confirm(context, &question).await?;
    }
    let owner = Owner::current("nimbus stack rm");
    let stack = access.stack();
    stack.remove(args.force, owner, &access.keyring).await?;
    let own = access.project.as_ref();
    let own = own.filter(|project| project.name == access.name.project());
    if let Some(project) = own.filter(|_| !args.preserve_config) {
        let file = project.stack_file(access.name.stack());
        match std::fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&file, error)),
        }
    }
    if let Some(selection) = chosen.selection.as_ref().filter(|_| was_selected) {
        selection.clear()?;
    }
    context.output.result(&StackChangeReport {
        stack: access.name.to_string(),
        change: "removed",
        selected: false,
        earlier: None,
    })?;
    Ok(CommandOutcome::Done)
}
