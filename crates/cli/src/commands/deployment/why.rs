//! `nimbus why`: what would make a stack run, or that nothing would.

use std::sync::Arc;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_runs::RunContext;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::{RunArgs, find_place};
use super::run::LocalRunner;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Stack
    stack: String,
}

pub(crate) async fn run(args: WhyArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let choices = run.how.choices(context)?;
    let runner = LocalRunner::open(place, run.environment, choices, None, context)?;
    let deployment = RunContext::load(Arc::clone(&runner.ports), run.environment).await?;
    let component = args.stack.parse::<ComponentName>().ok();
    let known = component.filter(|name| deployment.manifest.stacks.contains_key(name));
    let Some(component) = known else {
        let message = format!("deployment {} has no stack {}", run.id, args.stack);
        return Err(Error::new(ErrorCode::STACK_UNKNOWN, message));
    };
    let reason = deployment.why(&component).await?;
    context.output.result(&WhyReport {
        stack: args.stack,
        runs: reason.is_some(),
        reason: reason.map(|reason| reason.to_string()),
    })?;
    Ok(CommandOutcome::Done)
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
            Some(reason) => {
                let mut page = ReportPage::default();
                page.line(format!("{} would run: {reason}", self.stack));
                page.into_text()
            }
            None => format!(
                "{} would be skipped: nothing that concerns it has changed\n",
                self.stack
            ),
        }
    }
}
