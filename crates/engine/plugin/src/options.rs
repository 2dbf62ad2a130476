//! What a plugin host has to be told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_ports::EventSink;

use crate::lookup::PluginSearch;
use crate::sharing::SharedPlugins;
use crate::tenancy::Tenancy;
use crate::untrusted::UntrustedCode;

/// Everything that the plugins of one run have in common. It holds secrets, so it cannot be printed.
#[derive(Clone)]
pub struct HostOptions {
    /// `host:port` at which plugins find the engine.
    pub engine_address: String,
    /// The project's name, which dynamic providers want to know.
    pub project: String,
    /// Where plugins run: the project's folder.
    pub directory: PathBuf,
    /// Where the program is, and with it the SDK that dynamic providers come from.
    pub program_folder: PathBuf,
    /// The interpreter of a Python program.
    pub python: Option<PathBuf>,
    /// Options of the program's runtime, which plugins get as `PULUMI_RUNTIME_<OPTION>`.
    pub runtime_options: BTreeMap<String, String>,
    /// The stack's configuration as JSON, secrets in the clear. Only dynamic providers get it.
    pub config_json: Option<String>,
    /// The environment of every plugin; nothing else is passed on to them.
    pub environment: BTreeMap<OsString, OsString>,
    /// Whether plugins get all of that, and whether a program's own code may be one.
    pub tenancy: Tenancy,
    /// Where code of strangers' projects runs, if programs are strangers'.
    pub strangers: Option<UntrustedCode>,
    pub search: PluginSearch,
    pub limits: PluginTimeouts,
    /// Processes that other operations use too; `None`: all are this run's own.
    pub shared: Option<SharedPlugins>,
    /// Gets what plugins print, and warnings about them.
    pub events: Arc<dyn EventSink>,
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginTimeouts {
    /// From the start of a process to its first answer.
    pub start: Duration,
    /// A call that changes nothing: check, diff, configure, policies.
    pub quick: Duration,
    /// A call that may take long: create, read, update, delete, functions, components.
    pub slow: Duration,
    /// How much longer than a resource's own time limit to wait, so that the provider can report
    /// the excess itself.
    pub grace: Duration,
    /// From the polite request to end until the end by force.
    pub shutdown: Duration,
}

impl Default for PluginTimeouts {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        Self {
            // A machine that does many things at once may take minutes to start one interpreter.
            start: 5 * MINUTE,
            quick: 10 * MINUTE,
            slow: 24 * 60 * MINUTE,
            grace: MINUTE,
            shutdown: Duration::from_secs(5),
        }
    }
}
