//! Why a plugin could not be had.

use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode, shell_word};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::LoadError;

use crate::lookup::PluginLookupError;
use crate::tenancy::Tenancy;

#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("no plugin named {plugin}: {source}")]
    NotFound {
        plugin: String,
        source: PluginLookupError,
    },
    #[error("{} is not usable: {source}", manifest.display())]
    Manifest { manifest: PathBuf, source: Error },
    /// The language that the plugin is written in, or its SDK, is not there.
    #[error("{plugin} cannot be run: {missing}")]
    Runtime {
        plugin: String,
        missing: String,
        help: String,
    },
    /// Not the operator's, where only the operator's plugins run outside of the sandbox.
    #[error("{plugin} is not the operator's, and others run only in the sandbox here: {why}")]
    BroughtAlong { plugin: String, why: String },
    /// The operator does not let programs of strangers use it.
    #[error("{plugin} may not be used by programs of strangers: {why}")]
    NotAllowed { plugin: String, why: String },
    #[error("nothing is started any more: the run is ending")]
    Ending,
    #[error("{plugin} did not start: {reason}")]
    NotStarted { plugin: String, reason: String },
    #[error("{plugin} refused to serve: {reason}")]
    Refused { plugin: String, reason: String },
}

impl PluginError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::PLUGIN_NOT_FOUND,
            Self::Manifest { source, .. } => source.code(),
            Self::Runtime { .. } => ErrorCode::PLUGIN_RUNTIME_MISSING,
            Self::BroughtAlong { .. } => ErrorCode::PLUGIN_NOT_OPERATORS,
            Self::NotAllowed { .. } => ErrorCode::PROVIDER_NOT_ALLOWED,
            Self::NotStarted { .. } | Self::Ending => ErrorCode::PLUGIN_NOT_STARTED,
            Self::Refused { .. } => ErrorCode::PLUGIN_REFUSED,
        }
    }

    /// The error as the deployment sees it, for a package it asked for.
    pub(crate) fn for_package(
        &self,
        descriptor: &PackageDescriptor,
        tenancy: &Tenancy,
    ) -> LoadError {
        let package = descriptor.package().to_owned();
        match self {
            Self::NotFound { source, .. } => LoadError::NotFound {
                package,
                version: descriptor.version.clone(),
                reason: format!("{source}; {}", how_to_install(descriptor, tenancy)),
            },
            Self::Runtime { missing, help, .. } => LoadError::NotStarted {
                package,
                reason: format!("{missing}; {help}"),
            },
            Self::NotAllowed { .. } => LoadError::NotStarted {
                package,
                reason: format!("{self}; {HOW_TO_ALLOW}"),
            },
            Self::Manifest { .. } | Self::BroughtAlong { .. } | Self::Ending => {
                LoadError::NotStarted {
                    package,
                    reason: self.to_string(),
                }
            }
            Self::NotStarted { reason, .. } | Self::Refused { reason, .. } => {
                let reason = reason.clone();
                LoadError::NotStarted { package, reason }
            }
        }
    }
}

const HOW_TO_ALLOW: &str = "an operator who accepts that names its package in \
                            engine.sandbox_providers";

/// The command that installs what is missing. It will be pasted into a shell, and its words are the program's:
/// of a stranger's, the server is not repeated at all.
fn how_to_install(package: &PackageDescriptor, tenancy: &Tenancy) -> String {
    let version = package.version.as_ref();
    let version = version
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    let server = match package.download_url.as_str() {
        url if url.is_empty() || *tenancy != Tenancy::Single => String::new(),
        url => format!(" --server {}", shell_word(url)),
    };
    format!(
        "`nimbus plugin install {}{version}{server}` installs it",
        shell_word(&package.name)
    )
}

impl From<PluginError> for Error {
    fn from(error: PluginError) -> Self {
        match error {
            // It points into the file, which says more than we could.
            PluginError::Manifest { source, .. } => source,
            PluginError::Runtime { ref help, .. } => {
                Error::new(error.code(), error.to_string()).with_help(help.clone())
            }
            PluginError::NotFound { .. } => Error::new(error.code(), error.to_string()).with_help(
                "install it with `nimbus plugin install`, or name its folder under `plugins` in \
                     Pulumi.yaml",
            ),
            PluginError::NotAllowed { .. } => {
                Error::new(error.code(), error.to_string()).with_help(HOW_TO_ALLOW)
            }
            PluginError::BroughtAlong { .. } => Error::new(error.code(), error.to_string())
                .with_help(
                    "install it with `nimbus plugin install`, or run without engine.sandbox: strict",
                ),
            other => Error::new(other.code(), other.to_string()),
        }
    }
}

impl From<PluginLookupError> for Error {
    fn from(error: PluginLookupError) -> Self {
        let code = match error {
            PluginLookupError::NotFound { .. }
            | PluginLookupError::Folder { .. }
            | PluginLookupError::Name { .. } => ErrorCode::PLUGIN_NOT_FOUND,
            PluginLookupError::DebugProviders { .. } => ErrorCode::CONFIG_BAD_VALUE,
        };
        Error::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_plugin_names_the_command_that_installs_it() {
        let missing = || PluginError::NotFound {
            plugin: "thing".to_owned(),
            source: PluginLookupError::NotFound {
                looked: vec!["$PATH".to_owned()],
                others: Vec::new(),
            },
        };
        let mut package = PackageDescriptor {
            name: "thing".to_owned(),
            ..PackageDescriptor::default()
        };
        let text = missing()
            .for_package(&package, &Tenancy::Single)
            .to_string();
        assert!(
            text.contains("`nimbus plugin install thing` installs it"),
            "{text}"
        );
        package.version = Some(semver::Version::new(1, 2, 3));
        package.download_url = "github://api.github.com/me".to_owned();
        let text = missing()
            .for_package(&package, &Tenancy::Single)
            .to_string();
        let command = "nimbus plugin install thing 1.2.3 --server github://api.github.com/me";
        assert!(text.contains(command), "{text}");
        // What a stranger says is neither run nor asked for by whoever pastes the line.
        package.name = "thing; rm -rf x".to_owned();
        package.download_url = "https://evil.example/$(id)".to_owned();
        let text = missing()
            .for_package(&package, &Tenancy::Single)
            .to_string();
        let command =
            "plugin install 'thing; rm -rf x' 1.2.3 --server 'https://evil.example/$(id)'`";
        assert!(text.contains(command), "{text}");
        let strangers = Tenancy::Several { providers: None };
        let text = missing().for_package(&package, &strangers).to_string();
        assert!(text.contains("1.2.3` installs it"), "{text}");
        assert!(!text.contains("evil.example"), "{text}");
    }
}
