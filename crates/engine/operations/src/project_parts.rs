//! What a project says about what runs: its language, where its program is, its own plugins, and packs with
//! their configuration. Only read here; `processes` starts it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::{PluginPath, Project};
use nimbus_engine_language::{Runtime, RuntimeOptions};
use nimbus_engine_plugin::{PluginKind, PolicyPackOptions, ProjectPlugin};
use serde_json::Value;

use crate::request::PolicyPackRequest;
use crate::runtime::RuntimeSetup;

/// The program's language, as the project says.
pub(crate) struct Language {
    pub(crate) runtime: Runtime,
    pub(crate) options: RuntimeOptions,
}

impl Language {
    /// An operation that runs no program gets along without a language.
    pub(crate) fn of(project: &Project, needed: bool) -> Result<Option<Self>> {
        let name = project.runtime.as_ref().map_or("", |runtime| &runtime.name);
        let runtime = match Runtime::parse(name) {
            Ok(runtime) => runtime,
            Err(_) if !needed => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let options = project.runtime.clone().unwrap_or_default().options;
        Ok(Some(Self {
            runtime,
            options: RuntimeOptions::new(options),
        }))
    }
}

/// Where the program's code is: its entry, or the folder of its entry.
pub(crate) fn program_folder(project: &Project) -> PathBuf {
    let root = project.directory();
    match project.main.as_deref() {
        None | Some("") => root.to_owned(),
        Some(main) => {
            let entry = root.join(main);
            match entry.parent() {
                Some(folder) if entry.is_file() => folder.to_owned(),
                _ => entry,
            }
        }
    }
}

pub(crate) fn project_plugins(project: &Project) -> Result<Vec<ProjectPlugin>> {
    let plugins = &project.plugins;
    let providers = plugins
        .providers
        .iter()
        .map(|path| (PluginKind::Resource, path));
    let analyzers = plugins
        .analyzers
        .iter()
        .map(|path| (PluginKind::Analyzer, path));
    providers
        .chain(analyzers)
        .map(|(kind, path)| project_plugin(kind, path, project.directory()))
        .collect()
}

fn project_plugin(kind: PluginKind, path: &PluginPath, root: &Path) -> Result<ProjectPlugin> {
    let version = path
        .version
        .as_deref()
        .map(semver::Version::parse)
        .transpose();
    let version = version.map_err(|error| {
        let message = format!(
            "the version of the plugin {} is not one: {error}",
            path.name
        );
        Error::new(ErrorCode::PROJECT_INVALID, message)
            .with_help("write it as 1.2.3 under `plugins` in Pulumi.yaml")
    })?;
    Ok(ProjectPlugin {
        kind,
        name: path.name.clone(),
        version,
        folder: root.join(&path.path),
    })
}

pub(crate) fn runtime_options(project: &Project) -> BTreeMap<String, String> {
    let options = project.runtime.iter().flat_map(|runtime| &runtime.options);
    options
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (name.clone(), text)
        })
        .collect()
}

pub(crate) fn config_json(values: &BTreeMap<String, String>) -> String {
    serde_json::to_string(values).expect("texts have a JSON form")
}

pub(crate) fn pack_options(
    request: &PolicyPackRequest,
    setup: &RuntimeSetup<'_>,
) -> Result<PolicyPackOptions> {
    let policies = request.config.as_deref().map(policy_config).transpose()?;
    Ok(PolicyPackOptions {
        folder: request.folder.clone(),
        policies,
        stack: setup.context.stack.clone(),
        project: setup.context.project.clone(),
        organization: setup.context.organization.clone(),
        dry_run: setup.request.options.dry_run,
        config: setup.config.values.clone(),
        config_secret_keys: setup.config.secret_keys.clone(),
        tags: setup.tags.clone(),
    })
}

fn policy_config(path: &Path) -> Result<serde_json::Map<String, Value>> {
    let shown = path.display();
    // tidy-allow(read): the operator names it on the command line
    let text = std::fs::read(path).map_err(|error| {
        Error::new(
            ErrorCode::FILE_UNREADABLE,
            format!("cannot read {shown}: {error}"),
        )
        .with_source(error)
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        let message = format!("{shown} is not a JSON object: {error}");
        Error::new(ErrorCode::DOCUMENT_SHAPE, message)
            .with_help("write an object with one member per policy")
    })
}
