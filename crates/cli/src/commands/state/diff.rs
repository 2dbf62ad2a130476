//! `nimbus state diff`: what changed between two versions of the state.

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_display::{Paint, StepDetail, StyledLine, snapshot_diff_lines};
use nimbus_engine_operations::StackAccess;
use schemars::JsonSchema;
use serde::Serialize;

use super::versions::{Which, snapshot};
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct StateDiffArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The older version, a number from `nimbus state history`; by default the one before the last
    #[arg(value_name = "FROM")]
    from: Option<Which>,

    /// The newer version; by default the current state
    #[arg(value_name = "TO")]
    to: Option<Which>,

    /// Show long texts in full
    #[arg(long)]
    full: bool,
}

pub(crate) async fn run(args: StateDiffArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    let from = match args.from {
        Some(from) => from,
        None => Which::Number(stack.history().await?.len().saturating_sub(1).max(1)),
    };
    let to = args.to.unwrap_or(Which::Current);
    let (old, new) = (snapshot(&stack, from).await?, snapshot(&stack, to).await?);
    let detail = if args.full {
        StepDetail::Full
    } else {
        StepDetail::Short
    };
    let lines = snapshot_diff_lines(&old, &new, detail);
    context.output.result(&DiffReport {
        stack: access.name.to_string(),
        from: from.to_string(),
        to: to.to_string(),
        differs: !lines.is_empty(),
        diff: lines.iter().map(StyledLine::plain).collect(),
        lines,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DiffReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    from: String,
    to: String,
    differs: bool,
    /// Lines as people read them; secrets are `[secret]`.
    diff: Vec<String>,
    #[serde(skip)]
    #[schemars(skip)]
    lines: Vec<StyledLine>,
}

impl Report for DiffReport {
    const SCHEMA: &'static str = "nimbus/state-diff/1";

    fn text(&self, terminal: Terminal) -> String {
        if !self.differs {
            return format!("Versions {} and {} record the same\n", self.from, self.to);
        }
        let paint = if terminal.color {
            Paint::Colour
        } else {
            Paint::Plain
        };
        paint.lines(&self.lines)
    }
}
