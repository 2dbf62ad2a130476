//! `validate`, `validate-stack` and `validate-dependencies`: every finding, with what to do.

use nimbus_core::{Error, ErrorCode, ErrorKind, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::validate::{self, Finding, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, workspace};
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Only this environment
    #[arg(long, short, value_parser = environment)]
    environment: Option<Environment>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StackArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Stack
    stack: String,
    /// Environment
    #[arg(long, short, value_parser = environment)]
    environment: Environment,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DependenciesArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let workspace = workspace(context)?;
    let manifest = workspace.deployment(&args.id)?.manifest;
    let environments: Vec<_> = match args.environment {
        Some(environment) => vec![environment],
        None => manifest.environments.keys().copied().collect(),
    };
    let mut findings = validate::validate(&manifest, &workspace.library()?, &environments);
    findings.extend(programs(
        &workspace,
        manifest.enabled().map(|(name, _)| name.as_str()),
    ));
    report(&args.id, &findings, context)
}

pub(crate) async fn stack(args: StackArgs, context: &Context) -> Result<Outcome> {
    let workspace = workspace(context)?;
    let mut manifest = workspace.deployment(&args.id)?.manifest;
    if !manifest.stacks.contains_key(&args.stack) {
        let message = format!("deployment {} has no stack {}", args.id, args.stack);
        let known = manifest.stacks.keys().map(String::as_str);
        let error = Error::new(ErrorCode::STACK_UNKNOWN, message);
        return Err(match nimbus_document::did_you_mean(&args.stack, known) {
            Some(help) => error.with_help(help),
            None => error.with_help("`nimbus graph` shows the stacks of a deployment"),
        });
    }
    // What is wrong with others is not asked for; that they exist still counts.
    for (name, entry) in &mut manifest.stacks {
        if *name != args.stack {
            entry.config.clear();
        }
    }
    let mut findings = validate::validate(&manifest, &workspace.library()?, &[args.environment]);
    let mine = format!("'{}'", args.stack);
    let place = format!("spec.stacks.{}.", args.stack);
    findings.retain(|f| f.detail.contains(&mine) || f.detail.contains(&place));
    findings.extend(programs(&workspace, [args.stack.as_str()]));
    report(&args.id, &findings, context)
}

pub(crate) async fn dependencies(args: DependenciesArgs, context: &Context) -> Result<Outcome> {
    let workspace = workspace(context)?;
    let manifest = workspace.deployment(&args.id)?.manifest;
    let findings = validate::validate_dependencies(&manifest, &workspace.library()?);
    report(&args.id, &findings, context)
}

/// A stack without its program cannot run.
fn programs<'a>(
    workspace: &nimbus_orchestrator::workspace::Workspace,
    stacks: impl IntoIterator<Item = &'a str>,
) -> Vec<Finding> {
    let missing = stacks
        .into_iter()
        .filter(|stack| !workspace.stack_source(stack).join("Pulumi.yaml").is_file());
    missing
        .map(|stack| Finding {
            severity: Severity::Error,
            title: "Missing program",
            detail: format!(
                "Stack '{stack}' has no {}",
                workspace.stack_source(stack).join("Pulumi.yaml").display()
            ),
            help: "put the program there, or disable the stack in the manifest".to_owned(),
            spot: None,
        })
        .collect()
}

fn report(id: &str, findings: &[Finding], context: &Context) -> Result<Outcome> {
    let errors = findings
        .iter()
        .filter(|f| f.severity == Severity::Error)
        .count();
    let shown = ValidateReport {
        deployment: id.to_owned(),
        valid: errors == 0,
        findings: findings.iter().map(Shown::new).collect(),
    };
    context.output.result(&shown)?;
    Ok(if errors == 0 {
        Outcome::Done
    } else {
        Outcome::Reported(ErrorKind::Invalid)
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ValidateReport {
    deployment: String,
    valid: bool,
    findings: Vec<Shown>,
}

#[derive(JsonSchema, Serialize)]
struct Shown {
    /// `error` or `warning`.
    severity: &'static str,
    title: String,
    detail: String,
    help: String,
}

impl Shown {
    fn new(finding: &Finding) -> Self {
        Self {
            severity: match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
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
        let mut text = String::new();
        for finding in &self.findings {
            let (word, tone) = match finding.severity {
                "error" => ("ERROR", Tone::Bad),
                _ => ("WARNING", Tone::Warning),
            };
            let Shown {
                title,
                detail,
                help,
                ..
            } = finding;
            let heading = terminal.paint(tone, &format!("{word}: {title}"));
            let help = terminal.paint(Tone::Faint, &format!("→ {help}"));
            text.push_str(&format!("{heading}\n  {detail}\n  {help}\n\n"));
        }
        if self.valid {
            text.push_str(&terminal.paint(Tone::Good, "✓ "));
            text.push_str(&format!("{} is valid\n", self.deployment));
        }
        text
    }
}
