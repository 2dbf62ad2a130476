//! `nimbus state history`: the operations on a stack, newest last.

use nimbus_core::{Result, printable_line};
use nimbus_engine_backend::{EnvironmentVariables, StackVersion, UpdateResult};
use nimbus_engine_operations::StackAccess;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateHistoryArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Only so many, the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) async fn run(
    args: StateHistoryArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let versions = access.stack().history().await?;
    let skipped = args
        .limit
        .map_or(0, |limit| versions.len().saturating_sub(limit));
    context.output.result(&HistoryReport {
        stack: access.name.to_string(),
        operations: versions[skipped..].iter().map(PastOperation::new).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct HistoryReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// Oldest first.
    operations: Vec<PastOperation>,
}

#[derive(JsonSchema, Serialize)]
struct PastOperation {
    /// Names the state that it left, for `export --version` and `diff`.
    version: usize,
    /// `update`, `destroy`, `refresh`, `import`, …
    kind: String,
    /// `succeeded`, `failed` or `in-progress`.
    result: String,
    /// When it ended.
    at: String,
    seconds: i64,
    message: String,
    /// How many resources each kind of step touched.
    changes: std::collections::BTreeMap<String, i64>,
}

impl PastOperation {
    fn new(version: &StackVersion) -> Self {
        let update = &version.update;
        Self {
            version: version.number,
            kind: update.kind.to_string(),
            result: match &update.result {
                UpdateResult::Succeeded => "succeeded".to_owned(),
                UpdateResult::Failed => "failed".to_owned(),
                UpdateResult::InProgress => "in-progress".to_owned(),
                UpdateResult::Other(word) => word.clone(),
            },
            at: version.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            seconds: update.end_time.saturating_sub(update.start_time),
            message: update.message.clone(),
            changes: update.resource_changes.clone().unwrap_or_default(),
        }
    }

    fn shown_changes(&self) -> String {
        let changed = self
            .changes
            .iter()
            .filter(|(op, count)| *op != "same" && **count > 0);
        let words: Vec<String> = changed.map(|(op, count)| format!("{count} {op}")).collect();
        words.join(", ")
    }
}

impl Report for HistoryReport {
    const SCHEMA: &'static str = "nimbus/state-history/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.operations.is_empty() {
            return "Nothing has been done to this stack yet\n".to_owned();
        }
        let heading = format!(
            "{:>4}  {:<20}  {:<15} {:<10} CHANGES",
            "#", "ENDED", "OPERATION", "RESULT"
        );
        let mut text = terminal.paint(TextStyle::Heading, &heading) + "\n";
        for operation in &self.operations {
            let tone = if operation.result == "succeeded" {
                TextStyle::Good
            } else {
                TextStyle::Bad
            };
            let result = terminal.paint(tone, &format!("{:<10}", operation.result));
            let line = format!(
                "{:>4}  {:<20}  {:<15} {result} {}",
                operation.version,
                operation.at,
                operation.kind,
                operation.shown_changes()
            );
            text.push_str(line.trim_end());
            text.push('\n');
            if !operation.message.is_empty() {
                text.push_str(&terminal.paint(
                    TextStyle::Faint,
                    &format!("      {}\n", printable_line(&operation.message)),
                ));
            }
        }
        text
    }
}
