//! Which provider plugins the program's packages need.
//!
//! Each package of a provider says so itself: in the `pulumi` section of its `package.json`, or in
//! a `pulumi-plugin.json` beside its Python code. What cannot be read is reported and passed over:
//! this list only helps to have plugins ready, and to choose versions that a request leaves open.

mod node;
mod python;

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::{PackageDescriptor, Parameterization};
use semver::Version;
use serde::Deserialize;

use crate::entry::ProgramEntry;
use crate::error::LaunchError;
use crate::options::RuntimeOptions;
use crate::python::python_environment;
use crate::spec::Runtime;
use crate::trust::ProjectTrust;

/// What was found.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RequiredPackages {
    /// Sorted, each once.
    pub packages: Vec<PackageDescriptor>,
    /// Packages that could not be understood.
    pub problems: Vec<String>,
}

/// Looks through the packages that a program has installed.
pub async fn required_packages(
    runtime: Runtime,
    options: &RuntimeOptions,
    root: &Path,
    main: Option<&str>,
    trust: &ProjectTrust,
) -> Result<RequiredPackages, LaunchError> {
    let files = trust.files().clone();
    let entry = ProgramEntry::find(&files, root, main)?;
    let mut found = match runtime {
        Runtime::Node => {
            let directory = entry.directory;
            let search = tokio::task::spawn_blocking(move || node::search(&files, &directory));
            search.await.unwrap_or_default()
        }
        Runtime::Python => {
            let environment = python_environment(root, &entry.directory, options, trust).await?;
            let directories = environment.package_directories(root, trust);
            let directories = directories.await;
            let search = tokio::task::spawn_blocking(move || python::search(&directories));
            search.await.unwrap_or_default()
        }
    };
    found.packages.sort();
    found.packages.dedup();
    Ok(found)
}

/// The package to use when a request does not say which version: the newest of each.
pub fn default_packages(packages: &[PackageDescriptor]) -> BTreeMap<String, PackageDescriptor> {
    let mut newest: BTreeMap<String, PackageDescriptor> = BTreeMap::new();
    for package in packages {
        let known = newest.get(package.package());
        if known.is_none_or(|known| known.package_version() < package.package_version()) {
            newest.insert(package.package().to_owned(), package.clone());
        }
    }
    newest
}

/// What a package says about the plugin that it needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PluginInfo {
    /// There is a plugin.
    resource: bool,
    name: Option<String>,
    version: Option<String>,
    server: Option<String>,
    parameterization: Option<ParameterInfo>,
    #[serde(rename = "extensionParameterization")]
    extension: Option<ParameterInfo>,
}

#[derive(Clone, Debug, Deserialize)]
struct ParameterInfo {
    name: String,
    version: String,
    /// Base64.
    value: String,
}

impl PluginInfo {
    /// The package that needs it; `None` when there is no plugin to have of its own.
    fn describe(
        self,
        name: &str,
        version: Option<Version>,
    ) -> Result<Option<PackageDescriptor>, String> {
        if !self.resource || self.extension.is_some() {
            return Ok(None);
        }
        let version = match self.version.filter(|text| !text.is_empty()) {
            Some(text) => Some(parse(&text)?),
            None => version,
        };
        let parameterization = self.parameterization.map(ParameterInfo::read).transpose()?;
        Ok(Some(PackageDescriptor {
            name: self.name.unwrap_or_else(|| name.to_owned()),
            version,
            download_url: self.server.unwrap_or_default(),
            checksums: BTreeMap::new(),
            parameterization,
            ..PackageDescriptor::default()
        }))
    }
}

impl ParameterInfo {
    fn read(self) -> Result<Parameterization, String> {
        let value = STANDARD.decode(&self.value);
        Ok(Parameterization {
            version: parse(&self.version)?,
            value: value.map_err(|_| "its parameter is not base64".to_owned())?,
            name: self.name,
        })
    }
}

fn parse(version: &str) -> Result<Version, String> {
    let text = version.strip_prefix('v').unwrap_or(version);
    Version::parse(text).map_err(|error| format!("its version {version:?} is none: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_default() {
        let package = |name: &str, version: Option<Version>| PackageDescriptor {
            name: name.to_owned(),
            version,
            ..PackageDescriptor::default()
        };
        let packages = [
            package("aws", Some(Version::new(7, 1, 0))),
            package("aws", Some(Version::new(6, 9, 0))),
            package("aws", None),
            package("random", None),
        ];
        let defaults = default_packages(&packages);
        assert_eq!(defaults["aws"].version, Some(Version::new(7, 1, 0)));
        assert_eq!(defaults["random"].version, None);
    }
}
