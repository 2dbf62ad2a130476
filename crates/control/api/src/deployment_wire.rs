//! Deployments, runs, stacks and templates as they go over the wire.

use std::collections::BTreeMap;

use nimbus_control_app as app;
use nimbus_control_wire::{Deployment, Environment, NewDeployment, StartRun};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{maybe_time, time};

/// A deployment as answers have it. A manifest that cannot be read hides nothing else of it.
pub(crate) fn deployment(row: app::StoredDeployment) -> Deployment {
    let outline = app::outline(&row.manifest).unwrap_or_default();
    Deployment {
        id: row.id,
        organization: row.organization,
        project: row.project,
        template: row.template,
        revision: row.revision,
        created_by: row.created_by.to_string(),
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
        archived_at: maybe_time(row.archived_at),
        stacks: outline.stacks,
        environments: outline.environments,
    }
}

/// What a deployment is made from, as the use case takes it.
pub(crate) fn deployment_input(body: NewDeployment) -> app::DeploymentInput {
    app::DeploymentInput {
        id: body.id,
        organization: body.organization,
        project: body.project,
        domain: body.domain,
        template: body.template,
        description: body.description,
        accounts: body.accounts,
        variables: body.variables,
        all_stacks: body.all_stacks,
        manifest: body.manifest,
    }
}

/// One environment of a deployment as answers have it.
pub(crate) fn environment(row: app::DeploymentEnvironment) -> Environment {
    Environment {
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
        version: row.version,
        locked_by: row.locked_by,
        stacks: row.stacks,
    }
}

/// What a run is asked to do, as the use case takes it.
pub(crate) fn run_input(body: StartRun) -> app::RunInput {
    app::RunInput {
        environment: body.environment,
        rehearsal: body.rehearsal,
        force: body.force,
        parallel: body.parallel,
        components: body.stacks,
        on_failure: body.on_failure,
        transpile_only: body.transpile_only,
        to_version: body.to_version,
        forget_creates: body.forget_creates,
        allow_mass_removal: body.allow_mass_removal,
        plan: body.plan,
        skip_gate: body.skip_gate,
        message: body.message,
        orders: body.orders,
        latency_ms: body.latency_ms,
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
