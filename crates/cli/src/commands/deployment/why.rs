//! `nimbus why`: what would make a stack run, or that nothing would.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::{RunArgs, open};
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// Stack
    stack: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let board = open(&args.run, context, &Cancellation::default())?;
    if !board.manifest.stacks.contains_key(&args.stack) {
        let message = format!("deployment {} has no stack {}", args.run.id, args.stack);
        return Err(Error::new(ErrorCode::STACK_UNKNOWN, message));
    }
    let reason = board.why(&args.stack).await?;
    context.output.result(&WhyReport {
        stack: args.stack,
        runs: reason.is_some(),
        reason: reason.map(|reason| reason.to_string()),
    })?;
    Ok(Outcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct WhyReport {
    stack: String,
    /// Whether a deploy would run it now.
    runs: bool,
    reason: Option<String>,
}

impl Report for WhyReport {
    const SCHEMA: &'static str = "nimbus/why/1";

    fn text(&self, _: Terminal) -> String {
        match &self.reason {
            Some(reason) => format!("{} would run: {reason}\n", self.stack),
            None => format!(
                "{} would be skipped: nothing that concerns it has changed\n",
                self.stack
            ),
        }
    }
}
