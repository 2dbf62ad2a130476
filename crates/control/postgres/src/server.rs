//! The server process: started, watched and ended.
//!
//! A thread of its own starts the process and waits for it. The kernel is asked to end the process when
//! its parent dies, and by parent it means the thread that started it: a thread of a pool would end, and
//! PostgreSQL with it, at some quiet moment.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;
use tokio::sync::{oneshot, watch};
use tracing::{debug, error, warn};

use crate::PostgresError;
use crate::account::Account;

/// A start may have to recover from a crash first.
const START_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end with everything written, where nobody says otherwise.
const WRITE_PATIENCE: Duration = Duration::from_secs(15);
/// How it is ended then, and how long that may take each time: at once (the next start recovers), and by the kernel. Part of
/// how long a server takes to stop.
const END: [(Signal, Duration); 2] = [
    (Signal::SIGQUIT, Duration::from_millis(500)),
    (Signal::SIGKILL, Duration::from_millis(500)),
];
/// What a stop may take beyond the time that there is to write everything.
pub const END_PATIENCE: Duration = Duration::from_secs(1);
const READY: &str = "database system is ready to accept connections";
/// Lines that are kept to explain a failed start.
const KEPT_LINES: usize = 20;

/// A running server.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    pid: Pid,
    ended: watch::Receiver<Option<ExitStatus>>,
}

type LogTail = Arc<Mutex<VecDeque<String>>>;

impl PostgresServer {
    /// Starts the process and waits until it takes connections.
    pub(crate) async fn start(command: Command) -> Result<Self, PostgresError> {
        let lines = LogTail::default();
        let (started, pid) = oneshot::channel();
        let (ready, becomes_ready) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        let kept = Arc::clone(&lines);
        thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || live(command, &kept, started, ready, &end))
            .map_err(PostgresError::io("no thread for PostgreSQL"))?;
        let pid = match pid.await {
            Ok(Ok(pid)) => pid,
            Ok(Err(source)) => {
                return Err(PostgresError::Io {
                    what: "PostgreSQL's program does not run",
                    source,
                });
            }
            Err(_) => return Err(PostgresError::NotStarted { log: String::new() }),
        };
        let server = Self { pid, ended };
        match tokio::time::timeout(START_PATIENCE, becomes_ready).await {
            Ok(Ok(())) => Ok(server),
            _ => {
                server.stop().await;
                Err(PostgresError::NotStarted {
                    log: joined(&lines),
                })
            }
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Waits for its end, wanted or not.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        // An error is a thread that is gone, which is an end as well.
        self.ended
            .wait_for(Option::is_some)
            .await
            .map_or(None, |status| *status)
    }

    /// Ends it: clients are dropped, everything is written.
    pub(crate) async fn stop(self) {
        self.stop_within(WRITE_PATIENCE).await;
    }

    /// The same with so much time to write everything; what is not written is recovered by the next start.
    pub(crate) async fn stop_within(mut self, patience: Duration) {
        for (signal, patience) in [(Signal::SIGINT, patience)].into_iter().chain(END) {
            if self.ended.borrow().is_some() {
                return;
            }
            let _ = kill(self.pid, signal);
            if tokio::time::timeout(patience, self.ended()).await.is_ok() {
                return;
            }
            warn!(%signal, "PostgreSQL did not end");
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.ended.borrow().is_none() {
            let _ = kill(self.pid, Signal::SIGINT);
        }
    }
}

fn live(
    mut command: Command,
    lines: &LogTail,
    started: oneshot::Sender<io::Result<Pid>>,
    ready: oneshot::Sender<()>,
    end: &watch::Sender<Option<ExitStatus>>,
) {
    let mut child = match command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // An interrupt from the terminal is for Nimbus, which needs the database until it has stopped.
        .process_group(0)
        // tidy-allow(start): PostgreSQL, the operator's
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    // A process number is never larger than the kernel's signed one.
    let _ = started.send(Ok(Pid::from_raw(child.id().cast_signed())));
    if let Some(output) = child.stderr.take() {
        read(output, lines, ready);
    }
    match child.wait() {
        Ok(status) => end.send_replace(Some(status)),
        Err(error) => {
            error!(%error, "PostgreSQL cannot be waited for");
            None
        }
    };
}

/// Whether an operator should see a line. That a database is missing is how a first start learns
/// that it has to make one; that connections end is how a server stops, or a client of it.
fn is_alarming(line: &str) -> bool {
    let missing = line.contains("FATAL:  database \"") && line.ends_with("\" does not exist");
    let ended = line.ends_with("FATAL:  connection to client lost")
        || line.ends_with("FATAL:  terminating connection due to administrator command");
    (line.contains("FATAL:") && !missing && !ended) || line.contains("PANIC:")
}

/// Reads until the server and its children are gone.
fn read(output: ChildStderr, lines: &LogTail, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        if line.contains(READY)
            && let Some(ready) = ready.take()
        {
            let _ = ready.send(());
        }
        if is_alarming(&line) {
            warn!(target: "postgres", "{line}");
        } else {
            debug!(target: "postgres", "{line}");
        }
        if ready.is_some() {
            let mut kept = lines
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line);
        }
    }
}

fn joined(lines: &LogTail) -> String {
    let kept = lines
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    kept.iter().map(|line| format!("{line}\n")).collect()
}

/// A program of PostgreSQL, as the cluster's user, with nothing of our environment, which may hold
/// secrets.
pub(crate) fn command(program: &Path, folder: &Path, account: &Account) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder);
    if let Some(user) = &account.other {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// The process ends when the thread that starts it does.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "code between fork and exec is unsafe to add; this one makes system calls only"
)]
pub(crate) fn end_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let ask = move || {
        // It must hear requests to end even if Nimbus was started deaf to them.
        for request in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT] {
            // SAFETY: the default is no handler of ours.
            unsafe { signal(request, SigHandler::SigDfl) }?;
        }
        // After the change of user, which would undo it. SIGINT ends PostgreSQL cleanly.
        nix::sys::prctl::set_pdeathsig(Signal::SIGINT)?;
        if nix::unistd::getppid() != parent {
            return Err(nix::Error::ESRCH.into());
        }
        Ok(())
    };
    // SAFETY: `ask` only makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(ask);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_parent(_command: &mut Command) {
    // The next start ends what was left, see `leftover`.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_start_alarms_nobody() {
        assert!(!is_alarming(
            "UTC [7] FATAL:  database \"nimbus\" does not exist"
        ));
        assert!(!is_alarming("UTC [7] LOG:  checkpoint complete"));
        assert!(!is_alarming("UTC [7] FATAL:  connection to client lost"));
        assert!(!is_alarming(
            "UTC [7] FATAL:  terminating connection due to administrator command"
        ));
        assert!(is_alarming(
            "UTC [7] FATAL:  could not open file: No space left"
        ));
        assert!(is_alarming("UTC [7] PANIC:  could not write"));
    }
}
