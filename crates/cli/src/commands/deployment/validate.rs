//! `validate`, `validate-stack` and `validate-dependencies`: every finding, with what to do.

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, ErrorKind, Result};
use nimbus_local::{DeploymentPlace, SecretFile};
use nimbus_orchestrator::validate::{self, FindingSeverity, ValidationFinding};
use nimbus_orchestrator::{Manifest, NeededValue, PlaceholderSource, TemplateText, needed_inputs};
use nimbus_workspace::{ConfiguredManifest, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, workspace};
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ValidateDeploymentArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Only this environment
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: Option<EnvironmentName>,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ValidateStackArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Stack
    pub(crate) stack: String,
    /// Environment
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: EnvironmentName,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DependenciesArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(
    args: ValidateDeploymentArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let configured = workspace.configured(&args.id)?;
    let manifest = &configured.manifest;
    let environments: Vec<_> = match args.environment {
        Some(environment) => vec![environment],
        None => manifest.environments.keys().copied().collect(),
    };
    let mut findings = validate::validate(manifest, &workspace.library()?, &environments);
    findings.extend(programs(
        &workspace,
        manifest.enabled().map(|(name, _)| name),
    ));
    findings.extend(queries(manifest, &environments));
    findings.extend(values(&workspace, manifest, &environments)?);
    report(&configured, &args.id, &findings, context)
}

pub(crate) async fn stack(
    args: ValidateStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let configured = workspace.configured(&args.id)?;
    let mut manifest = configured.manifest.clone();
    if !manifest.stacks.contains_key(args.stack.as_str()) {
        return Err(super::unknown_stack(&args.id, &args.stack, &manifest));
    }
    // What is wrong with others is not asked for; that they exist still counts.
    for (name, entry) in &mut manifest.stacks {
        if *name != args.stack.as_str() {
            entry.config.clear();
        }
    }
    let mut findings = validate::validate(&manifest, &workspace.library()?, &[args.environment]);
    let mine = format!("'{}'", args.stack);
    let place = format!("spec.stacks.{}.", args.stack);
    findings.retain(|f| f.detail.contains(&mine) || f.detail.contains(&place));
    let named = manifest
        .stacks
        .keys()
        .filter(|name| **name == args.stack.as_str());
    findings.extend(programs(&workspace, named));
    findings.extend(queries(&manifest, &[args.environment]));
    findings.extend(values(&workspace, &manifest, &[args.environment])?);
    report(&configured, &args.id, &findings, context)
}

pub(crate) async fn dependencies(
    args: DependenciesArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let configured = workspace.configured(&args.id)?;
    let library = workspace.library()?;
    let findings = validate::validate_dependencies(&configured.manifest, &library);
    report(&configured, &args.id, &findings, context)
}

/// A stack without its program cannot run, and one whose project file says too much would be the
/// same for every deployment.
fn programs<'a>(
    workspace: &Workspace,
    stacks: impl IntoIterator<Item = &'a ComponentName>,
) -> Vec<ValidationFinding> {
    let problem = |stack: &ComponentName| {
        workspace
            .project_file(stack)
            .err()
            .map(|error| (stack.clone(), error))
    };
    let finding = |(stack, error): (ComponentName, Error)| ValidationFinding {
        severity: FindingSeverity::Error,
        title: match error.code() {
            ErrorCode::STACK_PROGRAM_MISSING => "Missing program",
            _ => "Invalid program",
        },
        detail: format!("Stack '{stack}': {}", error.message()),
        help: error
            .help()
            .unwrap_or("correct the program's Pulumi.yaml")
            .to_owned(),
        spot: None,
    };
    stacks
        .into_iter()
        .filter_map(problem)
        .map(finding)
        .collect()
}

/// Queries to AWS that could not even be asked.
fn queries(manifest: &Manifest, environments: &[EnvironmentName]) -> Vec<ValidationFinding> {
    validate::placeholders(manifest, environments)
        .into_iter()
        .filter_map(|found| {
            let PlaceholderSource::Aws { query, parameters } = &found.placeholder.source else {
                return None;
            };
            let literal =
                |template: &TemplateText| template.is_literal().then(|| template.to_string());
            let parameters = parameters.iter().map(literal).collect::<Option<Vec<_>>>()?;
            let error = nimbus_aws::check(query, &parameters).err()?;
            Some(ValidationFinding {
                severity: FindingSeverity::Error,
                title: "Invalid query",
                detail: format!("{}: {error}", found.place),
                help: error.help().to_owned(),
                spot: Some(found.spot),
            })
        })
        .collect()
}

/// Secrets of the deployment and variables of this process that runs would look for in vain. What is switched off
/// needs none.
fn values(
    workspace: &Workspace,
    manifest: &Manifest,
    environments: &[EnvironmentName],
) -> Result<Vec<ValidationFinding>> {
    let id = &manifest.metadata.id;
    let place = DeploymentPlace::find(workspace.clone(), id.as_str(), false)?;
    let secrets = SecretFile::load_with(place.records.files(), &place.deployment.directory)?;
    let on = |environment: &&EnvironmentName| {
        let target = manifest.environments.get(*environment);
        target.is_some_and(|target| target.enabled)
    };
    let needed = environments.iter().filter(on);
    let needed = needed.flat_map(|environment| needed_inputs(manifest, *environment));
    let missing = needed.filter(|input| match &input.value {
        NeededValue::Secret(name) => !secrets.has(input.environment, name),
        NeededValue::Variable(name) => std::env::var_os(name).is_none(),
    });
    Ok(missing.map(|input| input.missing(id)).collect())
}

fn report(
    configured: &ConfiguredManifest,
    id: &str,
    findings: &[ValidationFinding],
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let errors = findings
        .iter()
        .filter(|f| f.severity == FindingSeverity::Error)
        .count();
    let shown = ValidateReport {
        deployment: id.to_owned(),
        valid: errors == 0,
        findings: findings
            .iter()
            .map(|finding| ReportedFinding::new(finding, configured, context))
            .collect(),
    };
    context.output.result(&shown)?;
    Ok(if errors == 0 {
        CommandOutcome::Done
    } else {
        CommandOutcome::Reported(ErrorKind::Invalid)
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ValidateReport {
    deployment: String,
    valid: bool,
    findings: Vec<ReportedFinding>,
}

#[derive(JsonSchema, Serialize)]
struct ReportedFinding {
    /// `error` or `warning`.
    severity: &'static str,
    title: String,
    detail: String,
    help: String,
    /// Where in the manifest or in a configuration file, if it is there.
    place: Option<ManifestLocation>,
}

#[derive(JsonSchema, Serialize)]
struct ManifestLocation {
    file: String,
    /// From 1, as editors count.
    line: usize,
    column: usize,
}

impl ReportedFinding {
    fn new(
        finding: &ValidationFinding,
        configured: &ConfiguredManifest,
        context: &CommandContext,
    ) -> Self {
        let overrides = &configured.merged.overrides;
        let place = finding.spot.as_ref().map(|spot| {
            let (document, span) = overrides.locate(spot, &configured.document);
            let file = std::path::Path::new(document.name());
            let shown = file.strip_prefix(&context.directory).unwrap_or(file);
            let position = document.position(span);
            ManifestLocation {
                file: shown.display().to_string(),
                line: position.line,
                column: position.column,
            }
        });
        Self {
            place,
            severity: match finding.severity {
                FindingSeverity::Error => "error",
                FindingSeverity::Warning => "warning",
            },
            title: finding.title.to_owned(),
            detail: finding.detail.clone(),
            help: finding.help.clone(),
        }
    }
}

impl Report for ValidateReport {
    const SCHEMA: &'static str = "nimbus/validate/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut page = ReportPage::default();
        for finding in &self.findings {
            let (word, tone) = match finding.severity {
                "error" => ("ERROR", TextStyle::Bad),
                _ => ("WARNING", TextStyle::Warning),
            };
            let ReportedFinding {
                title,
                detail,
                help,
                place,
                ..
            } = finding;
            page.line(terminal.paint(tone, &format!("{word}: {title}")));
            page.line(format!("  {detail}"));
            if let Some(place) = place {
                let line = format!("at {}:{}:{}", place.file, place.line, place.column);
                page.line(format!("  {}", terminal.paint(TextStyle::Faint, &line)));
            }
            let help = terminal.paint(TextStyle::Faint, &format!("→ {help}"));
            page.line(format!("  {help}"));
            page.blank();
        }
        if self.valid {
            let mark = terminal.paint(TextStyle::Good, "✓ ");
            page.line(format!("{mark}{} is valid", self.deployment));
        }
        page.into_text()
    }
}
