//! `nimbus export-state`: the states of all stacks of an environment in one file.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_local::EnvironmentStates;
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
    let Some(file) = &args.output else {
        context.output.raw(&states.to_text())?;
        return Ok(CommandOutcome::Done);
    };
    states.write(&context.directory.join(file))?;
    context.output.result(&ExportStateReport {
        file: file.display().to_string(),
        stacks: states.stacks.len(),
    })?;
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
        format!(
            "Wrote the state of {} stacks to {}\n",
            self.stacks, self.file
        )
    }
}
