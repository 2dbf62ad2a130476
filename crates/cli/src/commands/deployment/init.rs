//! `nimbus init`: a new deployment from a template.

mod interview;
mod log;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_core::{DeploymentId, EnvironmentName, ErrorCode, Result};
use nimbus_document::Document;
use nimbus_orchestrator::init_file::{self, VPC_CIDR};
use nimbus_orchestrator::validate::{INVALID_CONFIGURATION, validate};
use nimbus_orchestrator::{FILE_NAME, InitAnswers, Manifest, TemplateLibrary, render};
use nimbus_workspace::Workspace;
use schemars::JsonSchema;
use serde::Serialize;

use self::log::InitLog;
use super::{usage, workspace};
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct InitArgs {
    /// Id of the deployment, such as D1BRV40; made from the time when left out
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: Option<String>,
    /// Organisation
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Business project; the Pulumi project of every unit
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Primary domain
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// Template: default, minimal, microservices, data-platform, or one of your own
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Primary region
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// Secondary region
    #[arg(long, value_name = "REGION")]
    pub(crate) secondary_region: Option<String>,
    /// AWS account of an environment, 12 digits; may be given several times
    #[arg(long, value_name = "ENV=NUMBER")]
    pub(crate) account: Vec<String>,
    /// AWS account of dev, as --account dev=NUMBER
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) account_dev: Option<String>,
    /// AWS account of stage
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) account_stage: Option<String>,
    /// AWS account of prod
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) account_prod: Option<String>,
    /// Team, for tags
    #[arg(long)]
    pub(crate) team: Option<String>,
    /// Cost centre, for tags
    #[arg(long)]
    pub(crate) cost_center: Option<String>,
    /// What this deployment is for
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Network of the first enabled environment
    #[arg(long, value_name = "CIDR")]
    pub(crate) vpc_cidr: Option<String>,
    /// Network of dev
    #[arg(long, value_name = "CIDR")]
    pub(crate) vpc_cidr_dev: Option<String>,
    /// Network of stage
    #[arg(long, value_name = "CIDR")]
    pub(crate) vpc_cidr_stage: Option<String>,
    /// Network of prod
    #[arg(long, value_name = "CIDR")]
    pub(crate) vpc_cidr_prod: Option<String>,
    /// Any template variable; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use every stack of the template, also those that it leaves off
    #[arg(long)]
    pub(crate) all_stacks: bool,
    /// Ask for every value
    #[arg(long, conflicts_with = "from_file")]
    pub(crate) interactive: bool,
    /// Take every value from a YAML file
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(args: InitArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace_or_new(context)?;
    let library = workspace.library()?;
    let (id, mut answers) = gathered(&args, &library, context)?;
    answers.timestamp = now();
    answers.user_email = user_email(&context.directory);
    let given = id.map(|id| id.parse::<DeploymentId>()).transpose()?;
    let (id, rendered, directory, open) = loop {
        let mut log = InitLog::default();
        log.say("init", "Starting deployment initialization");
        let id = given.clone().unwrap_or_else(|| {
            DeploymentId::first_free(unix_seconds(), |id| workspace.is_taken(id))
        });
        let origin = if given.is_some() {
            "Given"
        } else {
            "Generated"
        };
        log.say("init", &format!("{origin} deployment ID: {id}"));
        log.say(
            "template",
            &format!("Loading template: {}", answers.template),
        );
        log.say("dependencies", "Resolving dependencies from templates");
        let rendered = render(&library, &id, &answers)?;
        log.say("template", "Rendering manifest with variables");
        match workspace.create(&rendered, log.text()) {
            // Somebody else was faster in this very second.
            Err(error) if error.code() == ErrorCode::DEPLOYMENT_EXISTS && given.is_none() => {}
            made => {
                let directory = made?;
                let mut rest = InitLog::default();
                let configs = rendered.configs.len();
                rest.say("config", &format!("Generated {configs} config files"));
                let open = missing_values(&rendered.manifest, &library);
                for missing in &open {
                    rest.warn("validate", &missing.note());
                }
                rest.say("init", "Initialization complete");
                rest.append(&directory.join("logs/init.log"))?;
                break (id, rendered, directory, open);
            }
        }
    };
    let shown = directory
        .strip_prefix(&context.directory)
        .unwrap_or(&directory);
    let environments = rendered.manifest.environments.len();
    for missing in &open {
        context.output.note(&missing.note());
    }
    context.output.result(&InitReport {
        program: context.program,
        id: id.to_string(),
        server: None,
        first: first_environment(&rendered.manifest),
        open: open.into_iter().map(|missing| missing.detail).collect(),
        directory: format!("./{}", shown.display()),
        template: answers.template,
        configs: rendered.configs.len(),
        stacks: rendered.manifest.enabled().count(),
        environments,
    })?;
    Ok(CommandOutcome::Done)
}

/// What is asked for: by flags, in a file, or when somebody is asked.
pub(crate) fn gathered(
    args: &InitArgs,
    library: &TemplateLibrary,
    context: &CommandContext,
) -> Result<(Option<String>, InitAnswers)> {
    let (id, mut answers) = if args.interactive {
        let (id, asked, rest) = interview::interview(args, library)?;
        from_flags(&rest, (id, asked))?
    } else if let Some(file) = &args.from_file {
        let shown = file.display().to_string();
        let document = Document::read_as(&context.directory.join(file), &shown)?;
        from_flags(args, init_file::read(&document)?)?
    } else {
        from_flags(args, Default::default())?
    };
    init_file::check(&answers)?;
    spread_vpc_cidr(library, &mut answers);
    Ok((id, answers))
}

impl InitArgs {
    /// Accounts by environment, however they were given.
    fn accounts(&self) -> Result<BTreeMap<EnvironmentName, String>> {
        let shipped = [
            (EnvironmentName::DEV, &self.account_dev),
            (EnvironmentName::STAGE, &self.account_stage),
            (EnvironmentName::PROD, &self.account_prod),
        ];
        let shipped = shipped.into_iter();
        let mut accounts: BTreeMap<_, _> = shipped
            .filter_map(|(environment, account)| Some((environment, account.clone()?)))
            .collect();
        for pair in &self.account {
            let (environment, account) = pair
                .split_once('=')
                .ok_or_else(|| usage(format!("--account {pair} is not ENV=NUMBER")))?;
            let environment: EnvironmentName = environment
                .parse()
                .map_err(|error| usage(format!("--account {pair}: {error}")))?;
            let other = accounts.insert(environment, account.to_owned());
            if other.is_some_and(|other| other != account) {
                return Err(usage(format!("{environment} has two accounts")));
            }
        }
        Ok(accounts)
    }
}

/// The first deployment makes the workspace, too.
fn workspace_or_new(context: &CommandContext) -> Result<Workspace> {
    match workspace(context) {
        Err(error) if error.code() == ErrorCode::WORKSPACE_MISSING => {
            let made = super::new::make(&context.directory)?;
            let text = made.text(context.output.stderr_terminal());
            context.output.note(text.trim_end());
            workspace(context)
        }
        found => found,
    }
}

/// What flags say, over what a file says.
fn from_flags(
    args: &InitArgs,
    (id, file): (Option<String>, InitAnswers),
) -> Result<(Option<String>, InitAnswers)> {
    let required = |flag: &Option<String>, file: String, name: &str| {
        let value = flag
            .clone()
            .or_else(|| Some(file).filter(|text| !text.is_empty()));
        value.ok_or_else(|| {
            usage(format!("{name} is missing"))
                .with_help("give it, or use --interactive or --from-file FILE")
        })
    };
    let mut variables = file.variables;
    for (name, value) in [
        ("PRIMARY_REGION", &args.region),
        ("SECONDARY_REGION", &args.secondary_region),
        ("TEAM", &args.team),
        ("COST_CENTER", &args.cost_center),
        (VPC_CIDR, &args.vpc_cidr),
        ("VPC_CIDR_DEV", &args.vpc_cidr_dev),
        ("VPC_CIDR_STAGE", &args.vpc_cidr_stage),
        ("VPC_CIDR_PROD", &args.vpc_cidr_prod),
    ] {
        if let Some(value) = value {
            variables.insert(name.to_owned(), value.clone());
        }
    }
    for pair in &args.set {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| usage(format!("--set {pair} is not NAME=VALUE")))?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    let mut accounts = file.accounts;
    accounts.extend(args.accounts()?);
    let template = args.template.clone().unwrap_or(file.template);
    let answers = InitAnswers {
        organization: required(&args.org, file.organization, "--org")?,
        project: required(&args.project, file.project, "--project")?,
        domain: args.domain.clone().unwrap_or(file.domain),
        template: if template.is_empty() {
            "default".to_owned()
        } else {
            template
        },
        description: args.description.clone().or(file.description),
        accounts,
        variables,
        all_stacks: args.all_stacks || file.all_stacks,
        ..InitAnswers::default()
    };
    Ok((args.id.clone().or(id), answers))
}

fn spread_vpc_cidr(library: &TemplateLibrary, answers: &mut InitAnswers) {
    let Some(cidr) = answers.variables.remove(VPC_CIDR) else {
        return;
    };
    let template = library.manifests.get(&answers.template);
    let first = template
        .into_iter()
        .flat_map(|t| &t.environments)
        .find(|(_, target)| {
            target
                .get("enabled")
                .is_none_or(|enabled| enabled.as_bool() == Some(true))
        });
    let environment = first.map_or(EnvironmentName::DEV, |(environment, _)| *environment);
    let name = format!("VPC_CIDR_{}", environment.as_str().to_ascii_uppercase());
    answers.variables.entry(name).or_insert(cidr);
}

/// A value that the rules of a stack ask for and nothing gives: better said now than in the middle of a run.
struct MissingValue {
    detail: String,
    environment: EnvironmentName,
    /// Whether the environment is switched on: what one that is off lacks can wait until it is.
    enabled: bool,
}

impl MissingValue {
    fn note(&self) -> String {
        let Self {
            detail,
            environment,
            enabled,
        } = self;
        match enabled {
            true => format!("To do before a deploy: {detail}"),
            false => format!("To do before {environment} is switched on: {detail}"),
        }
    }
}

/// What every environment lacks, on or off.
fn missing_values(manifest: &Manifest, library: &TemplateLibrary) -> Vec<MissingValue> {
    let mut missing: Vec<MissingValue> = Vec::new();
    for (environment, target) in &manifest.environments {
        let findings = validate(manifest, library, &[*environment]).into_iter();
        for finding in findings.filter(|finding| finding.title == INVALID_CONFIGURATION) {
            // What is of no single environment is found in each of them.
            if missing.iter().all(|one| one.detail != finding.detail) {
                missing.push(MissingValue {
                    detail: finding.detail,
                    environment: *environment,
                    enabled: target.enabled,
                });
            }
        }
    }
    missing
}

/// The one to begin with.
fn first_environment(manifest: &Manifest) -> String {
    let mut all = manifest.environments.iter();
    let first = all.find(|(_, target)| target.enabled);
    let first = first.or_else(|| manifest.environments.first());
    first.map_or("dev", |(name, _)| name.as_str()).to_owned()
}

fn unix_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map(|elapsed| elapsed.as_secs()).unwrap_or_default()
}

/// ISO 8601 in UTC, to the second.
fn now() -> String {
    let timestamp = jiff::Timestamp::from_second(i64::try_from(unix_seconds()).unwrap_or_default());
    timestamp.unwrap_or_default().to_string()
}

/// From Git's settings, else made of user and host: a label, not an identity.
fn user_email(directory: &Path) -> String {
    let git = Command::new("git")
        .args(["config", "user.email"])
        .current_dir(directory)
        // tidy-allow(start): git, the operator's
        .output();
    let email = git.ok().filter(|output| output.status.success());
    let email = email.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    email.filter(|email| !email.is_empty()).unwrap_or_else(|| {
        let user = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
        format!("{user}@localhost")
    })
}

impl InitReport {
    /// Of a deployment that a server made.
    pub(crate) fn of_server(
        program: &'static str,
        id: String,
        server: &str,
        template: String,
        configs: usize,
        manifest: &Manifest,
    ) -> Self {
        Self {
            program,
            directory: format!("{server}/api/v1/deployments/{id}"),
            server: Some(server.to_owned()),
            id,
            template,
            configs,
            stacks: manifest.enabled().count(),
            environments: manifest.environments.len(),
            first: first_environment(manifest),
            open: Vec::new(),
        }
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct InitReport {
    /// The name that the program was called by, for the commands that come next.
    #[serde(skip)]
    program: &'static str,
    id: String,
    /// Where it was made, if not on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    directory: String,
    template: String,
    /// Config files that were written.
    configs: usize,
    stacks: usize,
    environments: usize,
    /// The environment to begin with.
    first: String,
    /// Values that stacks need in some environment and that nothing gives yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<String>,
}

impl Report for InitReport {
    const SCHEMA: &'static str = "nimbus/init/1";

    fn text(&self, _: Terminal) -> String {
        let Self {
            program,
            id,
            directory,
            template,
            configs,
            stacks,
            environments,
            server,
            first,
            open: _,
        } = self;
        if let Some(server) = server {
            return format!(
                "Generated deployment ID: {id}\nCreated at: {server}\n\
                 Generated manifest from template: {template}\n\
                 Resolved dependencies from stack templates\n\
                 {stacks} stacks × {environments} environments\n\n\
                 Next steps:\n  1. Review manifest: {program} workspace pull {id} --server {server}\n  \
                 2. Deploy to {first}: {program} deploy {id} --environment {first} --server {server}\n"
            );
        }
        format!(
            "Generated deployment ID: {id}\nCreated: {directory}/\n\
             Generated manifest from template: {template}\n\
             Resolved dependencies from stack templates\n\
             Created {configs} config files ({stacks} stacks × {environments} environments)\n\n\
             Next steps:\n  1. Review manifest: {directory}/{FILE_NAME}\n  \
             2. Deploy to {first}: {program} deploy {id} --environment {first}\n"
        )
    }
}
