//! Stacks and their templates: `register-stack`, `update-stack`, `unregister-stack`,
//! `register-all-stacks` and `new-stack`.

pub(crate) mod all;
pub(crate) mod register;
pub(crate) mod scaffold;
pub(crate) mod unregister;
pub(crate) mod update;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nimbus_core::{ComponentName, Result};
use nimbus_document::Document;
use nimbus_orchestrator::{ComponentTemplate, read_defaults};
use nimbus_workspace::ComponentRegistration;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

/// What can be said of a stack when it is registered or updated.
#[derive(clap::Args, Debug)]
pub(crate) struct StackMetadataArgs {
    /// What the stack makes; from its Pulumi.yaml when left out
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Stacks that must be deployed first, separated by commas
    #[arg(long, value_name = "STACK,…", value_delimiter = ',')]
    dependencies: Option<Vec<String>>,
    /// Smaller starts first among stacks that are ready
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Default configuration: a YAML file with config, environments, variables, parameters, outputs
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
}

impl StackMetadataArgs {
    fn registration(&self, directory: &Path) -> Result<ComponentRegistration> {
        let defaults = match &self.defaults_file {
            Some(file) => {
                let shown = file.display().to_string();
                read_defaults(&Document::read_as(&directory.join(file), &shown)?)?
            }
            None => Map::new(),
        };
        let names = |list: &Vec<String>| -> Result<BTreeSet<ComponentName>> {
            let trimmed = list.iter().map(|name| name.trim());
            let names = trimmed.filter(|name| !name.is_empty());
            names.map(|name| Ok(name.parse()?)).collect()
        };
        Ok(ComponentRegistration {
            description: self.description.clone(),
            priority: self.priority,
            dependencies: self.dependencies.as_ref().map(names).transpose()?,
            defaults,
        })
    }

    fn says_nothing(&self) -> bool {
        self.description.is_none()
            && self.dependencies.is_none()
            && self.priority.is_none()
            && self.defaults_file.is_none()
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StackReport {
    /// `registered`, `updated` or `unregistered`.
    done: &'static str,
    name: String,
    description: String,
    priority: i64,
    dependencies: Vec<String>,
    outputs: Vec<String>,
    /// Its template.
    file: String,
}

impl StackReport {
    fn new(done: &'static str, template: ComponentTemplate, file: &Path) -> Self {
        Self {
            done,
            name: template.name.to_string(),
            description: template.description,
            priority: template.priority,
            dependencies: template.dependencies.into_iter().map(Into::into).collect(),
            outputs: template.outputs.into_keys().collect(),
            file: file.display().to_string(),
        }
    }
}

impl Report for StackReport {
    const SCHEMA: &'static str = "nimbus/stack-registration/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let mut page = ReportPage::default();
        page.line(format!(
            "{mark} {} stack {}",
            capitalised(self.done),
            self.name
        ));
        for (label, list) in [("needs", &self.dependencies), ("outputs", &self.outputs)] {
            if !list.is_empty() {
                page.line(format!("  {label}: {}", list.join(", ")));
            }
        }
        page.line(format!("  template: {}", self.file));
        page.into_text()
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
