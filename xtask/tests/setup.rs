//! `cargo xtask setup` as a new user meets it: old tools, no network, an interrupt, a second try.
//!
//! The machine is played by scripts in a folder that is the whole PATH, so that every case is the
//! same everywhere and nothing is downloaded.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;

const GOOD_NPM: &str = "case $1 in --version) echo 11.0.0;; ci) /bin/mkdir node_modules;; esac";

struct Machine {
    folder: TempDir,
}

impl Machine {
    /// Node and cargo are good; there is no Python and no Go.
    fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(machine.path("bin")).unwrap();
        machine.program("cargo", "echo cargo 99.0.0");
        machine.program("node", "echo v22.1.0");
        machine.program("npm", GOOD_NPM);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn setup(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .arg("setup")
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("NIMBUS_CACHE_DIR", self.path("cache"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self) -> Output {
        self.setup().output().unwrap()
    }

    /// What is in the cache below `node-sdk`, without the lock.
    fn installed(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("cache/node-sdk")) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name() != Some(".lock".as_ref()))
            .collect()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_complete(entry: &Path) -> bool {
    entry.join("node_modules").is_dir()
}

#[test]
fn a_fresh_machine_is_set_up_and_a_second_run_installs_nothing() {
    let machine = Machine::new();
    let first = machine.run();
    assert!(first.status.success(), "{}", errors(&first));
    assert!(String::from_utf8_lossy(&first.stdout).contains("python3 is not installed"));
    assert!(is_complete(&machine.installed()[0]));

    machine.program(
        "npm",
        "case $1 in --version) echo 11.0.0;; *) exit 1;; esac",
    );
    assert!(machine.run().status.success());
}

#[test]
fn an_old_node_is_refused_with_the_version_that_is_needed() {
    let machine = Machine::new();
    machine.program("node", "echo v18.20.4");
    let output = machine.run();
    assert!(!output.status.success());
    assert!(errors(&output).contains("node is 18.20, and 20.0 or later is needed"));
    assert!(machine.installed().is_empty());
}

#[test]
fn no_network_leaves_nothing_and_the_next_run_completes() {
    let machine = Machine::new();
    machine.program(
        "npm",
        "case $1 in --version) echo 11.0.0;; *) echo half > half; echo npm error code ENOTFOUND >&2; exit 1;; esac",
    );
    let output = machine.run();
    assert!(
        errors(&output).contains("could not be reached"),
        "{}",
        errors(&output)
    );
    assert!(machine.installed().is_empty());

    machine.program("npm", GOOD_NPM);
    assert!(machine.run().status.success());
    assert!(is_complete(&machine.installed()[0]));
}

#[test]
fn an_interrupt_leaves_nothing_and_the_next_run_completes() {
    let machine = Machine::new();
    let fifo = machine.path("npm-is-running");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    machine.program(
        "npm",
        &format!(
            "case $1 in --version) echo 11.0.0;; *) echo half > half; echo $$ > {}; /bin/sleep 600;; esac",
            fifo.display()
        ),
    );
    let child = machine.setup().spawn().unwrap();
    // Opening the pipe waits until npm is in the middle of its work.
    let mut npm = String::new();
    fs::File::open(&fifo)
        .unwrap()
        .read_to_string(&mut npm)
        .unwrap();
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    assert!(
        errors(&output).contains("interrupted"),
        "{}",
        errors(&output)
    );
    assert!(machine.installed().is_empty());
    let npm = Pid::from_raw(npm.trim().parse().unwrap());
    assert!(kill(npm, None).is_err(), "npm is still running");

    machine.program("npm", GOOD_NPM);
    assert!(machine.run().status.success());
    assert!(is_complete(&machine.installed()[0]));
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let machine = Machine::new();
    fs::write(machine.path("cache"), "a file is in the way").unwrap();
    let output = machine.run();
    assert!(!output.status.success());
    assert!(
        errors(&output).contains("NIMBUS_CACHE_DIR"),
        "{}",
        errors(&output)
    );
}
