//! Code of a project that is not the operator's that serves as a plugin: dynamic providers and policy packs.
//!
//! It runs in a sandbox like the program that it belongs to: with the same view, the network that
//! the stack was given, and no credentials. It finds the engine at a socket that only it has, and
//! the engine reaches it through the sandbox.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_ports::EventSink;
use nimbus_engine_process::{CodeIsolation, CodeOrigin};
use nimbus_engine_sandbox::{
    Dialer, Interpreter, Intervention, Sandbox, SandboxSession, readable_by_program,
};

use crate::pool::{CallbackServer, CallbackServers};
use crate::process::{LaunchProgram, PluginLaunch, PluginOutput, PluginProcess, StartError};

/// Where untrusted code runs.
#[derive(Clone)]
pub struct UntrustedCode {
    pub sandbox: Sandbox,
    /// Folders of the operator that its projects may lead into.
    pub roots: Vec<PathBuf>,
    pub servers: Arc<dyn CallbackServers>,
}

/// What such a plugin needs as long as it runs. Dropped after its process.
pub(crate) struct Enclosed {
    pub(crate) address: String,
    pub(crate) dialer: Option<Dialer>,
    session: SandboxSession,
    command: Command,
    _server: Box<dyn Send + Sync>,
}

impl UntrustedCode {
    /// Opens files of a folder of source.
    pub(crate) fn files_of(&self, folder: &Path) -> Result<ProjectFiles, String> {
        ProjectFiles::beneath(folder, &self.roots).map_err(|error| error.to_string())
    }

    /// Prepares a sandbox for a launch. `root` is the folder that it belongs to; `engine` is the
    /// address that its arguments have, and that it cannot reach.
    pub(crate) async fn enclose(
        &self,
        launch: &PluginLaunch,
        root: &Path,
        engine: &str,
        audience: Arc<dyn EventSink>,
    ) -> Result<Enclosed, String> {
        let files = self.files_of(root)?;
        let root = files
            .canonicalize(root)
            .map_err(|error| error.to_string())?;
        let mut session = self.sandbox.open().map_err(|error| error.to_string())?;
        let most = session.policy().limits.request_bytes;
        let server = self.servers.open_at(session.socket(), audience, most).await;
        let CallbackServer { address, server } = server.map_err(|error| error.to_string())?;
        let interpreter = match &launch.program {
            LaunchProgram::Named(path) => Interpreter::Projects(path),
            LaunchProgram::OnPath(path) => Interpreter::Operators(path),
        };
        let readable = readable_by_program(&files, &root, &root, interpreter);
        let readable = readable.map_err(|error| error.to_string())?;
        let arguments = launch.arguments.iter().map(|argument| match argument {
            argument if *argument == *engine => address.clone().into(),
            argument => argument.clone(),
        });
        let mut command = Command::new(launch.program.path());
        command
            .args(arguments)
            .current_dir(&launch.directory)
            .envs(&launch.environment);
        let command = session.enclose(&command, &readable, &[]);
        Ok(Enclosed {
            address,
            dialer: session.dialer(),
            command: command.map_err(|error| error.to_string())?,
            session,
            _server: server,
        })
    }
}

impl Enclosed {
    /// How much it may print.
    pub(crate) fn most_output(&self) -> u64 {
        self.session.policy().limits.output_bytes
    }

    /// Starts what was enclosed.
    pub(crate) async fn start(
        &mut self,
        label: &str,
        output: PluginOutput,
        patience: std::time::Duration,
    ) -> Result<(PluginProcess, NonZeroU16), String> {
        let command = std::mem::replace(&mut self.command, Command::new(""));
        let origin = CodeOrigin::Tenants(CodeIsolation::Sandbox);
        let output = output.up_to(self.most_output());
        let started = PluginProcess::start(command, origin, label, output, patience).await;
        started.map_err(|error| self.because(&error))
    }

    /// What the sandbox did is a better reason than what came of it.
    fn because(&self, error: &StartError) -> String {
        match self.session.intervention() {
            Some(Intervention::Stopped(cause)) => format!("it was stopped: {cause}"),
            Some(Intervention::NotRun { step, reason }) => format!("{step}: {reason}"),
            None => error.to_string(),
        }
    }
}
