//! `nimbus stack-config rm`.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::parse_key;

use super::OpenedStackConfig;
use super::set::ChangeReport;
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct StackConfigRmArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The key: name, or namespace:name
    #[arg(value_name = "KEY")]
    key: String,

    /// The key is a path into a structure, such as servers[0].name
    #[arg(long)]
    path: bool,
}

pub(crate) async fn run(
    args: StackConfigRmArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let (mut opened, _edit) = OpenedStackConfig::edit(&args.location, context)?;
    let (key, path) = parse_key(&args.key, &opened.project.name, args.path)?;
    if opened.settings.config.get(&key, &path).is_none() {
        return Err(not_set(&args.key, &opened.stack));
    }
    opened.settings.remove(&key, &path)?;
    opened.settings.save()?;
    context.output.result(&ChangeReport {
        stack: opened.stack,
        file: opened.settings.path.display().to_string(),
        key: key.to_string(),
        secret: false,
        verb: "removed",
    })?;
    Ok(CommandOutcome::Done)
}

pub(super) fn not_set(key: &str, stack: &str) -> Error {
    Error::new(
        ErrorCode::CONFIG_NOT_SET,
        format!("{stack} has no configuration {key}"),
    )
    .with_help("`nimbus stack-config ls` lists the keys that are set")
}
