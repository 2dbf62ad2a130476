//! How tests find third-party tools, start them, and say that one is missing.
//!
//! `cargo xtask test` installs the tools and names them in the environment. A test that needs one
//! begins with [`tool_or_skip!`]; without the tool the test returns early and is counted as skipped
//! in the closing summary, never as passed. Nothing here installs anything.

mod aws;
mod compile_cache;
mod credential_services;

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

pub use aws::AwsServer;
pub use compile_cache::compile_cache;
pub use credential_services::CredentialServices;

/// A tool that `cargo xtask setup` may have installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// A folder with the `node_modules` of the Pulumi Node SDK.
    NodeSdk,
    /// A Python interpreter that has the Pulumi SDK.
    Python,
    /// An S3 server: `moto_server -H HOST -p PORT`.
    S3Server,
    /// A Python interpreter that has schemathesis.
    Schemathesis,
    /// The official `pulumi` program, its language hosts beside it.
    PulumiCli,
    /// A folder of `pulumi-resource-*` programs.
    ProviderPlugins,
    /// A folder with `initdb` and `postgres`.
    Postgres,
    /// The shipped `stacks` folder with its packages installed.
    Library,
    /// The `promtool` of Prometheus.
    Promtool,
    /// Helm, version 3.
    Helm,
    /// A Valkey (or Redis) server.
    Valkey,
    /// A folder with the `node_modules` of the Socket.IO client.
    SocketIoClient,
    /// Temporal's `temporal`, which has its development server.
    Temporal,
}

impl Tool {
    fn variable(self) -> &'static str {
        match self {
            Self::NodeSdk => "NIMBUS_TEST_NODE_SDK",
            Self::Python => "NIMBUS_TEST_PYTHON",
            Self::S3Server => "NIMBUS_TEST_MOTO",
            Self::Schemathesis => "NIMBUS_TEST_SCHEMATHESIS",
            Self::PulumiCli => "NIMBUS_TEST_PULUMI",
            Self::ProviderPlugins => "NIMBUS_TEST_PLUGINS",
            Self::Postgres => "NIMBUS_TEST_POSTGRES",
            Self::Library => "NIMBUS_TEST_LIBRARY",
            Self::Promtool => "NIMBUS_TEST_PROMTOOL",
            Self::Helm => "NIMBUS_TEST_HELM",
            Self::Valkey => "NIMBUS_TEST_VALKEY",
            Self::SocketIoClient => "NIMBUS_TEST_SOCKET_IO",
            Self::Temporal => "NIMBUS_TEST_TEMPORAL",
        }
    }

    fn absence(self) -> &'static str {
        match self {
            Self::NodeSdk => "no Node SDK",
            Self::Python => "no Python SDK",
            Self::S3Server => "no S3 server",
            Self::Schemathesis => "no schemathesis",
            Self::PulumiCli => "no pulumi CLI",
            Self::ProviderPlugins => "no provider plugins",
            Self::Postgres => "no PostgreSQL",
            Self::Library => "no packages of the library",
            Self::Promtool => "no promtool",
            Self::Helm => "no helm",
            Self::Valkey => "no Valkey",
            Self::SocketIoClient => "no Socket.IO client",
            Self::Temporal => "no Temporal server",
        }
    }

    /// Where the tool is, if it is installed.
    pub fn find(self) -> Option<PathBuf> {
        located(env::var_os(self.variable()))
    }

    /// Where the tool is; without it, records that `test` was skipped.
    pub fn find_or_record_skip(self, test: &str) -> Option<PathBuf> {
        let found = self.find();
        if found.is_none() {
            record(env::var_os("NIMBUS_TEST_SKIPS"), self.absence(), test);
        }
        found
    }
}

/// Records that `test` was skipped because this machine lacks something that no set-up can install.
pub fn record_skip(reason: &str, test: &str) {
    record(env::var_os("NIMBUS_TEST_SKIPS"), reason, test);
}

/// Whether tests run in their long forms: `cargo xtask test --long`.
pub fn is_long() -> bool {
    env::var_os("NIMBUS_TEST_LONG").is_some()
}

/// How often, or how much: what an ordinary run of the tests has time for, or what is promised.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// The path of a tool; without the tool the enclosing test returns and is counted as skipped.
#[macro_export]
macro_rules! tool_or_skip {
    ($tool:expr) => {
        match $crate::Tool::find_or_record_skip($tool, concat!(module_path!(), " line ", line!())) {
            Some(path) => path,
            None => return,
        }
    };
}

fn located(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.exists())
}

fn record(file: Option<OsString>, reason: &str, test: &str) {
    let line = format!("SKIPPED({reason}): {test}\n");
    let written = file.is_some_and(|path| {
        // One write of one short line, so that parallel tests do not mix their lines.
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .is_ok()
    });
    if !written {
        // Outside of `cargo xtask test` the person who runs the test reads this.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_tool_is_there_only_if_its_path_exists() {
        assert_eq!(located(None), None);
        assert_eq!(located(Some("no/such/path".into())), None);
        let here = env::current_exe().unwrap();
        assert_eq!(located(Some(here.clone().into())), Some(here));
    }

    #[test]
    fn skips_are_appended_line_by_line() {
        let file = env::temp_dir().join(format!("nimbus-skips-{}", std::process::id()));
        record(Some(file.clone().into()), "no pulumi CLI", "a::b");
        record(Some(file.clone().into()), "no S3 server", "c");
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(
            text,
            "SKIPPED(no pulumi CLI): a::b\nSKIPPED(no S3 server): c\n"
        );
    }
}
