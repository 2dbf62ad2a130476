//! `enable-environment`, `disable-environment` and `list-environments`.
//!
//! The manifest is changed in place, one word of it: comments and order are its owner's.

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, printable_line};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest};
use nimbus_workspace::files;
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, workspace};
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct SwitchArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment: dev, stage or prod
    #[arg(value_parser = environment)]
    pub(crate) environment: EnvironmentName,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListEnvironmentsArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn enable(args: SwitchArgs, context: &CommandContext) -> Result<CommandOutcome> {
    switch(args, true, context)
}

pub(crate) async fn disable(args: SwitchArgs, context: &CommandContext) -> Result<CommandOutcome> {
    switch(args, false, context)
}

pub(crate) async fn list(
    args: ListEnvironmentsArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let deployment = workspace(context)?.deployment(&args.id)?;
    context
        .output
        .result(&EnvironmentsReport::new(&deployment.manifest))?;
    Ok(CommandOutcome::Done)
}

fn switch(args: SwitchArgs, enabled: bool, context: &CommandContext) -> Result<CommandOutcome> {
    let deployment = workspace(context)?.deployment(&args.id)?;
    let path = deployment.directory.join(FILE_NAME);
    let document = Document::read(&path)?;
    if !deployment
        .manifest
        .environments
        .contains_key(&args.environment)
    {
        return Err(deployment.manifest.unknown_environment(args.environment));
    }
    let text = switched(&document, args.environment, enabled)?;
    let manifest = Manifest::read(&Document::parse(FILE_NAME, &text)?)?;
    files::replace(&path, &text)?;
    context.output.result(&EnvironmentsReport::new(&manifest))?;
    Ok(CommandOutcome::Done)
}

/// The manifest's text with one environment switched.
fn switched(document: &Document, environment: EnvironmentName, enabled: bool) -> Result<String> {
    let spec = document.view().required("spec")?;
    let target = spec
        .required("environments")?
        .optional(environment.as_str())?;
    let Some(target) = target else {
        let message = format!("this deployment has no environment {environment}");
        return Err(Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message)
            .with_help("add it under spec.environments with account and region"));
    };
    let span = target.required("enabled")?.span();
    let text = document.text();
    Ok(format!(
        "{}{enabled}{}",
        &text[..span.start],
        &text[span.end..]
    ))
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct EnvironmentsReport {
    deployment: String,
    environments: Vec<ListedEnvironment>,
}

#[derive(JsonSchema, Serialize)]
struct ListedEnvironment {
    name: String,
    enabled: bool,
    account: String,
    region: String,
}

impl EnvironmentsReport {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        Self {
            deployment: manifest.metadata.id.to_string(),
            environments: manifest
                .environments
                .iter()
                .map(|(name, target)| ListedEnvironment {
                    name: name.to_string(),
                    enabled: target.enabled,
                    account: target.account.clone().unwrap_or_default(),
                    region: target.region.clone(),
                })
                .collect(),
        }
    }
}

impl Report for EnvironmentsReport {
    const SCHEMA: &'static str = "nimbus/environments/1";

    fn text(&self, terminal: Terminal) -> String {
        let heading = format!("{:<8} {:<9} {:<14} REGION", "NAME", "ENABLED", "ACCOUNT");
        let mut text = terminal.paint(TextStyle::Heading, &heading) + "\n";
        for ListedEnvironment {
            name,
            enabled,
            account,
            region,
        } in &self.environments
        {
            let account = if account.is_empty() { "-" } else { account };
            let enabled = if *enabled { "yes" } else { "no" };
            let region = if region.is_empty() { "-" } else { region };
            let (account, region) = (printable_line(account), printable_line(region));
            text.push_str(&format!("{name:<8} {enabled:<9} {account:<14} {region}\n"));
        }
        text
    }
}
