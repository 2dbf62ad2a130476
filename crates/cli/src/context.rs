//! What a command is given: where it runs, how it writes, and the settings when it asks for them.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use nimbus_config::{AddressList, FlagValue, LoadedSettings, SandboxMode, SettingOrigin, Sources};
use nimbus_core::{Error, ErrorCode, Result, TraceId};
use nimbus_engine_backend::KeyServices;

use crate::args::GlobalArgs;
use crate::commands::NimbusCommand;
use crate::output::CommandOutput;

/// The server that was named, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedServer {
    pub(crate) url: String,
    /// On the command line; else by NIMBUS_SERVER.
    pub(crate) by_flag: bool,
}

impl NamedServer {
    /// What is empty names nothing, so that a variable can be switched off for one command.
    fn of(flag: Option<&String>) -> Option<Self> {
        let named = match flag {
            Some(url) => Self {
                url: url.clone(),
                by_flag: true,
            },
            None => Self {
                url: env::var("NIMBUS_SERVER").ok()?,
                by_flag: false,
            },
        };
        (!named.url.is_empty()).then_some(named)
    }
}

pub(crate) struct CommandContext {
    /// The name by which the program was called, for messages that name a command.
    pub(crate) program: &'static str,
    pub(crate) output: CommandOutput,
    /// Joins everything this command logs, traces and reports.
    pub(crate) trace_id: TraceId,
    /// Working directory, after `-C`.
    pub(crate) directory: PathBuf,
    /// `KEY=VALUE` of `--config`, for the commands that take them.
    pub(crate) assignments: Vec<String>,
    /// The server to work on instead of local files.
    pub(crate) server: Option<NamedServer>,
    sources: Sources,
    loaded: OnceLock<LoadedSettings>,
}

impl CommandContext {
    pub(crate) fn new(
        program: &'static str,
        global: &GlobalArgs,
        output: CommandOutput,
        trace_id: TraceId,
        directory: PathBuf,
        command: &NimbusCommand,
    ) -> Result<Self> {
        let (file, assignments) = settings_and_assignments(&global.config)?;
        let log_level = global.log_level.clone().map(|value| FlagValue {
            path: "logging.level",
            flag: "--log-level",
            value,
        });
        let sources = Sources {
            directory: directory.clone(),
            owner: command.directory_owner(),
            file,
            environment: env::vars_os().collect(),
            // Known before the settings are read: it decides what a file in a project may say.
            flags: log_level
                .into_iter()
                .chain(command.sandbox_flag())
                .collect(),
        };
        Ok(Self {
            program,
            output,
            trace_id,
            directory,
            assignments,
            server: NamedServer::of(global.server.as_ref()),
            sources,
            loaded: OnceLock::new(),
        })
    }

    /// The same command somewhere else: in another directory, and on local files.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self {
            program: self.program,
            output: self.output,
            trace_id: self.trace_id,
            sources: Sources {
                directory: directory.clone(),
                ..self.sources.clone()
            },
            directory,
            assignments: self.assignments.clone(),
            server: None,
            loaded: OnceLock::new(),
        }
    }

    /// The settings in force, read once. A command that does not ask is not stopped by a mistake
    /// in the file.
    pub(crate) fn settings(&self) -> Result<&LoadedSettings> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = nimbus_config::load(&self.sources)?;
        for secret in loaded.settings.secrets() {
            nimbus_telemetry::register_secret(secret);
        }
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Which services this command may ask for keys.
    pub(crate) fn key_services(&self) -> Result<KeyServices> {
        let engine = &self.settings()?.settings.engine;
        if engine.sandbox.value != SandboxMode::Strict {
            return Ok(KeyServices::Any);
        }
        let named = engine.sandbox_secrets.value.iter();
        let named = named.flat_map(AddressList::addresses).cloned();
        Ok(KeyServices::Only(named.collect()))
    }
}

/// What `--config` names: a file with settings of Nimbus, and values for the configuration of a
/// stack. A file whose name has a `=` in it can be given as `./name`.
fn settings_and_assignments(given: &[PathBuf]) -> Result<(Option<PathBuf>, Vec<String>)> {
    let assigned = |path: &PathBuf| {
        let text = path.to_str()?;
        let (key, _) = text.split_once('=')?;
        (!key.contains('/')).then(|| text.to_owned())
    };
    let mut files = given.iter().filter(|path| assigned(path).is_none());
    let file = files.next().cloned();
    if let Some(second) = files.next() {
        let message = format!(
            "--config names a second settings file, {}",
            second.display()
        );
        return Err(Error::new(ErrorCode::USAGE, message).with_help("give one"));
    }
    Ok((file, given.iter().filter_map(assigned).collect()))
}

/// Whether somebody chose this value.
pub(crate) fn is_chosen(origin: &SettingOrigin) -> bool {
    *origin != SettingOrigin::Default
}
