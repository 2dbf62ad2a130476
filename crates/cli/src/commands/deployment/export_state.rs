//! `nimbus export-state`: the states of all stacks of an environment in one file, or that of one stack as Pulumi reads it.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_local::{EnvironmentStates, write_states};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::{RunArgs, find_place};
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ExportStateArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Write the state of this stack alone, in the form that `pulumi stack import` reads
    #[arg(long, value_name = "STACK")]
    pub(crate) stack: Option<String>,
    /// Write it there instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) async fn run(args: ExportStateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let backend = run.how.backend.as_deref();
    let sandbox = sandbox_settings(context)?;
    let states =
        EnvironmentStates::read(&place, run.environment, backend, sandbox.as_ref()).await?;
    deliver(&states, &args, context)
}

/// Writes what was asked for to the file that was named, or else prints it.
pub(crate) fn deliver(
    states: &EnvironmentStates,
    args: &ExportStateArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let (text, stacks) = match &args.stack {
        Some(stack) => (states.text_of(stack)?, 1),
        None => (states.to_text(), states.stacks.len()),
    };
    match &args.output {
        Some(file) => {
            write_states(&context.directory.join(file), &text)?;
            let file = file.display().to_string();
            context.output.result(&ExportStateReport { file, stacks })?;
        }
        None => context.output.raw(&text)?,
    }
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ExportStateReport {
    pub(crate) file: String,
    /// How many stacks it holds.
    pub(crate) stacks: usize,
}

impl Report for ExportStateReport {
    const SCHEMA: &'static str = "nimbus/export-state/1";

    fn text(&self, _: Terminal) -> String {
        let stacks = match self.stacks {
            1 => "1 stack".to_owned(),
            count => format!("{count} stacks"),
        };
        format!("Wrote the state of {stacks} to {}\n", self.file)
    }
}
