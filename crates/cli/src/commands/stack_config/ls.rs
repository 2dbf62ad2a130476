//! `nimbus stack-config ls`: every key of a stack. Secrets stay closed unless asked for.

use nimbus_core::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Opened, closed};
use crate::commands::program::LocationArgs;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,

    /// Print secrets in the clear
    #[arg(long)]
    show_secrets: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let opened = Opened::new(&args.location, context)?;
    let mut entries = Vec::new();
    for (key, value) in opened.settings.config.iter() {
        let shown = match args.show_secrets {
            true => opened.open(key, &[])?.unwrap_or(Value::Null),
            false => closed(value),
        };
        entries.push(Entry {
            key: key.to_string(),
            secret: value.is_secure(),
            value: shown,
        });
    }
    context.output.result(&ListReport {
        stack: opened.stack,
        entries,
    })?;
    Ok(Outcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ListReport {
    stack: String,
    entries: Vec<Entry>,
}

#[derive(JsonSchema, Serialize)]
struct Entry {
    /// The whole key: `namespace:name`.
    key: String,
    /// Whether the value is encrypted in the file, wholly or in part.
    secret: bool,
    /// What is secret in it is `[secret]` unless it was asked for.
    value: Value,
}

impl Report for ListReport {
    const SCHEMA: &'static str = "nimbus/stack-config-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        let width = self
            .entries
            .iter()
            .map(|entry| entry.key.chars().count())
            .max();
        let width = width.unwrap_or(0);
        let line = |entry: &Entry| {
            let key = terminal.paint(Tone::Heading, &format!("{:width$}", entry.key));
            let value = match &entry.value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            format!("{key}  {value}\n")
        };
        self.entries.iter().map(line).collect()
    }
}
