//! `nimbus new-stack`: a component from the scaffold, with tests that pass at once.

use nimbus_core::Result;
use nimbus_workspace::ComponentScaffold;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::workspace;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ScaffoldStackArgs {
    /// Name of the stack: lower-case letters, digits and `-`
    name: String,
    /// What it makes, in one line
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(crate) async fn run(
    args: ScaffoldStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let description = args.description;
    let component = ComponentScaffold {
        description: description.unwrap_or_else(|| format!("The component {}", args.name)),
        date: jiff::Zoned::now().date().to_string(),
        name: args.name,
    };
    let made = workspace.scaffold(&component)?;
    context.output.result(&NewStackReport {
        name: component.name,
        files: made.iter().map(|file| file.display().to_string()).collect(),
    })?;
    context
        .output
        .note("Next, in stacks/: npm install && npx vitest run");
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct NewStackReport {
    name: String,
    /// Below the workspace's root.
    files: Vec<String>,
}

impl Report for NewStackReport {
    const SCHEMA: &'static str = "nimbus/new-stack/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let mut page = ReportPage::default();
        page.line(format!("{mark} Made stack {}", self.name));
        for file in &self.files {
            page.line(format!("  {file}"));
        }
        page.into_text()
    }
}
