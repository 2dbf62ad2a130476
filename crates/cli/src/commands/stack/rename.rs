//! `nimbus stack rename`.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::unwritable;
use nimbus_engine_backend::{BackendError, Owner, StackRef};

use super::{ChosenStack, StackChangeReport};
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StackRenameArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The new name: dev, or organization/project/dev
    #[arg(value_name = "NEW-NAME")]
    new: String,
}

pub(crate) async fn run(args: StackRenameArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let chosen = ChosenStack::at(location, context).await?;
    let access = &chosen.access;
    let was_selected = chosen.is_selected()?;
    let project = access.project.as_ref().map_or("", |project| &project.name);
    let new = StackRef::parse(&args.new, project).map_err(BackendError::from)?;
    let files = configuration(&chosen, &new)?;
    let owner = Owner::current("nimbus stack rename");
    let stack = access.stack();
    stack.rename(&new, owner, &access.keyring).await?;
    if let Some((old, new)) = files {
        nimbus_disk::rename(&old, &new).map_err(|error| unwritable(&new, error))?;
    }
    if let Some(selection) = chosen.selection.as_ref().filter(|_| was_selected) {
        selection.set(&args.new)?;
    }
    context.output.result(&StackChangeReport {
        stack: new.to_string(),
        change: "renamed",
        selected: was_selected,
        earlier: Some(access.name.to_string()),
    })?;
    Ok(CommandOutcome::Done)
}

/// The configuration file, under its old and its new name. One that is there already is not
/// overwritten, and found before anything is renamed.
fn configuration(
    chosen: &ChosenStack,
    new: &StackRef,
) -> Result<Option<(std::path::PathBuf, std::path::PathBuf)>> {
    let access = &chosen.access;
    let Some(project) = &access.project else {
        return Ok(None);
    };
    let names = [access.name.project(), new.project()];
    if names.iter().any(|name| *name != project.name) {
        return Ok(None);
    }
    let (old, new) = (
        project.stack_file(access.name.stack()),
        project.stack_file(new.stack()),
    );
    if !old.exists() || old == new {
        return Ok(None);
    }
    if new.exists() {
        let message = format!("{} exists already", new.display());
        return Err(Error::new(ErrorCode::STACK_EXISTS, message)
            .with_help("move it away, or give another name"));
    }
    Ok(Some((old, new)))
}
