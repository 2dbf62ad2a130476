//! `nimbus state export`: the state in the form that `pulumi stack export` writes.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_disk::FileMode;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_operations::StackAccess;

use super::versions::find;
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StateExportArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// A version from `nimbus state history` instead of the current state
    #[arg(long, value_name = "N", conflicts_with = "show_secrets")]
    version: Option<usize>,

    /// Write secrets in the clear
    #[arg(long)]
    show_secrets: bool,

    /// Write to this file, readable by you only, instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) async fn run(args: StateExportArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    let bytes = match args.version {
        Some(number) => {
            let version = find(&stack, number).await?;
            stack
                .export_version(&stack.version_bytes(&version).await?)
                .await?
        }
        None if args.show_secrets => stack.export_with_secrets(&access.keyring).await?,
        None => stack.export().await?,
    };
    match &args.file {
        Some(file) => {
            let path = context.directory.join(file);
            nimbus_disk::replace(&path, &bytes, FileMode::Private)
                .map_err(|error| nimbus_disk::unwritable(&path, error))?;
        }
        None => context.output.raw(&String::from_utf8_lossy(&bytes))?,
    }
    Ok(CommandOutcome::Done)
}
