//! `list-templates`, `show-template` and `validate-template`.

use nimbus_core::{Error, ErrorCode, Result, printable_line};
use nimbus_orchestrator::TemplateLibrary;
use nimbus_orchestrator::validate::{self, FindingSeverity};
use nimbus_workspace::custom_template;
use schemars::JsonSchema;
use serde::Serialize;

use super::workspace;
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ListTemplatesArgs {
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct NameArgs {
    /// Name of the template
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn list(_: ListTemplatesArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let library = workspace(context)?.library()?;
    let templates = library.manifests.values().map(|template| ListedTemplate {
        name: template.name.clone(),
        description: template.description.clone(),
        stacks: template
            .stacks
            .iter()
            .filter(|(_, s)| s.enabled)
            .map(|(n, _)| n.to_string())
            .collect(),
        environments: template
            .environments
            .keys()
            .map(ToString::to_string)
            .collect(),
    });
    context.output.result(&TemplatesReport {
        templates: templates.collect(),
    })?;
    Ok(CommandOutcome::Done)
}

pub(crate) async fn show(args: NameArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    known(&workspace.library()?, &args.name)?;
    let path = workspace.manifest_template(&args.name);
    let text = path.and_then(|path| std::fs::read_to_string(path).ok());
    let text = text.ok_or_else(|| {
        let message = format!("template {} cannot be read", args.name);
        Error::new(ErrorCode::FILE_UNREADABLE, message)
    })?;
    context.output.raw(&text)?;
    Ok(CommandOutcome::Done)
}

/// Renders it with made-up answers: what a user would run into shows here.
pub(crate) async fn validate(args: NameArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let library = workspace(context)?.library()?;
    known(&library, &args.name)?;
    let manifest = custom_template::check(&library, &args.name)?;
    let environments: Vec<_> = manifest.environments.keys().copied().collect();
    let findings = validate::validate(&manifest, &library, &environments);
    let errors = findings
        .iter()
        .filter(|f| f.severity == FindingSeverity::Error);
    if let Some(first) = errors.clone().next() {
        let count = errors.count();
        let more = if count > 1 {
            format!(" (and {} more)", count - 1)
        } else {
            String::new()
        };
        let message = format!(
            "template {}: {}: {}{more}",
            args.name, first.title, first.detail
        );
        return Err(Error::new(ErrorCode::TEMPLATE_INVALID, message).with_help(first.help.clone()));
    }
    context.output.result(&ValidTemplate {
        name: args.name,
        stacks: manifest.enabled().count(),
        environments: environments.len(),
    })?;
    Ok(CommandOutcome::Done)
}

fn known(library: &TemplateLibrary, name: &str) -> Result<()> {
    if library.manifests.contains_key(name) {
        return Ok(());
    }
    let names = library.manifests.keys().map(String::as_str);
    let error = Error::new(
        ErrorCode::TEMPLATE_UNKNOWN,
        format!("there is no template `{name}`"),
    );
    Err(match nimbus_document::did_you_mean(name, names) {
        Some(help) => error.with_help(help),
        None => error.with_help("`nimbus list-templates` shows what there is"),
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct TemplatesReport {
    templates: Vec<ListedTemplate>,
}

#[derive(JsonSchema, Serialize)]
struct ListedTemplate {
    name: String,
    description: String,
    stacks: Vec<String>,
    environments: Vec<String>,
}

impl Report for TemplatesReport {
    const SCHEMA: &'static str = "nimbus/templates/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for ListedTemplate {
            name,
            description,
            stacks,
            environments,
        } in &self.templates
        {
            let count = stacks.len();
            let environments = environments.join(", ");
            let (environments, description) =
                (printable_line(&environments), printable_line(description));
            let name = terminal.paint(TextStyle::Heading, &format!("{:<16}", printable_line(name)));
            text.push_str(&format!(
                "{name} {count:>2} stacks  {environments:<18}  {description}\n"
            ));
        }
        text
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ValidTemplate {
    name: String,
    stacks: usize,
    environments: usize,
}

impl Report for ValidTemplate {
    const SCHEMA: &'static str = "nimbus/template-valid/1";

    fn text(&self, terminal: Terminal) -> String {
        let Self {
            name,
            stacks,
            environments,
        } = self;
        let mark = terminal.paint(TextStyle::Good, "✓");
        format!("{mark} {name} is valid: {stacks} stacks × {environments} environments\n")
    }
}
