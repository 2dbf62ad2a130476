//! `nimbus state move`: resources that another stack takes over, with their children.

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_model::Urn;
use nimbus_engine_operations::{PreparedMove, StackAccess};
use schemars::JsonSchema;
use serde::Serialize;

use super::edit::urn;
use crate::commands::program::{ProgramLocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateMoveArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The stack that has them: dev, or organization/project/dev
    #[arg(long, value_name = "STACK", env = "PULUMI_STACK")]
    source: String,

    /// The stack that takes them; it must exist
    #[arg(long, value_name = "STACK")]
    dest: String,

    /// Parents go too; else children of somebody who stays become children of the stack
    #[arg(long)]
    include_parents: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,

    /// The resources; their children go with them
    #[arg(value_name = "URN", value_parser = urn, required = true)]
    resources: Vec<Urn>,
}

pub(super) async fn run(args: StateMoveArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let environment = EnvironmentVariables::process();
    let open = async |stack: &str| {
        let location = args.place.location(stack, context)?;
        StackAccess::open(&location, &environment, &context.key_services()?).await
    };
    let (from, to) = (open(&args.source).await?, open(&args.dest).await?);
    let prepared = PreparedMove::open(&from, &to, &args.resources, args.include_parents).await?;
    let pair = |(one, other): &(Urn, Urn)| NamedPair {
        from: one.to_string(),
        to: other.to_string(),
    };
    let moved = &prepared.moved;
    let report = StateMoveReport {
        source: from.name.to_string(),
        destination: to.name.to_string(),
        moved: moved.moved.iter().map(pair).collect(),
        copied: moved.copied.iter().map(ToString::to_string).collect(),
        forgotten: moved.forgotten.iter().map(pair).collect(),
    };
    if !args.yes {
        if !context.output.is_json() {
            context.output.raw(&report.plan())?;
        }
        let count = report.moved.len();
        let noun = if count == 1 { "resource" } else { "resources" };
        let question = format!("Move {count} {noun} from {} to {}?", from.name, to.name);
        confirm(context, &question).await?;
    }
    prepared.write("nimbus state move").await?;
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StateMoveReport {
    /// `organization/<project>/<stack>`.
    source: String,
    destination: String,
    /// Old and new URNs.
    moved: Vec<NamedPair>,
    /// Providers that both stacks have now.
    copied: Vec<String>,
    /// Who needed whom across the new border; programs hand such values on through stack references.
    forgotten: Vec<NamedPair>,
}

#[derive(JsonSchema, Serialize)]
struct NamedPair {
    from: String,
    to: String,
}

impl StateMoveReport {
    fn plan(&self) -> String {
        let mut page = ReportPage::default();
        for pair in &self.moved {
            page.line(format!("  {}", pair.from));
            page.line(format!("    → {}", pair.to));
        }
        for urn in &self.copied {
            page.line(format!("  a copy of its provider: {urn}"));
        }
        for pair in &self.forgotten {
            page.line(format!(
                "  no longer recorded: {} needs {}",
                pair.from, pair.to
            ));
        }
        page.into_text()
    }
}

impl Report for StateMoveReport {
    const SCHEMA: &'static str = "nimbus/state-move/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let count = self.moved.len();
        let noun = if count == 1 { "resource" } else { "resources" };
        format!(
            "{mark} {count} {noun} moved from {} to {}\n{}",
            self.source,
            self.destination,
            self.plan()
        )
    }
}
