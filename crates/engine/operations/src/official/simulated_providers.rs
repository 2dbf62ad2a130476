//! A simulated cloud for the official command line, which attaches to it instead of starting plugins.
//!
//! One port serves each package that can turn up: those of the program's SDKs, those that its text
//! or its project names, and those of the recorded state. Nothing real may be reached by accident,
//! so the command line is also kept from every plugin that is installed: what is not simulated
//! fails.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::Project;
use nimbus_engine_language::{ProjectTrust, default_packages};
use nimbus_engine_model::{PackageDescriptor, Snapshot, provider_package};
use nimbus_engine_ports::ProviderHost;
use nimbus_engine_serve::ProviderServer;
use tempfile::TempDir;

use super::tokens::packages_below;
use crate::project_parts::Language;
use crate::required::packages_of;

/// Providers whose code is in the program; in a rehearsal they are simulated like all others.
const DYNAMIC: [&str; 2] = ["pulumi-nodejs", "pulumi-python"];

/// Serves until dropped.
pub(super) struct SimulatedProviders {
    /// `<package>:<port>` of each, in the form that the command line takes.
    ports: String,
    _servers: Vec<ProviderServer>,
    /// Without any plugins.
    home: TempDir,
}

impl SimulatedProviders {
    pub(super) async fn set(
        host: &Arc<dyn ProviderHost>,
        project: &Project,
        recorded: &Snapshot,
        needs_program: bool,
    ) -> Result<Self> {
        let mut ports = Vec::new();
        let mut servers = Vec::new();
        for (name, package) in packages(project, recorded, needs_program).await? {
            let server = ProviderServer::start(Arc::clone(host), package).await;
            let server = server.map_err(|error| {
                Error::new(ErrorCode::INTERNAL, "no local port can be opened").with_source(error)
            })?;
            ports.push(format!("{name}:{}", server.port()));
            servers.push(server);
        }
        Ok(Self {
            ports: ports.join(","),
            _servers: servers,
            home: empty_folder()?,
        })
    }

    /// Lets a command attach to what is served here and find no other plugin.
    pub(super) fn lead(&self, command: &mut Command) {
        command
            .env("PULUMI_DEBUG_PROVIDERS", &self.ports)
            .env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
            .env("PULUMI_IGNORE_AMBIENT_PLUGINS", "true")
            .env("PULUMI_HOME", self.home.path());
    }
}

pub(super) fn empty_folder() -> Result<TempDir> {
    tempfile::tempdir().map_err(|error| {
        let message = format!("there is no place for temporary files: {error}");
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })
}

/// By the name of their plugin. The command line knows no versions here: one port serves all.
async fn packages(
    project: &Project,
    recorded: &Snapshot,
    needs_program: bool,
) -> Result<BTreeMap<String, PackageDescriptor>> {
    let named = |name: &str| PackageDescriptor {
        name: name.to_owned(),
        ..PackageDescriptor::default()
    };
    let resources = recorded.resources.iter();
    let in_state = resources.filter_map(|state| provider_package(&state.type_));
    let brought = project.plugins.providers.iter();
    let brought = brought.map(|plugin| plugin.name.as_str());
    let folder = project.directory().to_owned();
    let written = tokio::task::spawn_blocking(move || packages_below(&folder)).await;
    let written = written.unwrap_or_default();
    let written = written.iter().map(String::as_str);
    let names = in_state.chain(brought).chain(written).chain(DYNAMIC);
    let mut packages: BTreeMap<_, _> = names.map(|name| (name.to_owned(), named(name))).collect();
    for package in of_program(project, needs_program).await? {
        let plain = PackageDescriptor {
            parameterization: None,
            ..package
        };
        packages.insert(plain.name.clone(), plain);
    }
    Ok(packages)
}

async fn of_program(project: &Project, needed: bool) -> Result<Vec<PackageDescriptor>> {
    let Some(language) = Language::of(project, needed)? else {
        return Ok(Vec::new());
    };
    let found = packages_of(project, &language, needed, &ProjectTrust::Own).await?;
    Ok(default_packages(&found.packages).into_values().collect())
}
