//! `nimbus adopt`: existing Pulumi projects as components of a deployment.

mod comparison;

use std::collections::BTreeMap;
use std::path::PathBuf;

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, ErrorCode, Result};
use nimbus_local::{
    AdoptionPlan, AdoptionRequest, StackMapping, StateFileChoice, StateSource, undo_adoption,
};
use nimbus_workspace::{ROOT, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use self::comparison::compare;
use super::{environment, new, usage, workspace};
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

/// Existing Pulumi projects, as they are
#[derive(clap::Args, Debug)]
pub(crate) struct AdoptArgs {
    /// Folders with a Pulumi.yaml, or folders that hold such folders
    #[arg(value_name = "DIR", required_unless_present = "undo")]
    folders: Vec<PathBuf>,
    /// Id of the deployment, such as D1BRV40; made from the time when left out
    #[arg(long, value_name = "DEPLOYMENT-ID")]
    id: Option<String>,
    /// Organisation
    #[arg(long, value_name = "NAME", default_value = "organization")]
    org: String,
    /// Business project; the name of the first folder when left out
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// The environment that a stack becomes; then only stacks that are named come in
    ///
    /// Without it, every stack is in the environment of its name. Two stacks of one project in one
    /// environment are two components: --map base=shop-base@test.
    #[arg(long = "map", value_name = "[PROJECT/]STACK=[COMPONENT@]ENVIRONMENT")]
    mappings: Vec<StackMapping>,
    /// An environment, in the order in which they follow each other
    #[arg(long = "environment", short, value_name = "NAME", value_parser = environment)]
    environments: Vec<EnvironmentName>,
    /// What the component of a project is called
    #[arg(long = "name", value_name = "PROJECT=COMPONENT", value_parser = named)]
    names: Vec<(String, ComponentName)>,
    /// A component needs another, although nothing was found that says so
    #[arg(long, value_name = "COMPONENT=COMPONENT", value_parser = edge)]
    needs: Vec<(ComponentName, ComponentName)>,
    /// A component does not need another, whatever was found
    #[arg(long, value_name = "COMPONENT=COMPONENT", value_parser = edge)]
    not_needs: Vec<(ComponentName, ComponentName)>,
    /// Where the states are: file:///dir or s3://bucket; where each project keeps them when left out
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// The state of a stack, as `pulumi stack export` wrote it
    #[arg(long = "state-file", value_name = "[PROJECT/]STACK=FILE")]
    state_files: Vec<StateFileChoice>,
    /// Leave states alone: the first deploy makes everything anew
    #[arg(long, conflicts_with_all = ["state", "state_files"])]
    no_state: bool,
    /// Say what would be made, and make nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not compare the states with what the programs want
    #[arg(long)]
    no_verify: bool,
    /// Compile TypeScript without checking its types when comparing
    #[arg(long)]
    no_typecheck: bool,
    /// Take the adoption of this deployment back; the projects were never changed
    #[arg(long, value_name = "DEPLOYMENT-ID", conflicts_with = "folders")]
    undo: Option<String>,
}

fn named(text: &str) -> std::result::Result<(String, ComponentName), String> {
    let (project, name) = text
        .split_once('=')
        .ok_or("write it as PROJECT=COMPONENT")?;
    let name = nimbus_workspace::check_name(name).map_err(|error| error.message().to_owned())?;
    Ok((project.to_owned(), name))
}

fn edge(text: &str) -> std::result::Result<(ComponentName, ComponentName), String> {
    let (from, needs) = text
        .split_once('=')
        .ok_or("write it as COMPONENT=COMPONENT")?;
    let name = |text: &str| {
        text.parse::<ComponentName>()
            .map_err(|error| error.to_string())
    };
    Ok((name(from)?, name(needs)?))
}

pub(crate) async fn run(args: AdoptArgs, context: &CommandContext) -> Result<CommandOutcome> {
    if let Some(id) = &args.undo {
        return undo(id, context).await;
    }
    let (workspace, made) = match workspace(context) {
        Ok(found) => (found, false),
        Err(error) if error.code() == ErrorCode::WORKSPACE_MISSING => {
            (Workspace::at(context.directory.join(ROOT)), true)
        }
        Err(error) => return Err(error),
    };
    let workspace = workspace.absolute()?;
    let request = request(&args, &workspace, context)?;
    let plan = AdoptionPlan::make(&request, &workspace).await?;
    let mut report = AdoptReport::of(&plan, args.dry_run);
    if args.dry_run {
        context.output.result(&report)?;
        return Ok(CommandOutcome::Done);
    }
    if made {
        workspace.make_folders()?;
        new::write_schemas(workspace.root())?;
    }
    let adopted = plan.carry_out(&workspace, made).await?;
    report.directory = Some(adopted.directory.display().to_string());
    report.warnings.clone_from(&adopted.exposed);
    if args.no_verify {
        context.output.result(&report)?;
        return Ok(CommandOutcome::Done);
    }
    let compared = compare(args.no_typecheck, &adopted, workspace, &request.id, context).await?;
    report.verified = compared.same.iter().map(ToString::to_string).collect();
    report.unverified.clone_from(&compared.failures);
    context.output.result(&report)?;
    compared.outcome(&request.id)
}

fn request(
    args: &AdoptArgs,
    workspace: &Workspace,
    context: &CommandContext,
) -> Result<AdoptionRequest> {
    let now = jiff::Timestamp::now();
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let id = match &args.id {
        Some(id) => id.parse::<DeploymentId>()?,
        None => DeploymentId::first_free(seconds, |id| workspace.is_taken(id)),
    };
    let folders: Vec<_> = args
        .folders
        .iter()
        .map(|folder| context.directory.join(folder))
        .collect();
    let first = folders
        .first()
        .and_then(|folder| folder.canonicalize().ok());
    let first = first.and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
    let project = args.project.clone().or(first);
    let in_directory = |choice: &StateFileChoice| StateFileChoice {
        file: context.directory.join(&choice.file),
        ..choice.clone()
    };
    Ok(AdoptionRequest {
        folders,
        id,
        organization: args.org.clone(),
        project: project.ok_or_else(|| usage("--project is missing"))?,
        at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        mappings: args.mappings.clone(),
        environments: args.environments.clone(),
        names: args.names.clone(),
        needs: args.needs.clone(),
        needs_not: args.not_needs.clone(),
        state: match (&args.state, args.no_state) {
            (Some(url), _) => StateSource::Backend(url.clone()),
            (None, true) => StateSource::None,
            (None, false) => StateSource::Projects,
        },
        state_files: args.state_files.iter().map(in_directory).collect(),
        sandbox: sandbox_settings(context)?,
    })
}

async fn undo(id: &str, context: &CommandContext) -> Result<CommandOutcome> {
    let undone = undo_adoption(workspace(context)?, id).await?;
    context.output.result(&UndoneReport {
        deployment: id.to_owned(),
        components: undone.components.iter().map(ToString::to_string).collect(),
        workspace_removed: undone.workspace,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct AdoptReport {
    deployment: String,
    /// Whether only a plan was made.
    dry_run: bool,
    /// The deployment's directory, if it was made.
    directory: Option<String>,
    /// In the order in which they follow each other.
    environments: Vec<String>,
    components: Vec<AdoptedComponent>,
    edges: Vec<ShownEdge>,
    states: Vec<ShownState>,
    /// Names of secrets, with their environments.
    secrets: BTreeMap<String, Vec<String>>,
    /// Stacks that did not come in: `project/stack`.
    left_out: Vec<String>,
    /// Environments whose states are what their programs want.
    verified: Vec<String>,
    /// Why environments could not be compared with their programs.
    unverified: Vec<String>,
    /// States that had secrets in clear when they were taken over.
    warnings: Vec<String>,
    /// Components in languages that the embedded engine does not run: `COMPONENT (RUNTIME)`.
    foreign: Vec<String>,
}

#[derive(JsonSchema, Serialize)]
struct AdoptedComponent {
    name: String,
    /// Folder of the project.
    source: String,
    /// The Pulumi project, whose name it keeps.
    project: String,
    /// The Pulumi stack in each environment.
    stacks: BTreeMap<String, String>,
    /// Values of configuration in each environment, secrets among them.
    values: BTreeMap<String, usize>,
}

#[derive(JsonSchema, Serialize)]
struct ShownEdge {
    component: String,
    needs: String,
    because: String,
}

#[derive(JsonSchema, Serialize)]
struct ShownState {
    component: String,
    environment: String,
    resources: usize,
    from: String,
}

impl AdoptReport {
    fn of(plan: &AdoptionPlan, dry_run: bool) -> Self {
        let manifest = &plan.manifest;
        let component = |(name, entry): (&ComponentName, &nimbus_orchestrator::ComponentEntry)| {
            let environments = manifest.environments.keys();
            let stacks = environments.map(|environment| {
                let stack = manifest.pulumi_stack(name, *environment);
                (environment.to_string(), stack.stack)
            });
            let values = entry.config.iter();
            AdoptedComponent {
                name: name.to_string(),
                source: plan.sources[name].display().to_string(),
                project: manifest.namespace(name).to_owned(),
                stacks: stacks.collect(),
                values: values
                    .map(|(environment, values)| (environment.to_string(), values.len()))
                    .collect(),
            }
        };
        let mut secrets: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, environment) in plan.secret_names() {
            let environments = secrets.entry(name.to_owned()).or_default();
            environments.push(environment.to_string());
        }
        Self {
            deployment: manifest.metadata.id.to_string(),
            dry_run,
            directory: None,
            environments: manifest
                .environments
                .keys()
                .map(ToString::to_string)
                .collect(),
            components: manifest.stacks.iter().map(component).collect(),
            edges: plan
                .edges
                .iter()
                .map(|edge| ShownEdge {
                    component: edge.from.to_string(),
                    needs: edge.needs.to_string(),
                    because: edge.because.clone(),
                })
                .collect(),
            states: plan
                .states
                .iter()
                .map(|state| ShownState {
                    component: state.component.to_string(),
                    environment: state.environment.to_string(),
                    resources: state.resources,
                    from: state.from.clone(),
                })
                .collect(),
            secrets,
            left_out: plan.left_out.clone(),
            verified: Vec::new(),
            unverified: Vec::new(),
            warnings: Vec::new(),
            foreign: plan
                .foreign
                .iter()
                .map(|(component, runtime)| format!("{component} ({runtime})"))
                .collect(),
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

impl Report for AdoptReport {
    const SCHEMA: &'static str = "nimbus/adopt/1";

    fn text(&self, terminal: Terminal) -> String {
        let heading = |text: &str| terminal.paint(TextStyle::Heading, text);
        let order = self.environments.join(" → ");
        let verb = if self.dry_run {
            "Would adopt"
        } else {
            "Adopted"
        };
        let mut page = ReportPage::default();
        page.line(heading(&format!("{verb} as {}: {order}", self.deployment)));
        for component in &self.components {
            page.line(format!("  {} from {}", component.name, component.source));
            for environment in &self.environments {
                let stack = component.stacks.get(environment).map_or("", String::as_str);
                let values = component.values.get(environment).copied().unwrap_or(0);
                let state = self.states.iter().find(|state| {
                    state.component == component.name && state.environment == *environment
                });
                let state = match state {
                    None => "no state yet".to_owned(),
                    Some(state) => {
                        format!("{} from {}", count(state.resources, "resource"), state.from)
                    }
                };
                let values = count(values, "value");
                page.line(format!(
                    "    {environment}: stack {}/{stack}, {values}, {state}",
                    component.project
                ));
            }
        }
        if !self.edges.is_empty() {
            page.line(heading("Edges"));
            for edge in &self.edges {
                let ShownEdge {
                    component,
                    needs,
                    because,
                } = edge;
                page.line(format!("  {component} needs {needs}: {because}"));
            }
        }
        if !self.secrets.is_empty() {
            page.line(heading(
                "Secrets, encrypted again with the deployment's key",
            ));
            for (name, environments) in &self.secrets {
                page.line(format!("  {name} ({})", environments.join(", ")));
            }
        }
        if !self.left_out.is_empty() {
            page.line(heading("Left out"));
            page.line(format!("  {}", self.left_out.join(", ")));
        }
        for environment in &self.verified {
            let mark = terminal.paint(TextStyle::Good, "✓");
            page.line(format!(
                "{mark} {environment} is what its programs want: a preview plans nothing"
            ));
        }
        for failure in &self.unverified {
            let mark = terminal.paint(TextStyle::Warning, "!");
            page.line(format!("{mark} Not compared: {failure}"));
        }
        for warning in &self.warnings {
            let mark = terminal.paint(TextStyle::Warning, "!");
            page.line(format!(
                "{mark} The state of {warning}; the next deploy encrypts it, its history keeps it: \
                 change the secret"
            ));
        }
        for foreign in &self.foreign {
            let mark = terminal.paint(TextStyle::Warning, "!");
            page.line(format!(
                "{mark} {foreign} is in a language that the embedded engine does not run: `--engine pulumi` does, with the \
                 Pulumi command line"
            ));
        }
        if let Some(directory) = &self.directory {
            page.line(directory);
        }
        page.into_text()
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UndoneReport {
    deployment: String,
    /// Components that are registered no more.
    components: Vec<String>,
    workspace_removed: bool,
}

impl Report for UndoneReport {
    const SCHEMA: &'static str = "nimbus/adopt-undo/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let list = self.components.join(", ");
        format!(
            "{mark} {} is gone, and the components {list}; the projects are as they were\n",
            self.deployment
        )
    }
}
