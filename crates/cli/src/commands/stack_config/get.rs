//! `nimbus stack-config get`: one value, decrypted if it is a secret. Asking for it by name is
//! asking to see it.

use nimbus_core::Result;
use nimbus_engine_backend::project::parse_key;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::OpenedStackConfig;
use super::rm::not_set;
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct StackConfigGetArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The key: name, or namespace:name
    #[arg(value_name = "KEY")]
    key: String,

    /// The key is a path into a structure, such as servers[0].name
    #[arg(long)]
    path: bool,
}

pub(crate) async fn run(
    args: StackConfigGetArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let opened = OpenedStackConfig::new(&args.location, context)?;
    let (key, path) = parse_key(&args.key, &opened.project.name, args.path)?;
    let written = opened.settings.config.get(&key, &path);
    let written = written.ok_or_else(|| not_set(&args.key, &opened.stack))?;
    let secret = written.is_secure();
    let value = opened.open(&key, &path)?;
    context.output.result(&GetReport {
        stack: opened.stack,
        key: key.to_string(),
        secret,
        value: value.unwrap_or(Value::Null),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct GetReport {
    stack: String,
    /// The whole key: `namespace:name`.
    key: String,
    /// Whether the value is encrypted in the file, wholly or in part.
    secret: bool,
    /// In the clear.
    value: Value,
}

impl Report for GetReport {
    const SCHEMA: &'static str = "nimbus/stack-config-get/1";

    fn text(&self, _: Terminal) -> String {
        match &self.value {
            Value::String(text) => format!("{text}\n"),
            other => format!("{other}\n"),
        }
    }

    fn is_bare_value(&self) -> bool {
        true
    }
}
