//! Python programs.
//!
//! The SDK has no entry point of its own: ours is handed to the interpreter as a command, so that
//! there is no file to leave behind.

mod environment;

use nimbus_engine_ports::DeploymentContext;
use nimbus_engine_sandbox::Interpreter;
use tokio::process::Command;

use crate::entry::ProgramEntry;
use crate::error::LaunchError;
use crate::spec::{ProgramSpec, json};

pub(crate) use environment::{Missing, missing_environment};
pub use environment::{PythonEnvironment, python_environment};

const LAUNCHER: &str = include_str!("launcher.py");

/// How a Python program is run; everything that could be missing was found.
#[derive(Clone, Debug)]
pub(crate) struct PythonLaunch {
    environment: PythonEnvironment,
}

impl PythonLaunch {
    pub(crate) async fn prepare(
        spec: &ProgramSpec,
        entry: &ProgramEntry,
    ) -> Result<Self, LaunchError> {
        if entry.name == "." && !spec.files.is_file(&entry.directory.join("__main__.py")) {
            return Err(LaunchError::EntryMissing {
                path: entry.directory.join("__main__.py"),
                help: "create __main__.py, or set main in Pulumi.yaml to the program's file",
            });
        }
        let trust = spec.trust();
        let found = python_environment(&spec.root, &entry.directory, &spec.options, &trust);
        let environment = found.await?;
        environment
            .require_sdk(&spec.root, &entry.directory, &trust)
            .await?;
        Ok(Self { environment })
    }

    pub(crate) fn interpreter(&self) -> Interpreter<'_> {
        self.environment.choice()
    }

    pub(crate) fn command(
        &self,
        spec: &ProgramSpec,
        entry: &ProgramEntry,
        context: &DeploymentContext,
    ) -> Command {
        let mut command = spec.environment.command(self.environment.interpreter());
        command.args(["-u", "-c", LAUNCHER]);
        let mut flag = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            if !value.as_ref().is_empty() {
                command.arg(name).arg(value.as_ref());
            }
        };
        flag("--monitor", &context.monitor_endpoint);
        flag("--engine", &context.monitor_endpoint);
        flag("--project", &context.project);
        flag("--root_directory", &spec.root);
        flag("--stack", &context.stack);
        flag("--pwd", &entry.directory);
        flag("--dry_run", &context.dry_run.to_string());
        flag("--parallel", &context.parallel.to_string());
        flag("--organization", &context.organization);
        command.arg(&entry.name).args(&spec.args);
        command.env("PULUMI_CONFIG", json(&context.config));
        command.env(
            "PULUMI_CONFIG_SECRET_KEYS",
            json(&context.config_secret_keys),
        );
        self.environment.activate(&mut command);
        command
    }
}
