//! Runs other programs so that an interrupt ends them too and a failure says what to do.
//!
//! Programs of a set-up run in a process group of their own: npm and pip start children, and all of
//! them must be gone before the folder they write to is removed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set-up builds while lints run, so there may be two.
static RUNNING: Mutex<Vec<RunningChild>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq, Eq)]
enum RunningChild {
    Group(Pid),
    /// Shares our terminal, so the terminal's own Ctrl-C reaches it as well.
    Foreground(Pid),
}

/// Turns Ctrl-C and a termination request into an ordinary failure, so that clean-up happens.
pub(crate) fn watch_for_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        // Between two programs the next one is not started, see `spawn`.
        end_running();
    })
    .context("cannot watch for interrupts")
}

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// What a program printed on its standard output. Its errors are part of the failure.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let what = describe(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{what}`"))?;
    if !output.status.success() {
        bail!(
            "`{what}` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program with its output in `log`; the failure carries a diagnosis of the log's end.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let what = describe(command);
    let output = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    let status = wait(spawn(command, &what)?, RunningChild::Group)?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    bail!(
        "`{what}` {}\n{}\n{}",
        outcome(status),
        tail(&text, 12),
        diagnose(&text).advice()
    );
}

/// Runs a program on our own terminal.
pub(crate) fn run_foreground(command: &mut Command) -> Result<()> {
    let what = describe(command);
    let status = wait(spawn(command, &what)?, RunningChild::Foreground)?;
    anyhow::ensure!(status.success(), "`{what}` {}", outcome(status));
    Ok(())
}

/// Runs a program and shows each line of its standard output as it comes. It has a process group of
/// its own, so that [`end_running`] and an interrupt end what it has started too.
pub(crate) fn run_watched(
    command: &mut Command,
    mut on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    let what = describe(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = spawn(command.process_group(0), &what)?;
    let output = child
        .stdout
        .take()
        .context("the program's output is not connected")?;
    remember(RunningChild::Group(pid_of(&child)?));
    for line in BufReader::new(output).split(b'\n') {
        on_line(&String::from_utf8_lossy(&line?));
    }
    wait(child, RunningChild::Group)
}

/// Ends what runs now, with everything that it has started.
pub(crate) fn end_running() {
    let running = RUNNING.lock().map(|running| running.clone());
    running.unwrap_or_default().into_iter().for_each(end);
}

fn spawn(command: &mut Command, what: &str) -> Result<Child> {
    anyhow::ensure!(!interrupted(), "interrupted");
    command
        .spawn()
        .with_context(|| format!("cannot run `{what}`"))
}

fn wait(mut child: Child, kind: fn(Pid) -> RunningChild) -> Result<ExitStatus> {
    let running = kind(pid_of(&child)?);
    remember(running);
    let status = child.wait();
    forget(running);
    anyhow::ensure!(!interrupted(), "interrupted");
    Ok(status?)
}

fn end(running: RunningChild) {
    // A process that has just ended is no error here.
    let _ = match running {
        RunningChild::Group(pid) => killpg(pid, Signal::SIGTERM),
        RunningChild::Foreground(pid) => kill(pid, Signal::SIGTERM),
    };
}

fn remember(running: RunningChild) {
    if let Ok(mut all) = RUNNING.lock()
        && !all.contains(&running)
    {
        all.push(running);
    }
    // An interrupt that came after the start and before this found nothing to end.
    if interrupted() {
        end(running);
    }
}

fn forget(running: RunningChild) {
    if let Ok(mut all) = RUNNING.lock() {
        all.retain(|other| *other != running);
    }
}

fn pid_of(child: &Child) -> Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(child.id())?))
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .take(6)
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

fn outcome(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with {code}"),
        (None, Some(signal)) => {
            let name = Signal::try_from(signal).map_or("an unknown signal", Signal::as_str);
            format!("was ended by {name}")
        }
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let start = lines.len().saturating_sub(count);
    lines[start..]
        .iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Why an installation failed, as far as the installer's own words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallFailure {
    NoNetwork,
    DiskFull,
    NotAllowed,
    /// The registry answered, and the answer was no.
    Refused,
    Unclear,
}

impl InstallFailure {
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::NoNetwork => {
                "the package registry could not be reached: check the network or proxy and run again"
            }
            Self::DiskFull => {
                "the disk is full: free some space, or set NIMBUS_CACHE_DIR to a folder on another disk"
            }
            Self::NotAllowed => {
                "the folder may not be written: fix its permissions, or set NIMBUS_CACHE_DIR to one of yours"
            }
            Self::Refused => "the package registry does not offer this version here",
            Self::Unclear => "nothing was installed; the lines above say why",
        }
    }
}

/// Reads the cause out of what npm, pip or go printed.
pub(crate) fn diagnose(log: &str) -> InstallFailure {
    let has = |words: &[&str]| words.iter().any(|word| log.contains(word));
    if has(&[
        "ENOSPC",
        "No space left on device",
        "no space left on device",
    ]) {
        InstallFailure::DiskFull
    } else if has(&["EACCES", "EROFS", "Permission denied", "permission denied"]) {
        InstallFailure::NotAllowed
    } else if has(&[
        "403 Forbidden",
        "404 Not Found",
        "E404",
        "No matching distribution",
    ]) && !has(&["NameResolutionError", "NewConnectionError"])
    {
        InstallFailure::Refused
    } else if has(&[
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ETIMEDOUT",
        "ENETUNREACH",
        "NameResolutionError",
        "NewConnectionError",
        "dial tcp",
        "name resolution",
        "Could not resolve host",
    ]) {
        InstallFailure::NoNetwork
    } else {
        InstallFailure::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installers_own_words_give_the_cause() {
        for (log, cause) in [
            (
                "npm error code ENOTFOUND\nnpm error network",
                InstallFailure::NoNetwork,
            ),
            (
                "dial tcp: lookup proxy: no such host",
                InstallFailure::NoNetwork,
            ),
            (
                "NewConnectionError: …\nERROR: No matching distribution found for pulumi",
                InstallFailure::NoNetwork,
            ),
            (
                "npm error nospc ENOSPC: no space left on device, write",
                InstallFailure::DiskFull,
            ),
            (
                "OSError: [Errno 28] No space left on device",
                InstallFailure::DiskFull,
            ),
            ("npm error code EACCES", InstallFailure::NotAllowed),
            (
                "reading …/v3.260.0.zip: 403 Forbidden",
                InstallFailure::Refused,
            ),
            ("npm error code E404", InstallFailure::Refused),
            ("SyntaxError", InstallFailure::Unclear),
        ] {
            assert_eq!(diagnose(log), cause, "{log}");
        }
    }

    #[test]
    fn a_failed_program_is_reported_with_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let error = run_logged(
            Command::new("sh").args(["-c", "echo ENOSPC >&2; exit 3"]),
            &log,
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("ended with 3"), "{error}");
        assert!(error.contains("    ENOSPC"), "{error}");
        assert!(error.contains("the disk is full"), "{error}");
    }

    #[test]
    fn a_program_that_was_killed_is_reported_with_the_signal() {
        let error = run_foreground(Command::new("sh").args(["-c", "kill -KILL $$"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("was ended by SIGKILL"), "{error}");
    }

    #[test]
    fn every_line_of_a_watched_program_is_seen() {
        let mut lines = Vec::new();
        let status = run_watched(
            Command::new("sh").args(["-c", "printf 'one\\ntwo'; exit 1"]),
            |line| lines.push(line.to_owned()),
        )
        .unwrap();
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(status.code(), Some(1));
    }
}
