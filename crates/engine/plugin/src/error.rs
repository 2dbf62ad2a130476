//! Why a plugin could not be had.

use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_ports::LoadError;

use crate::lookup::LookupError;

#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("no plugin named {plugin}: {source}")]
    NotFound { plugin: String, source: LookupError },
    #[error("{} is not usable: {source}", manifest.display())]
    Manifest { manifest: PathBuf, source: Error },
    /// The language that the plugin is written in, or its SDK, is not there.
    #[error("{plugin} cannot be run: {missing}")]
    Runtime {
        plugin: String,
        missing: String,
        help: String,
    },
    /// A tenant's own code, where code of tenants runs only in the sandbox.
    #[error("{plugin} is code of the program itself, and that runs only in the sandbox here")]
    BroughtAlong { plugin: String },
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
            Self::BroughtAlong { .. } => ErrorCode::ISOLATION_WEAK,
            Self::NotStarted { .. } => ErrorCode::PLUGIN_NOT_STARTED,
            Self::Refused { .. } => ErrorCode::PLUGIN_REFUSED,
        }
    }

    /// The error as the deployment sees it, for a package it asked for.
    pub(crate) fn for_package(self, package: &str, version: Option<&semver::Version>) -> LoadError {
        let package = package.to_owned();
        match self {
            Self::NotFound { source, .. } => LoadError::NotFound {
                package,
                version: version.cloned(),
                reason: source.to_string(),
            },
            Self::Runtime { missing, help, .. } => LoadError::NotStarted {
                package,
                reason: format!("{missing}; {help}"),
            },
            Self::Manifest { .. } | Self::BroughtAlong { .. } => LoadError::NotStarted {
                package,
                reason: self.to_string(),
            },
            Self::NotStarted { reason, .. } | Self::Refused { reason, .. } => {
                LoadError::NotStarted { package, reason }
            }
        }
    }
}

impl From<PluginError> for Error {
    fn from(error: PluginError) -> Self {
        match error {
            // It points into the file, which says more than we could.
            PluginError::Manifest { source, .. } => source,
            PluginError::Runtime { ref help, .. } => {
                Error::new(error.code(), error.to_string()).with_help(help.clone())
            }
            PluginError::NotFound { .. } => Error::new(error.code(), error.to_string())
                .with_help("install the plugin, or name its folder under `plugins` in Pulumi.yaml"),
            PluginError::BroughtAlong { .. } => Error::new(error.code(), error.to_string())
                .with_help("use an installed provider, or run without engine.sandbox: strict"),
            other => Error::new(other.code(), other.to_string()),
        }
    }
}

impl From<LookupError> for Error {
    fn from(error: LookupError) -> Self {
        let code = match error {
            LookupError::NotFound { .. } | LookupError::Folder { .. } => {
                ErrorCode::PLUGIN_NOT_FOUND
            }
            LookupError::DebugProviders { .. } => ErrorCode::CONFIG_BAD_VALUE,
        };
        Error::new(code, error.to_string())
    }
}
