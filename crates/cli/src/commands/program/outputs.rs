//! `nimbus program outputs`: what the program exported when it was last deployed.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_model::PropertyValue;
use nimbus_engine_operations::{StackAccess, stack_outputs};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::LocationArgs;
use crate::commands::values::shown_map;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};
use crate::table::{TableCell, TextTable};

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramOutputsArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Print only this output; a text is printed as it is
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print secrets in the clear
    #[arg(long)]
    show_secrets: bool,
}

pub(crate) async fn run(
    args: ProgramOutputsArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let loaded = access.stack().load(&access.keyring).await?;
    let mut outputs = loaded
        .snapshot
        .as_ref()
        .map(stack_outputs)
        .unwrap_or_default();
    if let Some(name) = &args.name {
        let Some(found) = outputs.remove(name) else {
            let message = format!("{} has no output {name}", access.name);
            return Err(Error::new(ErrorCode::OUTPUT_UNKNOWN, message)
                .with_help("`nimbus program outputs` lists all of them"));
        };
        outputs.clear();
        outputs.insert(name.clone(), found);
    }
    let secret = |value: &PropertyValue| value.contains_secrets();
    let secrets = outputs.iter().filter(|(_, value)| secret(value));
    let report = OutputsReport {
        stack: access.name.to_string(),
        secret: secrets.map(|(name, _)| name.clone()).collect(),
        outputs: shown_map(&outputs, args.show_secrets),
        only: args.name,
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct OutputsReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// By name; secrets are `[secret]` unless they were asked for.
    outputs: Map<String, Value>,
    /// Names of outputs that are secret, wholly or in part.
    secret: Vec<String>,
    #[serde(skip)]
    only: Option<String>,
}

impl Report for OutputsReport {
    const SCHEMA: &'static str = "nimbus/program-outputs/1";

    fn text(&self, terminal: Terminal) -> String {
        let shown = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if self.only.is_some() {
            return self
                .outputs
                .values()
                .map(|value| shown(value) + "\n")
                .collect();
        }
        let mut table = TextTable::new(terminal);
        for (name, value) in &self.outputs {
            let name = TableCell::new(name).painted(TextStyle::Heading);
            table.row([name, TableCell::new(shown(value))]);
        }
        table.text()
    }

    fn is_bare_value(&self) -> bool {
        self.only.is_some()
    }
}
