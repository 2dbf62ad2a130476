//! A child from its start to its end.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::BufReader;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::group::{EndedLeader, ProcessGroup};
use crate::origin::CodeOrigin;
use crate::start;

/// The thread that waits for a child does nothing else.
const WAITER_STACK: usize = 128 * 1024;

/// A child and everything that it started. Dropped, all of it is killed.
pub struct ChildProcess {
    group: Arc<ProcessGroup>,
    exit: watch::Receiver<Option<Exit>>,
}

/// A child that has just been started.
pub struct Started {
    pub process: ChildProcess,
    pub stdout: BufReader<ChildStdout>,
    pub stderr: BufReader<ChildStderr>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The system would not say.
    Unknown,
}

impl ChildProcess {
    /// Starts the command with nothing to read and with pipes for its output.
    ///
    /// Whoever calls may go away in the middle: then the child is killed.
    pub async fn start(command: Command, origin: CodeOrigin) -> io::Result<Started> {
        origin.admit(&command)?;
        // Somebody may have started us with the end of children ignored, and then the system does
        // not keep their exit codes. Listening, even without interest, undoes that.
        let _ = signal(SignalKind::child())?;
        let (reply, started) = oneshot::channel();
        start::on_starter(move || {
            let _ = reply.send(start::spawn(command).and_then(Self::watch));
        })?;
        let gone = |_| io::Error::other("the thread that starts processes is gone");
        let (process, pipes) = started.await.map_err(gone)??;
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process has no output"));
        };
        Ok(Started {
            process,
            stdout: BufReader::new(ChildStdout::from_std(stdout)?),
            stderr: BufReader::new(ChildStderr::from_std(stderr)?),
        })
    }

    fn watch(mut child: Child) -> io::Result<(Self, Pipes)> {
        let pipes = (child.stdout.take(), child.stderr.take());
        let group = Arc::new(ProcessGroup::led_by(&child)?);
        let (sender, exit) = watch::channel(None);
        let process = Self {
            group: Arc::clone(&group),
            exit,
        };
        let waiter = std::thread::Builder::new()
            .name("process-waiter".to_owned())
            .stack_size(WAITER_STACK)
            // If there is no thread to be had, `process` is dropped and kills the child.
            .spawn(move || {
                let status = group.wait(child).and_then(EndedLeader::reap);
                sender.send_replace(Some(status.map_or(Exit::Unknown, Exit::from)));
            });
        waiter.map(|_| (process, pipes))
    }

    /// The number of the process and of its group.
    pub fn id(&self) -> i32 {
        self.group.leader().as_raw()
    }

    /// How it ended, if it has and nothing of its group is left.
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits until it has ended and nothing of its group is left.
    pub fn ended(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let ended = exit.wait_for(Option::is_some).await;
            // The waiter goes without a word only when the whole process does.
            ended.ok().and_then(|exit| *exit).unwrap_or(Exit::Unknown)
        }
    }

    /// Signals the process and everything that it started.
    pub fn signal(&self, signal: Signal) {
        // Nobody left to signal is what is wanted.
        let _ = self.group.signal(signal);
    }

    /// Asks it to end, and kills it when it has not after `grace`.
    pub async fn end(&self, request: Signal, grace: Duration) -> Exit {
        self.signal(request);
        if let Ok(exit) = timeout(grace, self.ended()).await {
            return exit;
        }
        self.signal(Signal::SIGKILL);
        self.ended().await
    }
}

type Pipes = (
    Option<std::process::ChildStdout>,
    Option<std::process::ChildStderr>,
);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.id())
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {number}"),
            },
            Self::Unknown => f.write_str("exit code unknown"),
        }
    }
}
