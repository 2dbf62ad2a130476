//! `nimbus stack-config ls`: every key of a stack. Secrets stay closed unless asked for.

use nimbus_core::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{OpenedStackConfig, closed};
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};
use crate::table::{TableCell, TextTable};

#[derive(clap::Args, Debug)]
pub(crate) struct StackConfigLsArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Print secrets in the clear
    #[arg(long)]
    show_secrets: bool,
}

pub(crate) async fn run(
    args: StackConfigLsArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let opened = OpenedStackConfig::new(&args.location, context)?;
    let mut entries = Vec::new();
    for (key, value) in opened.settings.config.iter() {
        let shown = match args.show_secrets {
            true => opened.open(key, &[])?.unwrap_or(Value::Null),
            false => closed(value),
        };
        entries.push(StackConfigEntry {
            key: key.to_string(),
            secret: value.is_secure(),
            value: shown,
        });
    }
    context.output.result(&StackConfigReport {
        stack: opened.stack,
        entries,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StackConfigReport {
    stack: String,
    entries: Vec<StackConfigEntry>,
}

#[derive(JsonSchema, Serialize)]
struct StackConfigEntry {
    /// The whole key: `namespace:name`.
    key: String,
    /// Whether the value is encrypted in the file, wholly or in part.
    secret: bool,
    /// What is secret in it is `[secret]` unless it was asked for.
    value: Value,
}

impl Report for StackConfigReport {
    const SCHEMA: &'static str = "nimbus/stack-config-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut table = TextTable::new(terminal);
        for entry in &self.entries {
            let key = TableCell::new(&entry.key).painted(TextStyle::Heading);
            let value = match &entry.value {
                Value::String(text) => TableCell::new(text),
                other => TableCell::new(other.to_string()),
            };
            table.row([key, value]);
        }
        table.text()
    }
}
