//! What a command is given: where it runs, how it writes, and the settings when it asks for them.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use nimbus_config::{FlagValue, Loaded, Origin, Sources};
use nimbus_core::{Result, TraceId};

use crate::args::GlobalArgs;
use crate::output::Output;

pub(crate) struct Context {
    /// The name by which the program was called, for messages that name a command.
    pub(crate) program: &'static str,
    pub(crate) output: Output,
    /// Joins everything this command logs, traces and reports.
    pub(crate) trace_id: TraceId,
    /// Working directory, after `-C`.
    pub(crate) directory: PathBuf,
    sources: Sources,
    loaded: OnceLock<Loaded>,
}

impl Context {
    pub(crate) fn new(
        program: &'static str,
        global: &GlobalArgs,
        output: Output,
        trace_id: TraceId,
        directory: PathBuf,
    ) -> Self {
        let log_level = global.log_level.clone().map(|value| FlagValue {
            path: "logging.level",
            flag: "--log-level",
            value,
        });
        let sources = Sources {
            directory: directory.clone(),
            file: global.config.clone(),
            environment: env::vars_os().collect(),
            flags: log_level.into_iter().collect(),
        };
        Self {
            program,
            output,
            trace_id,
            directory,
            sources,
            loaded: OnceLock::new(),
        }
    }

    /// The settings in force, read once. A command that does not ask is not stopped by a mistake
    /// in the file.
    pub(crate) fn settings(&self) -> Result<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = nimbus_config::load(&self.sources)?;
        for secret in loaded.settings.secrets() {
            nimbus_telemetry::register_secret(secret);
        }
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// Whether somebody chose this value.
pub(crate) fn is_chosen(origin: &Origin) -> bool {
    *origin != Origin::Default
}
