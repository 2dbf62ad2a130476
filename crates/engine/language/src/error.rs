//! Why a program cannot be started, and what to do about it.

use std::io;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_files::PathNotAllowed;
use nimbus_engine_sandbox::SandboxError;

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
                "use a program for nodejs or python, or run this one with the Pulumi CLI".to_owned()
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

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        Self::new(error.code(), error.to_string())
            .with_help(error.help())
            .with_source(error)
    }
}
