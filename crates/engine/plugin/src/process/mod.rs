//! A plugin's process: started, listened to, and ended with everything that it started.
//!
//! A plugin says on its first line of output on which port it listens. Whatever else it prints is
//! passed on. When its process ends, the rest of its process group is killed, whoever ended it.

mod output;
mod port;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nimbus_engine_ports::Severity;
use nimbus_engine_process::{ChildProcess, CodeOrigin, Exit, OutputLines, Signal, Started};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use output::PluginOutput;

/// How long output may take to arrive after its process is gone.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a plugin that closed its output may take to be gone.
const CLOSED: Duration = Duration::from_secs(5);

/// A program to run, and who chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaunchProgram {
    /// Found by the operator's search path, or a plugin of the operator's.
    OnPath(PathBuf),
    /// Named by a folder of source: the interpreter of its virtual environment.
    Named(PathBuf),
}

impl LaunchProgram {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::OnPath(path) | Self::Named(path) => path,
        }
    }
}

/// What to run. Its environment may hold credentials, so it cannot be printed.
#[derive(Clone)]
pub(crate) struct PluginLaunch {
    pub(crate) program: LaunchProgram,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// The whole environment: nothing is inherited beside it.
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("{} cannot be run: {source}", program.display())]
    Spawn {
        program: PathBuf,
        source: std::io::Error,
    },
    #[error("it ended ({status}) before it said on which port it listens{}", shown(.output))]
    Ended { status: String, output: String },
    #[error("it did not say within {after:?} on which port it listens{}", shown(.output))]
    Silent { after: Duration, output: String },
    #[error("its first line of output should be a port, and is {line:?}")]
    NoPort { line: String },
}

fn shown(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; it printed:\n{output}")
    }
}

pub(crate) struct PluginProcess {
    label: String,
    process: ChildProcess,
    /// Known when its last words have been heard as well.
    exit: watch::Receiver<Option<Exit>>,
    output: Arc<PluginOutput>,
    /// Its end is wanted, and no news.
    ending: Arc<AtomicBool>,
}

impl PluginProcess {
    /// Starts the plugin and waits for its port. `label` names it in messages.
    pub(crate) async fn start(
        command: Command,
        origin: CodeOrigin,
        label: &str,
        output: PluginOutput,
        patience: Duration,
    ) -> Result<(Self, NonZeroU16), StartError> {
        let program = PathBuf::from(command.get_program());
        let started = ChildProcess::start(command, origin).await;
        let Started {
            process,
            mut stdout,
            stderr,
        } = started.map_err(|source| StartError::Spawn { program, source })?;
        let output = Arc::new(output);
        let (exit_sender, exit) = watch::channel(None);
        let plugin = Self {
            label: label.to_owned(),
            process,
            exit,
            output: output.clone(),
            ending: Arc::new(AtomicBool::new(false)),
        };
        let errors = OutputLines::start(stderr, output.clone().shower());
        // From here on, leaving drops the process, which kills it.
        tokio::spawn(plugin.watch_exit(exit_sender, errors));
        let port = plugin.read_port(&mut stdout, patience).await?;
        OutputLines::start(stdout, output.shower());
        Ok((plugin, port))
    }

    async fn read_port(
        &self,
        stdout: &mut BufReader<ChildStdout>,
        patience: Duration,
    ) -> Result<NonZeroU16, StartError> {
        let mut line = Vec::new();
        let mut limited = stdout.take(port::MAX_LINE as u64);
        // The end of the plugin without a line must not be reported as a missing port.
        self.expect_end();
        let read = timeout(patience, limited.read_until(b'\n', &mut line)).await;
        let text = String::from_utf8_lossy(&line);
        match read {
            Err(_) => Err(StartError::Silent {
                after: patience,
                output: self.output.tail(),
            }),
            Ok(_) if text.ends_with('\n') => {
                let found = port::parse_port(&text);
                self.ending.store(false, Ordering::Relaxed);
                found.ok_or_else(|| StartError::NoPort {
                    line: port::printable(&text),
                })
            }
            Ok(_) if line.len() >= port::MAX_LINE => Err(StartError::NoPort {
                line: port::printable(&text),
            }),
            Ok(_) => {
                let status = match self.wait(CLOSED).await {
                    Some(status) => status.to_string(),
                    None => "it closed its output".to_owned(),
                };
                Err(StartError::Ended {
                    status,
                    output: self.last_words(&text),
                })
            }
        }
    }

    fn last_words(&self, unfinished: &str) -> String {
        [self.output.tail(), port::printable(unfinished)]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Waits for the end and tells it, unless it was wanted.
    fn watch_exit(
        &self,
        exit: watch::Sender<Option<Exit>>,
        mut errors: OutputLines,
    ) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.process.ended();
        let label = self.label.clone();
        let output = self.output.clone();
        let ending = self.ending.clone();
        async move {
            let status = ended.await;
            // The last words come before the news of the end.
            errors.drain(DRAIN).await;
            exit.send_replace(Some(status));
            if !ending.load(Ordering::Relaxed) {
                let last_words = shown(&output.tail());
                let message = format!("{label} ended by itself ({status}){last_words}");
                output.say(Severity::Error, message);
            }
        }
    }

    pub(crate) fn exit_status(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// The exit status, if the process ends soon enough.
    pub(crate) async fn wait(&self, patience: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let ended = timeout(patience, exit.wait_for(Option::is_some)).await;
        ended.ok().and_then(Result::ok).and_then(|status| *status)
    }

    /// From now on its end is no news.
    pub(crate) fn expect_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Asks the whole group to end, and kills what is left of it after `grace`.
    pub(crate) async fn end(&self, grace: Duration) {
        self.expect_end();
        self.process.end(Signal::SIGTERM, grace).await;
        self.wait(DRAIN).await;
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        // The process is killed when it is dropped, a moment later.
        self.expect_end();
    }
}

impl fmt::Debug for PluginProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.label, self.process)
    }
}

impl PluginLaunch {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.program.path());
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(&self.environment);
        command
    }
}
