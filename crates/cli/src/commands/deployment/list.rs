//! `nimbus list`: the deployments of a workspace.

use nimbus_control_wire::Deployment;
use nimbus_core::Result;
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest};
use schemars::JsonSchema;
use serde::Serialize;

use super::workspace;
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};
use crate::table::{TableCell, TextTable};

#[derive(clap::Args, Debug)]
pub(crate) struct ListDeploymentsArgs {
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(
    _: ListDeploymentsArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let mut deployments = Vec::new();
    for directory in workspace.deployment_directories()? {
        let name = directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // One broken manifest must not hide the others.
        let manifest = Document::read(&directory.join(FILE_NAME)).and_then(|d| Manifest::read(&d));
        deployments.push(match manifest {
            Err(error) => ListedDeployment {
                directory: name,
                problem: Some(error.to_string()),
                ..ListedDeployment::default()
            },
            Ok(manifest) => ListedDeployment {
                id: manifest.metadata.id.to_string(),
                directory: name,
                organization: manifest.metadata.organization.clone(),
                project: manifest.metadata.project.clone(),
                template: manifest.metadata.template.clone(),
                stacks: manifest.enabled().count(),
                environments: manifest
                    .environments
                    .iter()
                    .filter(|(_, target)| target.enabled)
                    .map(|(environment, _)| environment.to_string())
                    .collect(),
                problem: None,
            },
        });
    }
    context
        .output
        .result(&DeploymentListReport { deployments })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DeploymentListReport {
    deployments: Vec<ListedDeployment>,
}

impl DeploymentListReport {
    /// What a server told of; a deployment lies in no directory there.
    pub(crate) fn of_server(deployments: Vec<Deployment>) -> Self {
        let listed = deployments.into_iter().map(|one| ListedDeployment {
            id: one.id,
            directory: String::new(),
            organization: one.organization,
            project: one.project,
            template: one.template,
            stacks: one.stacks,
            environments: one.environments,
            problem: None,
        });
        Self {
            deployments: listed.collect(),
        }
    }
}

#[derive(Default, JsonSchema, Serialize)]
struct ListedDeployment {
    id: String,
    directory: String,
    organization: String,
    project: String,
    template: String,
    stacks: usize,
    /// Those that are enabled.
    environments: Vec<String>,
    /// Why its manifest cannot be read.
    problem: Option<String>,
}

impl Report for DeploymentListReport {
    const SCHEMA: &'static str = "nimbus/list/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.deployments.is_empty() {
            return "No deployments yet; `nimbus init` makes one\n".to_owned();
        }
        // As wide as what is in them, so that they fit on a terminal where they can.
        let mut table = TextTable::new(terminal);
        table.heading([
            TableCell::new("ID"),
            TableCell::new("ORGANIZATION"),
            TableCell::new("PROJECT"),
            TableCell::new("TEMPLATE"),
            TableCell::new("STACKS").right(),
            TableCell::new("ENVIRONMENTS"),
        ]);
        for listed in &self.deployments {
            if let Some(problem) = &listed.problem {
                table.remark(TextStyle::Bad, &format!("{}: {problem}", listed.directory));
                continue;
            }
            table.row([
                TableCell::new(&listed.id),
                TableCell::new(&listed.organization),
                TableCell::new(&listed.project),
                TableCell::new(&listed.template),
                TableCell::new(listed.stacks.to_string()).right(),
                TableCell::new(listed.environments.join(", ")),
            ]);
        }
        table.text()
    }
}
