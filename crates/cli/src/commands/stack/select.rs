//! `nimbus stack select`.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::Owner;

use super::{ChosenStack, StackChangeReport};
use crate::commands::program::ProgramLocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StackSelectArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The stack: dev, or organization/project/dev
    #[arg(value_name = "NAME")]
    name: String,

    /// Make it when it does not exist
    #[arg(long, short)]
    create: bool,
}

pub(crate) async fn run(args: StackSelectArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let chosen = ChosenStack::open(&args.place, &args.name, context).await?;
    let access = &chosen.access;
    let exists = access.stack().exists().await?;
    if !exists && !args.create {
        let known = access.backend.stacks().await?;
        let own = known
            .iter()
            .filter(|one| one.project() == access.name.project());
        let own: Vec<&str> = own.map(|one| one.stack()).collect();
        let message = format!("there is no stack {}", access.name);
        let help = match own.is_empty() {
            true => "`nimbus stack init NAME` makes one, --create does it here".to_owned(),
            false => format!("there are {}; --create makes another one", own.join(", ")),
        };
        return Err(Error::new(ErrorCode::STACK_NOT_FOUND, message).with_help(help));
    }
    if !exists {
        let owner = Owner::current("nimbus stack select");
        access.stack().create(owner).await?;
    }
    let Some(selection) = &chosen.selection else {
        let message = "there is no home to remember the selection in";
        return Err(Error::new(ErrorCode::FILE_UNWRITABLE, message)
            .with_help("set HOME or PULUMI_HOME, or name the stack with --stack"));
    };
    selection.set(&args.name)?;
    context.output.result(&StackChangeReport {
        stack: access.name.to_string(),
        change: "selected",
        selected: true,
        earlier: None,
    })?;
    Ok(CommandOutcome::Done)
}
