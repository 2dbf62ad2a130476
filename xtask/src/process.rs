//! Runs other programs so that an interrupt ends them too and a failure says what to do.
//!
//! Programs of a set-up run in a process group of their own: npm and pip start children, and all of
//! them must be gone before the folder they write to is removed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set-up builds while checks run, so there may be two.
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

/// Cargo, as somebody at a terminal would start it. What `cargo run` tells us about our own package is not passed on:
/// build scripts that look at it would run again, and everything above them would be built again.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if is_about_our_package(&name.to_string_lossy()) {
            cargo.env_remove(&name);
        }
    }
    cargo
}

fn is_about_our_package(variable: &str) -> bool {
    const OURS: &[&str] = &[
        "CARGO_BIN_NAME",
        "CARGO_CRATE_NAME",
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_LINKS",
        "CARGO_MANIFEST_PATH",
        "CARGO_PRIMARY_PACKAGE",
    ];
    variable.starts_with("CARGO_PKG_") || OURS.contains(&variable)
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

/// How a program ended that was run beside others.
pub(crate) struct EndedProgram {
    pub(crate) status: ExitStatus,
    pub(crate) wall: Duration,
    /// Of the program and everything that it waited for; unknown where the kernel does not tell.
    pub(crate) cpu: Option<Duration>,
    /// Whether processes that it started still have its output.
    pub(crate) left_processes: bool,
}

enum ChildOutput {
    Line(String),
    Ended(io::Result<ExitStatus>, Option<Duration>),
}

/// Processes that a program left get so much time to end.
const AFTERMATH: Duration = Duration::from_secs(5);

/// Runs a program beside others: each line of both of its outputs is told as it comes.
pub(crate) fn run_beside(
    mut command: Command,
    mut on_line: impl FnMut(&str),
) -> Result<EndedProgram> {
    let what = describe(&command);
    let begun = Instant::now();
    let (reader, writer) = io::pipe().context("no pipe for the program's output")?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = spawn(&mut command, &what)?;
    // It holds our ends of the pipe, which would stay open with it.
    drop(command);
    let pid = pid_of(&child)?;
    let running = RunningChild::Group(pid);
    remember(running);
    let (lines, news) = mpsc::channel();
    let ending = lines.clone();
    thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.send(ChildOutput::Line(line)).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        let cpu = cpu_when_ended(pid);
        // Whoever asked is waiting for this.
        let _ = ending.send(ChildOutput::Ended(child.wait(), cpu));
    });
    let (mut ended, mut left_processes) = (None, false);
    loop {
        // Its lines end with it, unless somebody whom it started has its output too.
        let told = match ended {
            None => news.recv().map_err(mpsc::RecvTimeoutError::from),
            Some(_) => news.recv_timeout(AFTERMATH),
        };
        match told {
            Ok(ChildOutput::Line(line)) => on_line(&line),
            Ok(ChildOutput::Ended(status, cpu)) => ended = Some((status, cpu, begun.elapsed())),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                left_processes = true;
                break;
            }
        }
    }
    forget(running);
    anyhow::ensure!(!interrupted(), "interrupted");
    let (status, cpu, wall) = ended.context("nobody saw the program end")?;
    Ok(EndedProgram {
        status: status?,
        wall,
        cpu,
        left_processes,
    })
}

/// Waits until a child has ended and reads what it used, before anybody takes it off the kernel's list.
#[cfg(target_os = "linux")]
fn cpu_when_ended(pid: Pid) -> Option<Duration> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    /// Ticks per second of the kernel's texts for people; the same on every machine that we build for.
    const TICKS: u64 = 100;
    while let Err(nix::errno::Errno::EINTR) =
        waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
    {}
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may have anything in it: user and system time, its own and its children's,
    // are the fields 14 to 17 of all.
    let (_, fields) = text.rsplit_once(')')?;
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

/// As on Linux, but nobody tells what it used.
#[cfg(not(target_os = "linux"))]
fn cpu_when_ended(_: Pid) -> Option<Duration> {
    None
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
    fn a_cargo_below_ours_does_not_hear_of_our_package() {
        assert!(is_about_our_package("CARGO_PKG_VERSION"));
        assert!(is_about_our_package("CARGO_MANIFEST_DIR"));
        // Where things are and how many at once is the user's choice.
        for kept in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS"] {
            assert!(!is_about_our_package(kept));
        }
    }

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
    fn a_program_beside_others_is_heard_on_both_outputs_and_measured() {
        let mut lines = Vec::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo two >&2; exit 3"]);
        let ended = run_beside(shell, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(ended.status.code(), Some(3));
        assert!(!ended.left_processes);
        #[cfg(target_os = "linux")]
        assert!(
            ended.cpu.unwrap() > Duration::from_millis(10),
            "{:?}",
            ended.cpu
        );
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
