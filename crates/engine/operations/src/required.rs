//! Which plugins a program needs, and where plugins are kept: for whoever installs them.

use std::env;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::Project;
use nimbus_engine_language::{ProjectTrust, RequiredPackages, required_packages};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_plugin::PluginSearch;
use nimbus_engine_sandbox::SandboxSettings;

use crate::isolation;
use crate::processes::tenancy;
use crate::project_parts::Language;
use crate::workspace::find_project;

/// The packages that a program has installed, as far as they have plugins. What could not be
/// understood comes second.
pub async fn required_plugins(
    directory: &Path,
    sandbox: Option<&SandboxSettings>,
) -> Result<(Vec<PackageDescriptor>, Vec<String>)> {
    let (project, _) = find_project(directory, sandbox)?;
    let trust = match sandbox {
        Some(settings) => {
            let decided = isolation::decide(settings.clone()).await?;
            let root = project.directory();
            ProjectTrust::of(Some(settings), Some(&decided.sandbox), root)?
        }
        None => ProjectTrust::Own,
    };
    let Some(language) = Language::of(&project, true)? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let found = packages_of(&project, &language, true, &trust).await?;
    Ok((found.packages, found.problems))
}

/// What the installed packages of a program need. An operation that does without the program does
/// without its packages too.
pub(crate) async fn packages_of(
    project: &Project,
    language: &Language,
    needed: bool,
    trust: &ProjectTrust,
) -> Result<RequiredPackages> {
    let found = required_packages(
        language.runtime,
        &language.options,
        project.directory(),
        project.main.as_deref(),
        trust,
    );
    match found.await {
        Err(_) if !needed => Ok(RequiredPackages::default()),
        found => found.map_err(|error| error.explained(trust)),
    }
}

/// Why programs in a sandbox with these settings may not use a package, if they may not.
pub fn refused_provider(sandbox: &SandboxSettings, package: &PackageDescriptor) -> Option<String> {
    tenancy(Some(sandbox)).refuses(package)
}

/// The folder in which the engine looks for installed plugins.
pub fn plugin_folder() -> Result<PathBuf> {
    let environment = env::vars_os().collect();
    let search = PluginSearch::from_environment(&environment, Vec::new())?;
    search.installed.ok_or_else(|| {
        let message = "there is no folder for plugins: neither PULUMI_HOME nor HOME is set";
        Error::new(ErrorCode::PLUGIN_NOT_FOUND, message)
    })
}
