//! `list-stacks` and `discover`: what is registered, and what is there.

use nimbus_core::{Result, printable_line};
use schemars::JsonSchema;
use serde::Serialize;

use super::workspace;
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ListStacksArgs {
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn list(_: ListStacksArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let found = workspace.programs();
    let stacks = workspace
        .library()?
        .stacks
        .into_values()
        .map(|template| ListedStack {
            program: found.iter().any(|name| template.name == name.as_str()),
            registered: true,
            name: template.name.to_string(),
            description: template.description,
            priority: template.priority,
            dependencies: template.dependencies.into_iter().map(Into::into).collect(),
            outputs: template.outputs.into_keys().collect(),
        });
    context.output.result(&ListedStacksReport {
        stacks: stacks.collect(),
    })?;
    Ok(CommandOutcome::Done)
}

pub(crate) async fn discover(
    _: ListStacksArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let registered = workspace.library()?.stacks;
    let stacks = workspace.programs().into_iter().map(|name| {
        let template = registered.get(name.as_str());
        ListedStack {
            program: true,
            registered: template.is_some(),
            description: template.map(|t| t.description.clone()).unwrap_or_default(),
            priority: template.map_or(0, |t| t.priority),
            dependencies: template
                .map(|t| t.dependencies.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            outputs: template
                .map(|t| t.outputs.keys().cloned().collect())
                .unwrap_or_default(),
            name,
        }
    });
    context.output.result(&ListedStacksReport {
        stacks: stacks.collect(),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ListedStacksReport {
    stacks: Vec<ListedStack>,
}

#[derive(JsonSchema, Serialize)]
struct ListedStack {
    name: String,
    description: String,
    priority: i64,
    dependencies: Vec<String>,
    outputs: Vec<String>,
    /// Its program is on disk.
    program: bool,
    registered: bool,
}

impl Report for ListedStacksReport {
    const SCHEMA: &'static str = "nimbus/stacks/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for stack in &self.stacks {
            let name = terminal.paint(
                TextStyle::Heading,
                &format!("{:<18}", printable_line(&stack.name)),
            );
            let remark = match (stack.registered, stack.program) {
                (false, _) => terminal.paint(TextStyle::Warning, "  not registered"),
                (true, false) => terminal.paint(TextStyle::Warning, "  no program"),
                (true, true) => String::new(),
            };
            let needs = if stack.dependencies.is_empty() {
                String::new()
            } else {
                terminal.paint(
                    TextStyle::Faint,
                    &format!("  ← {}", printable_line(&stack.dependencies.join(", "))),
                )
            };
            let description = printable_line(&stack.description);
            text.push_str(&format!("{name} {description}{needs}{remark}\n"));
        }
        text
    }
}
