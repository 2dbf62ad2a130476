//! `nimbus config show`: every setting, and with `--origin` where it came from.

use nimbus_config::{SettingEntry, SettingOrigin};
use nimbus_core::{EnvironmentName, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::values::{ChosenUnits, deployment_values};
use crate::commands::deployment::environment;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};
use crate::table::{TableCell, TextTable};

#[derive(clap::Args, Debug)]
pub(crate) struct ConfigShowArgs {
    /// A deployment, whose configuration is shown instead of Nimbus's own settings
    #[arg(value_name = "DEPLOYMENT-ID")]
    deployment: Option<String>,
    /// Only this stack of the deployment
    #[arg(long, requires = "deployment")]
    stack: Option<String>,
    /// Only this environment of the deployment
    #[arg(long, short, requires = "deployment", value_parser = environment)]
    environment: Option<EnvironmentName>,
    /// Also print where each value came from
    #[arg(long)]
    origin: bool,
}

pub(crate) async fn run(args: ConfigShowArgs, context: &CommandContext) -> Result<CommandOutcome> {
    if let Some(id) = &args.deployment {
        let units = ChosenUnits {
            stack: args.stack.as_deref(),
            environment: args.environment,
        };
        return deployment_values(id, units, args.origin, context);
    }
    let loaded = context.settings()?;
    let report = ShowReport {
        file: loaded.file.as_ref().map(|file| file.display().to_string()),
        settings: loaded
            .settings
            .entries()
            .into_iter()
            .map(ShownSetting::new)
            .collect(),
        unknown_variables: loaded
            .unknown_variables
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        with_origin: args.origin,
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ShowReport {
    /// The file that was read, if there was one.
    file: Option<String>,
    settings: Vec<ShownSetting>,
    /// Variables that start with `NIMBUS_` and are no settings.
    unknown_variables: Vec<String>,
    #[serde(skip)]
    with_origin: bool,
}

#[derive(JsonSchema, Serialize)]
struct ShownSetting {
    /// Key in the file, with dots.
    key: &'static str,
    /// Variable of the environment.
    variable: &'static str,
    /// The value in force; `[secret]` for a secret that is set, null for what is not set.
    value: Value,
    secret: bool,
    origin: ShownOrigin,
}

/// Where the value came from.
#[derive(JsonSchema, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
enum ShownOrigin {
    Default,
    File { file: String, line: usize },
    Environment { variable: &'static str },
    Flag { flag: &'static str },
}

impl ShownSetting {
    fn new(entry: SettingEntry) -> Self {
        let origin = match entry.origin {
            SettingOrigin::Default => ShownOrigin::Default,
            SettingOrigin::File { name, line } => ShownOrigin::File { file: name, line },
            SettingOrigin::Environment { variable } => ShownOrigin::Environment { variable },
            SettingOrigin::Flag { flag } => ShownOrigin::Flag { flag },
        };
        Self {
            key: entry.path,
            variable: entry.variable,
            value: entry.value,
            secret: entry.secret,
            origin,
        }
    }

    fn shown_value(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }

    fn shown_origin(&self) -> String {
        match &self.origin {
            ShownOrigin::Default => "default".to_owned(),
            ShownOrigin::File { file, line } => format!("{file}:{line}"),
            ShownOrigin::Environment { variable } => (*variable).to_owned(),
            ShownOrigin::Flag { flag } => (*flag).to_owned(),
        }
    }
}

impl Report for ShowReport {
    const SCHEMA: &'static str = "nimbus/config-show/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut table = TextTable::new(terminal);
        for setting in &self.settings {
            let key = TableCell::new(setting.key);
            let value = TableCell::new(setting.shown_value());
            if !self.with_origin {
                table.row([key, value]);
                continue;
            }
            let tone = match setting.origin {
                ShownOrigin::Default => TextStyle::Faint,
                _ => TextStyle::Good,
            };
            let origin = TableCell::new(setting.shown_origin()).painted(tone);
            table.row([key, value, origin]);
        }
        table.text()
    }
}
