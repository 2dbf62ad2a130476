//! `nimbus state import`: replace the state by an exported one, after showing what would change.

use std::io::Read as _;
use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_disk::unreadable;
use nimbus_engine_backend::{BackendError, EnvironmentVariables, ImportOptions, Owner, Stack};
use nimbus_engine_display::{StepDetail, snapshot_diff_lines};
use nimbus_engine_model::Snapshot;
use nimbus_engine_operations::StackAccess;
use schemars::JsonSchema;
use serde::Serialize;

use super::versions::parse;
use crate::commands::program::{LocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct StateImportArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The state to import; - reads standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,

    /// Accept a state that is older, contradicts itself or belongs to another stack
    #[arg(long)]
    force: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: StateImportArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    let bytes = read(&args, context)?;
    let new = parse(&bytes)?;
    let current = current(&stack).await?;
    let lines = snapshot_diff_lines(
        &current.clone().unwrap_or_default(),
        &new,
        StepDetail::Short,
    );
    let diff: Vec<String> = lines.iter().map(|line| line.plain()).collect();
    if !context.output.is_json() && !diff.is_empty() {
        context.output.raw(&(diff.join("\n") + "\n"))?;
    }
    if !args.yes {
        let question = format!("Replace the state of {} by this?", access.name);
        confirm(context, &question).await?;
    }
    let owner = Owner::current("nimbus state import");
    if current.is_none() && !stack.exists().await? {
        stack.create(owner.clone()).await?;
    }
    let options = ImportOptions {
        accept_older: args.force,
        accept_broken: args.force,
        accept_other_stack: args.force,
        made_of: None,
    };
    let imported = stack
        .import(&bytes, options, owner, &access.keyring)
        .await?;
    context.output.result(&ImportReport {
        stack: access.name.to_string(),
        version: imported.version.serial.get(),
        resources: imported.resources,
        problems: imported.findings.iter().map(ToString::to_string).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

/// `None` when there is no stack yet, or its state cannot be read at all: then there is nothing to
/// compare with, and an import may be the remedy.
async fn current(stack: &Stack) -> Result<Option<Snapshot>> {
    match stack.load_unverified().await {
        Ok(state) => Ok(Some(state.snapshot.unwrap_or_default())),
        Err(BackendError::NotFound { .. } | BackendError::State { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read(args: &StateImportArgs, context: &CommandContext) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let result = if args.file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(context.directory.join(&args.file)).map(|content| bytes = content)
    };
    result.map_err(|error| unreadable(&args.file, error))?;
    Ok(bytes)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ImportReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// How many states Nimbus has seen, this one included.
    version: u64,
    resources: usize,
    /// What is wrong with a state that was accepted nevertheless.
    problems: Vec<String>,
}

impl Report for ImportReport {
    const SCHEMA: &'static str = "nimbus/state-import/1";

    fn text(&self, _: Terminal) -> String {
        format!(
            "{} has {} resources now, version {}\n",
            self.stack, self.resources, self.version
        )
    }
}
