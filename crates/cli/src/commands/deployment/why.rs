//! `nimbus why`: what would make a stack run, or that nothing would.

use std::sync::Arc;

use nimbus_core::{ComponentName, Result};
use nimbus_orchestrator::UnitDecision;
use nimbus_runs::RunContext;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::{RunArgs, find_place};
use super::run::LocalRunner;
use super::unknown_stack;
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
        return Err(unknown_stack(&run.id, &args.stack, &deployment.manifest));
    };
    let enabled = deployment.manifest.stacks[&component].enabled;
    let decision = match enabled {
        true => Some(deployment.decision(&component).await?),
        false => None,
    };
    context
        .output
        .result(&WhyReport::new(args.stack, decision))?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct WhyReport {
    stack: String,
    /// Whether a deploy would run it now, whatever becomes of the others.
    runs: bool,
    /// Whether the manifest has it switched on.
    enabled: bool,
    /// Nothing of its own changed, but this stack, which it needs, may have other outputs after the deploy.
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<String>,
    reason: Option<String>,
}

impl WhyReport {
    /// `None` for a stack that is switched off.
    fn new(stack: String, decision: Option<UnitDecision>) -> Self {
        let enabled = decision.is_some();
        let (depends_on, reason) = match decision {
            Some(UnitDecision::Run(reason)) => (None, Some(reason.to_string())),
            Some(UnitDecision::Depends { on }) => (Some(on.to_string()), None),
            Some(UnitDecision::Skip) | None => (None, None),
        };
        Self {
            stack,
            runs: reason.is_some(),
            enabled,
            depends_on,
            reason,
        }
    }
}

impl Report for WhyReport {
    const SCHEMA: &'static str = "nimbus/why/1";

    fn text(&self, _: Terminal) -> String {
        let mut page = ReportPage::default();
        let stack = &self.stack;
        page.line(match (&self.reason, &self.depends_on) {
            (Some(reason), _) => format!("{stack} would run: {reason}"),
            (None, Some(need)) => format!("{stack} would run if outputs of {need} change"),
            (None, None) if !self.enabled => {
                format!("{stack} would not run: the manifest has it switched off")
            }
            (None, None) => {
                format!("{stack} would be skipped: nothing that concerns it has changed")
            }
        });
        page.into_text()
    }
}
