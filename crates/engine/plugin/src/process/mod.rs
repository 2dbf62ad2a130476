//! A plugin's process: started, listened to, and ended with everything that it started.
//!
//! A plugin says on its first line of output on which port it listens. Whatever else it prints is
//! passed on. When its process ends, the rest of its process group is killed, whoever ended it.

mod output;
mod port;
mod spawn;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nimbus_engine_ports::Severity;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) use output::Output;

/// How long output may take to arrive after its process is gone.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a killed process may take to be gone.
const KILLED: Duration = Duration::from_secs(5);

/// What to run. Its environment may hold credentials, so it cannot be printed.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
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
    group: Pid,
    exit: watch::Receiver<Option<ExitStatus>>,
    output: Arc<Output>,
    /// Its end is wanted, and no news.
    ending: Arc<AtomicBool>,
}

impl PluginProcess {
    /// Starts the plugin and waits for its port. `label` names it in messages.
    pub(crate) async fn start(
        launch: Launch,
        label: &str,
        output: Output,
        patience: Duration,
    ) -> Result<(Self, NonZeroU16), StartError> {
        let program = launch.program.clone();
        let spawn_error = |source| StartError::Spawn {
            program: program.clone(),
            source,
        };
        let mut child = spawn::spawn(launch.command()).await.map_err(spawn_error)?;
        let output = Arc::new(output);
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        let (Some(group), Some(stdout), Some(stderr)) =
            (group, child.stdout.take(), child.stderr.take())
        else {
            return Err(spawn_error(std::io::Error::other(
                "it has no process or no output",
            )));
        };
        let errors = tokio::spawn({
            let output = output.clone();
            async move { output.forward(BufReader::new(stderr)).await }
        });
        let (exit_sender, exit) = watch::channel(None);
        let process = Self {
            label: label.to_owned(),
            group,
            exit,
            output: output.clone(),
            ending: Arc::new(AtomicBool::new(false)),
        };
        let mut stdout = BufReader::new(stdout);
        // From here on, leaving drops the process, which kills it.
        tokio::spawn(watch_exit(child, process.watcher(), exit_sender, errors));
        let port = process.read_port(&mut stdout, patience).await?;
        tokio::spawn(async move { output.forward(stdout).await });
        Ok((process, port))
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
                let status = match self.wait(KILLED).await {
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

    fn watcher(&self) -> Watcher {
        Watcher {
            label: self.label.clone(),
            group: self.group,
            output: self.output.clone(),
            ending: self.ending.clone(),
        }
    }

    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// The exit status, if the process ends soon enough.
    pub(crate) async fn wait(&self, patience: Duration) -> Option<ExitStatus> {
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
        if self.exit_status().is_none() {
            self.signal(Signal::SIGTERM);
            if self.wait(grace).await.is_none() {
                self.signal(Signal::SIGKILL);
                self.wait(KILLED).await;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The group is gone already when this fails.
        let _ = killpg(self.group, signal);
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        self.expect_end();
        if self.exit_status().is_none() {
            self.signal(Signal::SIGKILL);
        }
    }
}

impl fmt::Debug for PluginProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.label, self.group)
    }
}

impl Launch {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// The part of a process that waits for its end.
struct Watcher {
    label: String,
    group: Pid,
    output: Arc<Output>,
    ending: Arc<AtomicBool>,
}

async fn watch_exit(
    mut child: Child,
    watcher: Watcher,
    exit: watch::Sender<Option<ExitStatus>>,
    errors: JoinHandle<()>,
) {
    let Ok(status) = child.wait().await else {
        return;
    };
    // Whatever the plugin started has no one left to serve.
    let _ = killpg(watcher.group, Signal::SIGKILL);
    // The last words come before the news of the end.
    let _ = timeout(DRAIN, errors).await;
    let _ = exit.send(Some(status));
    if !watcher.ending.load(Ordering::Relaxed) {
        let message = format!(
            "{} ended by itself ({status}){}",
            watcher.label,
            shown(&watcher.output.tail())
        );
        watcher.output.say(Severity::Error, message);
    }
}
