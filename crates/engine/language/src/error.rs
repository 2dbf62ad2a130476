//! Why a program cannot be started, and what to do about it.

use std::io;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_files::{PathNotAllowed, ProjectFiles};
use nimbus_engine_sandbox::SandboxError;

use crate::trust::ProjectTrust;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("runtime {runtime} needs its own language host; Nimbus runs nodejs and python")]
    UnsupportedRuntime { runtime: String },
    #[error("the runtime option {option} in Pulumi.yaml must be {expected}")]
    BadOption {
        option: &'static str,
        expected: &'static str,
    },
    #[error("there is no {tool} on the PATH")]
    ToolMissing { tool: &'static str },
    #[error("the Pulumi SDK @pulumi/pulumi is not installed for {}", directory.display())]
    NodeSdkMissing {
        directory: PathBuf,
        /// The command that installs it.
        install: String,
    },
    #[error("{} is not a Python virtual environment", path.display())]
    VirtualenvMissing { path: PathBuf, create: String },
    #[error("poetry does not know a virtual environment for {}: {message}", directory.display())]
    PoetryEnvironment { directory: PathBuf, message: String },
    #[error("the Pulumi SDK is not installed for {}", interpreter.display())]
    PythonSdkMissing {
        interpreter: PathBuf,
        install: String,
    },
    #[error("the packages of {} could not be installed:\n{message}", directory.display())]
    PackagesNotInstalled {
        directory: PathBuf,
        /// What was run there.
        command: &'static str,
        /// Whether it was for want of a network.
        offline: bool,
        message: String,
    },
    #[error("there is no program at {}", path.display())]
    EntryMissing { path: PathBuf, help: &'static str },
    #[error(transparent)]
    Outside(PathNotAllowed),
    #[error(
        "{} wants poetry to be asked for its virtual environment, and poetry runs what the project \
         says", directory.display()
    )]
    PoetryNotAsked { directory: PathBuf },
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("{what} could not be started")]
    NotStarted {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl LaunchError {
    /// From what the reader of a project's files says.
    pub(crate) fn outside(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(outside) => Self::Outside(PathNotAllowed::clone(outside)),
            None => Self::NotStarted {
                what: "the program".to_owned(),
                source: error,
            },
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::UnsupportedRuntime { .. } => ErrorCode::RUNTIME_UNSUPPORTED,
            Self::BadOption { .. } => ErrorCode::RUNTIME_OPTION,
            Self::ToolMissing { .. } => ErrorCode::TOOL_MISSING,
            Self::NodeSdkMissing { .. } | Self::PythonSdkMissing { .. } => ErrorCode::SDK_MISSING,
            Self::VirtualenvMissing { .. } | Self::PoetryEnvironment { .. } => {
                ErrorCode::VIRTUALENV_MISSING
            }
            Self::PackagesNotInstalled { .. } => ErrorCode::PACKAGES_NOT_INSTALLED,
            Self::EntryMissing { .. } => ErrorCode::PROGRAM_MISSING,
            Self::Outside(_) => ErrorCode::OUTSIDE_PROJECT,
            Self::PoetryNotAsked { .. } => ErrorCode::VIRTUALENV_MISSING,
            Self::Sandbox(error) => error.code(),
            Self::NotStarted { .. } => ErrorCode::PROGRAM_NOT_STARTED,
        }
    }

    /// What to do next.
    pub fn help(&self) -> String {
        match self {
            Self::UnsupportedRuntime { .. } => {
                "use a program for nodejs or python, or run this one with the Pulumi CLI: --engine pulumi".to_owned()
            }
            Self::BadOption { option, expected } => {
                format!("set runtime.options.{option} in Pulumi.yaml to {expected}")
            }
            Self::ToolMissing { tool } => format!("install {tool} and make sure it is on the PATH"),
            Self::NodeSdkMissing { install, .. } | Self::PythonSdkMissing { install, .. } => {
                format!("run: {install}")
            }
            Self::VirtualenvMissing { create, .. } => format!("run: {create}"),
            Self::PoetryEnvironment { directory, .. } => {
                format!("run: cd {} && poetry install", directory.display())
            }
            Self::PackagesNotInstalled {
                directory,
                command,
                offline,
                ..
            } => {
                let directory = directory.display();
                if *offline {
                    format!(
                        "connect to the package registry, or run {command} in {directory} where there is one"
                    )
                } else {
                    format!("run: cd {directory} && {command}")
                }
            }
            Self::EntryMissing { help, .. } => (*help).to_owned(),
            Self::Outside(outside) => {
                let error = SandboxError::Outside(outside.clone());
                error.help().to_owned()
            }
            Self::PoetryNotAsked { directory } => format!(
                "run: cd {} && poetry config virtualenvs.in-project true --local && poetry install",
                directory.display()
            ),
            Self::Sandbox(error) => error.help().to_owned(),
            Self::NotStarted { .. } => {
                "look at the cause; the machine may be out of processes, memory or descriptors"
                    .to_owned()
            }
        }
    }
}

/// What to do about packages of a stranger's project. Installing runs what the project and its packages
/// say, as whoever installs.
const INSTALL_FOR_STRANGERS: &str = "its packages are not installed, and installing them here would run \
    scripts of the project outside of the sandbox: install them with scripts off (npm ci \
    --ignore-scripts; pip install --only-binary :all: -r requirements.txt; uv sync --no-build \
    --no-install-project), or somewhere where they do no harm, such as a container";

impl LaunchError {
    /// What to do next, which depends on whose the project is.
    pub fn help_for(&self, files: &ProjectFiles) -> String {
        let installs = matches!(
            self,
            Self::NodeSdkMissing { .. }
                | Self::PythonSdkMissing { .. }
                | Self::VirtualenvMissing { .. }
                | Self::PoetryEnvironment { .. }
                | Self::PoetryNotAsked { .. }
                | Self::PackagesNotInstalled { .. }
        );
        match self {
            _ if !installs || !files.is_restricted() => self.help(),
            Self::PoetryNotAsked { .. } => format!(
                "{INSTALL_FOR_STRANGERS}; poetry is found only where it keeps its environment in the \
                 project (virtualenvs.in-project)"
            ),
            _ => INSTALL_FOR_STRANGERS.to_owned(),
        }
    }

    /// As an error with help that fits the project.
    pub fn explained(self, trust: &ProjectTrust) -> Error {
        let help = self.help_for(trust.files());
        Error::new(self.code(), self.to_string())
            .with_help(help)
            .with_source(self)
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        Self::new(error.code(), error.to_string())
            .with_help(error.help())
            .with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_run_a_strangers_scripts() {
        let folder = tempfile::tempdir().expect("a folder");
        let strangers = ProjectFiles::beneath(folder.path(), &[]).expect("a kernel with openat2");
        let directory = folder.path().to_owned();
        let missing = LaunchError::NodeSdkMissing {
            directory: directory.clone(),
            install: "npm install".to_owned(),
        };
        assert_eq!(
            missing.help_for(&ProjectFiles::UNRESTRICTED),
            "run: npm install"
        );
        let poetry = LaunchError::PoetryNotAsked { directory };
        for error in [missing, poetry] {
            let help = error.help_for(&strangers);
            assert!(help.contains("npm ci --ignore-scripts"), "{help}");
            assert!(!help.contains("run:"), "{help}");
        }
        let tool = LaunchError::ToolMissing { tool: "node" };
        assert_eq!(tool.help_for(&strangers), tool.help());
    }
}
