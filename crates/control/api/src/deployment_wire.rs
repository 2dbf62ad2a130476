//! Deployments, runs, stacks and templates as they go over the wire.

use std::collections::BTreeMap;

use nimbus_control_app as app;
use nimbus_control_wire::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{maybe_time, time};

/// A deployment, without its manifest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Deployment {
    id: String,
    organization: String,
    project: String,
    template: String,
    /// Counts changes of the manifest; also the `ETag`.
    revision: i64,
    created_by: String,
    created_at: String,
    updated_at: String,
    /// When it was taken out of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    archived_at: Option<String>,
}

impl From<app::StoredDeployment> for Deployment {
    fn from(row: app::StoredDeployment) -> Self {
        Self {
            id: row.id,
            organization: row.organization,
            project: row.project,
            template: row.template,
            revision: row.revision,
            created_by: row.created_by.to_string(),
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
            archived_at: maybe_time(row.archived_at),
        }
    }
}

/// What a deployment is made from.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDeployment {
    /// `D` and up to 15 capital letters and digits; made from the time when absent.
    pub(crate) id: Option<String>,
    pub(crate) organization: String,
    pub(crate) project: String,
    #[serde(default)]
    pub(crate) domain: String,
    /// `default` when absent.
    pub(crate) template: Option<String>,
    pub(crate) description: Option<String>,
    /// Account of each environment.
    #[serde(default)]
    pub(crate) accounts: BTreeMap<String, String>,
    /// Variables of the template.
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// Also stacks that the template leaves off.
    #[serde(default)]
    pub(crate) all_stacks: bool,
}

impl From<NewDeployment> for app::DeploymentInput {
    fn from(body: NewDeployment) -> Self {
        Self {
            id: body.id,
            organization: body.organization,
            project: body.project,
            domain: body.domain,
            template: body.template,
            description: body.description,
            accounts: body.accounts,
            variables: body.variables,
            all_stacks: body.all_stacks,
        }
    }
}

/// A manifest as it is written, in YAML.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManifestText {
    pub(crate) manifest: String,
}

/// All environments of a deployment, in the order of its manifest. They are as many as that names.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Environments {
    pub(crate) items: Vec<Environment>,
}

/// One environment of a deployment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Environment {
    name: String,
    enabled: bool,
    account: String,
    region: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run: Option<Run>,
}

impl From<app::DeploymentEnvironment> for Environment {
    fn from(row: app::DeploymentEnvironment) -> Self {
        Self {
            name: row.name.to_string(),
            enabled: row.enabled,
            account: row.account,
            region: row.region,
            last_run: row.last_run.map(|run| {
                app::describe_run(app::QueuedRun {
                    run,
                    position: None,
                })
            }),
        }
    }
}

/// What a run is asked to do.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartRun {
    pub(crate) environment: String,
    /// On a simulated cloud: nothing real is touched.
    #[serde(default)]
    pub(crate) rehearsal: bool,
    /// Also stacks that did not change.
    #[serde(default)]
    pub(crate) force: bool,
    /// So many stacks at once, 1 to 32; 4 when absent.
    pub(crate) parallel: Option<usize>,
    /// Only these; all of them when absent.
    pub(crate) stacks: Option<Vec<String>>,
    /// `automatic`, `rollback`, `hold` or `continue`.
    pub(crate) on_failure: Option<String>,
    /// Skip checking the types of TypeScript programs.
    #[serde(default)]
    pub(crate) transpile_only: bool,
    /// The version that a rollback returns to; the one before when absent.
    pub(crate) to_version: Option<u32>,
    /// Why, in your words.
    pub(crate) message: Option<String>,
}

impl From<StartRun> for app::RunInput {
    fn from(body: StartRun) -> Self {
        Self {
            environment: body.environment,
            rehearsal: body.rehearsal,
            force: body.force,
            parallel: body.parallel,
            components: body.stacks,
            on_failure: body.on_failure,
            transpile_only: body.transpile_only,
            to_version: body.to_version,
            message: body.message,
        }
    }
}

/// A registered program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stack {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    dependencies: Vec<String>,
    /// Whether the tenant has files of its own for it.
    custom: bool,
    /// As it is written, in YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
}

impl From<app::StackEntry> for Stack {
    fn from(entry: app::StackEntry) -> Self {
        Self {
            name: entry.name,
            description: entry.description,
            dependencies: entry.dependencies,
            custom: entry.custom,
            template: entry.template,
        }
    }
}

/// A program to be registered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStack {
    pub(crate) name: String,
    /// Its template, in YAML.
    pub(crate) template: String,
    /// Text files by path below the stack's folder, such as `src/index.ts`.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

/// A program to be replaced.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceStack {
    /// Its template, in YAML.
    pub(crate) template: String,
    /// All its files; without any they stay as they are.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

/// One stack of a deployment to be deployed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeployStack {
    pub(crate) deployment: String,
    pub(crate) environment: String,
    #[serde(default)]
    pub(crate) rehearsal: bool,
    #[serde(default)]
    pub(crate) force: bool,
}

/// A template for deployments.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Template {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    custom: bool,
    /// As it is written, in YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl From<app::TemplateEntry> for Template {
    fn from(entry: app::TemplateEntry) -> Self {
        Self {
            name: entry.name,
            description: entry.description,
            custom: entry.custom,
            content: entry.content,
        }
    }
}

/// A template to be kept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTemplate {
    /// In YAML; its name is in it.
    pub(crate) content: String,
}
