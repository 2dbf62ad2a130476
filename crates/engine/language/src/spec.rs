//! What is run, and with whom.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_monitor::{AssetReader, HookRegistry, Listen, RunningResources};
use nimbus_engine_ports::{DeploymentContext, EventSink};
use nimbus_engine_process::{CodeIsolation, CodeOrigin};
use nimbus_engine_sandbox::Sandbox;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::check::TypeChecker;
use crate::error::LaunchError;
use crate::options::RuntimeOptions;
use crate::trust::ProjectTrust;
use crate::warm::WarmStarts;

/// A program and the deployment that it is run for.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    pub runtime: Runtime,
    pub options: RuntimeOptions,
    /// Where `Pulumi.yaml` is.
    pub root: PathBuf,
    /// A directory or file below the root; `None` for the root itself.
    pub main: Option<String>,
    /// Its endpoint is filled in when the program is started.
    pub context: DeploymentContext,
    /// Arguments of the program itself.
    pub args: Vec<String>,
    pub environment: ProgramEnvironment,
    pub listen: Listen,
    /// Where compiled TypeScript is kept between runs. `None`: where ts-node likes to, which is a
    /// directory shared by everybody on the machine.
    pub typescript_cache: Option<PathBuf>,
    /// Compile TypeScript without checking its types.
    pub transpile_only: bool,
    /// Who checks types beside the start of programs. Without one, the SDK compiles and checks.
    pub checker: Option<Arc<TypeChecker>>,
    /// Who starts processes ahead. Without one, each is started when it is needed.
    pub warm: Option<Arc<WarmStarts>>,
    /// What the program's installed packages need, by package.
    pub packages: BTreeMap<String, PackageDescriptor>,
    /// Where the program runs; `None`: among everything else, as its user.
    pub sandbox: Option<Sandbox>,
    /// Opens the files of the project.
    pub files: ProjectFiles,
    /// Folders of the operator that assets of one's own program in a sandbox may lie in.
    pub readable: Vec<PathBuf>,
    /// How long a program may take to end when asked to, before it is made to.
    pub grace: Duration,
}

impl ProgramSpec {
    /// Whose the project is.
    pub(crate) fn trust(&self) -> ProjectTrust {
        match (&self.sandbox, self.files.is_restricted()) {
            (Some(sandbox), true) => ProjectTrust::Stranger {
                files: self.files.clone(),
                sandbox: Box::new(sandbox.without_network()),
            },
            _ => ProjectTrust::Own,
        }
    }

    /// Whose code the program's process runs.
    pub(crate) fn origin(&self) -> CodeOrigin {
        CodeOrigin::Tenants(match self.sandbox {
            Some(_) => CodeIsolation::Sandbox,
            None => CodeIsolation::OwnProject,
        })
    }
}

/// The languages whose programs can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Node,
    Python,
}

impl Runtime {
    /// Reads `runtime` or `runtime.name` of `Pulumi.yaml`.
    pub fn parse(name: &str) -> Result<Self, LaunchError> {
        match name {
            "nodejs" => Ok(Self::Node),
            "python" => Ok(Self::Python),
            other => Err(LaunchError::UnsupportedRuntime {
                runtime: other.to_owned(),
            }),
        }
    }
}

/// What a program sees of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEnvironment {
    /// All of ours, and these.
    Inherit(BTreeMap<OsString, OsString>),
    /// Nothing but these.
    Only(BTreeMap<OsString, OsString>),
}

impl ProgramEnvironment {
    /// What a program sees under a name.
    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        let name = OsStr::new(name);
        match self {
            Self::Inherit(more) => more.get(name).cloned().or_else(|| std::env::var_os(name)),
            Self::Only(all) => all.get(name).cloned(),
        }
    }

    /// A command that sees this environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let variables = match self {
            Self::Inherit(more) => {
                // Said explicitly, so that whoever extends it finds it.
                if let Some(path) = std::env::var_os("PATH") {
                    command.env("PATH", path);
                }
                more
            }
            Self::Only(all) => {
                command.env_clear();
                all
            }
        };
        command.envs(variables);
        command
    }
}

/// Whom the program's run works with.
#[derive(Clone)]
pub struct ProgramPorts {
    pub events: Arc<dyn EventSink>,
    /// The deployment calls the same registry when it runs hooks.
    pub hooks: Arc<HookRegistry>,
    pub assets: Arc<dyn AssetReader>,
    pub resources: Arc<RunningResources>,
    /// Ends the program.
    pub cancel: CancellationToken,
}

/// Configuration as programs get it in their environment.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("maps and sets of strings have a JSON form")
}
