//! Custom templates: `create-template` and `update-template`.

use nimbus_core::Result;
use nimbus_orchestrator::ManifestTemplate;
use nimbus_workspace::custom_template::TemplateChange;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::{usage, workspace};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct CreateArgs {
    /// Name of the new template, such as shop-standard
    name: String,
    /// Deployment to make it from
    #[arg(long, value_name = "DEPLOYMENT-ID")]
    from_deployment: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UpdateArgs {
    /// Name of the template
    name: String,
    /// Stack that later deployments use; may be given several times
    #[arg(long, value_name = "STACK")]
    enable_stack: Vec<String>,
    /// Stack that later deployments leave out; may be given several times
    #[arg(long, value_name = "STACK")]
    disable_stack: Vec<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(crate) async fn create(args: CreateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let description = args.description.as_deref();
    let template = workspace.create_template(&args.name, &args.from_deployment, description)?;
    context
        .output
        .result(&TemplateReport::new("created", &template))?;
    Ok(CommandOutcome::Done)
}

pub(crate) async fn update(args: UpdateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let change = TemplateChange {
        description: args.description,
        enable: args.enable_stack,
        disable: args.disable_stack,
    };
    if change.description.is_none() && change.enable.is_empty() && change.disable.is_empty() {
        return Err(usage("nothing was said to change")
            .with_help("give --enable-stack, --disable-stack or --description"));
    }
    let template = workspace(context)?.update_template(&args.name, &change)?;
    context
        .output
        .result(&TemplateReport::new("updated", &template))?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct TemplateReport {
    /// `created` or `updated`.
    done: &'static str,
    name: String,
    description: String,
    /// Stacks that deployments made of it use.
    enabled: Vec<String>,
    /// Stacks that it names and leaves out.
    disabled: Vec<String>,
    environments: Vec<String>,
}

impl TemplateReport {
    fn new(done: &'static str, template: &ManifestTemplate) -> Self {
        let with = |on: bool| {
            let stacks = template
                .stacks
                .iter()
                .filter(|(_, choice)| choice.enabled == on);
            stacks.map(|(name, _)| name.to_string()).collect()
        };
        Self {
            done,
            name: template.name.clone(),
            description: template.description.clone(),
            enabled: with(true),
            disabled: with(false),
            environments: template
                .environments
                .keys()
                .map(ToString::to_string)
                .collect(),
        }
    }
}

impl Report for TemplateReport {
    const SCHEMA: &'static str = "nimbus/template/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let verb = if self.done == "created" {
            "Created"
        } else {
            "Updated"
        };
        let mut page = ReportPage::default();
        page.line(format!("{mark} {verb} template {}", self.name));
        for (label, list) in [
            ("stacks", &self.enabled),
            ("left out", &self.disabled),
            ("environments", &self.environments),
        ] {
            if !list.is_empty() {
                page.line(format!("  {label}: {}", list.join(", ")));
            }
        }
        page.into_text()
    }
}
