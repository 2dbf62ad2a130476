//! `nimbus config show DEPLOYMENT-ID`: what each stack is configured with, and where that is written.

use nimbus_core::{EnvironmentName, Result, printable_line};
use nimbus_orchestrator::{PlacedValue, placed_values};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::commands::deployment::{unknown_stack, workspace};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

/// The units that are asked for; all of them when nothing is said.
pub(super) struct ChosenUnits<'a> {
    pub(super) stack: Option<&'a str>,
    pub(super) environment: Option<EnvironmentName>,
}

pub(super) fn deployment_values(
    id: &str,
    chosen: ChosenUnits<'_>,
    with_origin: bool,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let configured = workspace(context)?.configured(id)?;
    let manifest = &configured.manifest;
    if let Some(stack) = chosen.stack
        && !manifest.stacks.contains_key(stack)
    {
        return Err(unknown_stack(id, stack, manifest));
    }
    if let Some(environment) = chosen.environment
        && !manifest.environments.contains_key(&environment)
    {
        return Err(manifest.unknown_environment(environment));
    }
    let mut units = Vec::new();
    for stack in manifest.stacks.keys() {
        for environment in manifest.environments.keys() {
            let meant = chosen.stack.is_none_or(|one| stack == one)
                && chosen.environment.is_none_or(|one| one == *environment);
            if !meant {
                continue;
            }
            let overrides = &configured.merged.overrides;
            let document = &configured.document;
            let values = placed_values(manifest, document, overrides, stack, *environment);
            units.push(ConfiguredUnit {
                stack: stack.to_string(),
                environment: environment.to_string(),
                values: values
                    .into_iter()
                    .map(|value| ConfiguredValue::new(value, context))
                    .collect(),
            });
        }
    }
    let folder = std::path::Path::new(configured.document.name()).parent();
    context.output.result(&ConfigurationReport {
        deployment: manifest.metadata.id.to_string(),
        folder: folder
            .map(|folder| shown(folder, context))
            .unwrap_or_default(),
        units,
        with_origin,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ConfigurationReport {
    deployment: String,
    /// The deployment's directory.
    folder: String,
    units: Vec<ConfiguredUnit>,
    #[serde(skip)]
    with_origin: bool,
}

#[derive(JsonSchema, Serialize)]
struct ConfiguredUnit {
    stack: String,
    environment: String,
    values: Vec<ConfiguredValue>,
}

#[derive(JsonSchema, Serialize)]
struct ConfiguredValue {
    /// With its namespace, as the program has it.
    key: String,
    /// As it is written: placeholders and names of secrets are not resolved.
    value: Value,
    origin: ConfiguredOrigin,
}

/// Where a value is written.
#[derive(JsonSchema, Serialize)]
struct ConfiguredOrigin {
    /// `config_file`, `stack`, `stack_defaults`, `environment_defaults`, `defaults` or
    /// `environment`.
    layer: &'static str,
    file: String,
    /// From 1, as editors count.
    line: usize,
    column: usize,
}

/// A path as it is seen from where somebody works.
fn shown(path: &std::path::Path, context: &CommandContext) -> String {
    let path = path.strip_prefix(&context.directory).unwrap_or(path);
    path.display().to_string()
}

impl ConfiguredValue {
    fn new(value: PlacedValue, context: &CommandContext) -> Self {
        Self {
            origin: ConfiguredOrigin {
                layer: value.layer.as_str(),
                file: shown(std::path::Path::new(&value.file), context),
                line: value.position.line,
                column: value.position.column,
            },
            key: value.key,
            value: value.value,
        }
    }

    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

impl Report for ConfigurationReport {
    const SCHEMA: &'static str = "nimbus/config-deployment/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        if self.with_origin {
            text.push_str(&format!("Files are in {}\n", self.folder));
        }
        for unit in &self.units {
            let heading = format!("{} in {}", unit.stack, unit.environment);
            text.push_str(&terminal.paint(TextStyle::Heading, &heading));
            text.push('\n');
            let widest = unit.values.iter().map(|value| value.key.chars().count());
            let widest = widest.max().unwrap_or(0);
            for value in &unit.values {
                let (key, shown) = (&value.key, value.text());
                let (key, shown) = (printable_line(key), printable_line(&shown));
                text.push_str(&format!("  {key:widest$}  {shown}\n"));
                if self.with_origin {
                    // A line of its own: values and paths together are wider than terminals.
                    let ConfiguredOrigin { file, line, .. } = &value.origin;
                    let file = file.strip_prefix(&self.folder).unwrap_or(file);
                    let origin = format!("{}:{line}", file.trim_start_matches('/'));
                    let origin = terminal.paint(TextStyle::Faint, &origin);
                    text.push_str(&format!("  {:widest$}  {origin}\n", ""));
                }
            }
        }
        text
    }
}
