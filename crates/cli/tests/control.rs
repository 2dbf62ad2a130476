//! The control plane as its operator meets it: the real binary, from the first start to a restored
//! backup.
#![cfg(unix)]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const PASSWORD: &str = "a long walk along the canal";
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine with a home folder and room for installations.
struct Machine {
    folder: TempDir,
    binaries: PathBuf,
}

impl Machine {
    fn new(binaries: PathBuf) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("nimbus-up-")
            .tempdir()
            .unwrap();
        // Root's PostgreSQL runs as somebody else, who must pass through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, binaries }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nimbus"));
        command
            .args(arguments)
            .arg("--json")
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("NIMBUS_DB_BINARIES", &self.binaries);
        command
    }

    /// Runs a command with something on its standard input; its result, or its error.
    fn run(&self, arguments: &[&str], input: &str) -> Result<Value, Value> {
        self.run_with(arguments, input, &[])
    }

    fn run_with(
        &self,
        arguments: &[&str],
        input: &str,
        variables: &[(&str, &str)],
    ) -> Result<Value, Value> {
        let mut child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            let text = String::from_utf8_lossy(&output.stderr);
            panic!("{arguments:?}: {error}: {text}")
        });
        if output.status.success() {
            Ok(document)
        } else {
            Err(document)
        }
    }

    /// Runs a command that must succeed.
    fn ask(&self, arguments: &[&str]) -> Value {
        self.run(arguments, "")
            .unwrap_or_else(|error| panic!("{arguments:?}: {error:#}"))
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let error = self.run(arguments, "").unwrap_err();
        error["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// A server that was started and is ready.
struct Plane {
    child: Child,
    report: Value,
}

impl Plane {
    fn start(machine: &Machine, data: &str) -> Self {
        let arguments = ["up", "--data-dir", data, "--listen", "127.0.0.1:0"];
        let mut child = machine
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut text = String::new();
        // The report is one document, and nothing follows it.
        let report = loop {
            let line = lines.next().expect("the server reports that it is ready");
            text.push_str(&line.unwrap());
            if let Ok(report) = serde_json::from_str(&text) {
                break report;
            }
        };
        Self { child, report }
    }

    fn address(&self) -> &str {
        self.report["address"].as_str().unwrap()
    }

    fn link(&self) -> Option<&str> {
        self.report["setup_link"].as_str()
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        let process = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(process, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Plane {
    /// A test that fails leaves no server behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn postmaster(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postgres/postmaster.pid")).ok()?;
    Some(Pid::from_raw(text.lines().next()?.parse().ok()?))
}

#[test]
fn an_operator_sets_up_delegates_audits_and_restores() {
    let machine = Machine::new(tool_or_skip!(Tool::Postgres));
    let plane = Plane::start(&machine, "data");
    let link = plane.link().unwrap().to_owned();

    let setup = [
        "setup",
        &link,
        "--email",
        "ada@example.org",
        "--password-stdin",
    ];
    machine.run(&setup, PASSWORD).unwrap();
    let again = machine.run(&setup, PASSWORD).unwrap_err();
    assert_eq!(again["error"]["kind"], "forbidden", "{again:#}");

    // A tenant, somebody who works in it, and a key for a pipeline that may only look.
    machine.ask(&["tenant", "create", "acme"]);
    let create = [
        "user",
        "create",
        "bob@example.org",
        "--tenant",
        "acme",
        "--role",
        "developer",
        "--password-stdin",
    ];
    machine.run(&create, PASSWORD).unwrap();
    let auditors = ["role", "create", "auditors", "audit:log:read", "users:read"];
    machine.ask(&[&auditors[..], &["--tenant", "acme"]].concat());
    machine.ask(&[
        "user",
        "create-service",
        "pipeline",
        "--tenant",
        "acme",
        "--role",
        "auditors",
    ]);
    let key = machine.ask(&[
        "key",
        "create",
        "pipeline",
        "ci",
        "audit:log:read",
        "--tenant",
        "acme",
    ]);
    let secret = key["data"]["secret"].as_str().unwrap().to_owned();
    let variables = [
        ("NIMBUS_SERVER", plane.address()),
        ("NIMBUS_TOKEN", secret.as_str()),
    ];
    let listed = machine
        .run_with(&["audit", "list"], "", &variables)
        .unwrap();
    let entries = listed["data"]["items"].as_array().unwrap();
    assert!(!entries.is_empty(), "{listed:#}");
    assert!(!listed.to_string().contains(&secret));
    machine
        .run_with(&["user", "list"], "", &variables)
        .unwrap_err();

    // The member of the tenant sees the tenant, and nothing of the operator.
    let login = [
        "login",
        "--server",
        plane.address(),
        "--tenant",
        "acme",
        "--email",
        "bob@example.org",
        "--profile",
        "bob",
        "--password-stdin",
    ];
    let wrong = machine.run(&login, "wrong").unwrap_err();
    assert!(!wrong.to_string().contains("wrong\""), "{wrong:#}");
    machine.run(&login, PASSWORD).unwrap();
    let seen = machine.ask(&["tenant", "list", "--profile", "bob"]);
    let slugs: Vec<_> = seen["data"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tenant| tenant["slug"].clone())
        .collect();
    assert_eq!(slugs, ["acme"]);
    machine.refused(&["tenant", "create", "mine", "--profile", "bob"]);

    // A backup of the server that runs, restored elsewhere with the keys, is the same installation.
    machine.ask(&["audit", "verify", "--profile", "default"]);
    machine.ask(&["backup", "--data-dir", "data", "--output", "all.tar.zst"]);
    assert_eq!(plane.end(Signal::SIGTERM), Some(0));
    machine.ask(&["restore", "all.tar.zst", "--data-dir", "copy"]);
    copy(&machine.path("data/keys"), &machine.path("copy/keys"));
    let plane = Plane::start(&machine, "copy");
    assert_eq!(plane.link(), None, "the first run is done");
    let login = [
        "login",
        "--server",
        plane.address(),
        "--email",
        "ada@example.org",
        "--password-stdin",
    ];
    machine.run(&login, PASSWORD).unwrap();
    machine.ask(&["audit", "verify"]);
    let users = machine.ask(&["user", "list", "--tenant", "acme"]);
    assert!(users.to_string().contains("bob@example.org"), "{users:#}");
    assert_eq!(plane.end(Signal::SIGTERM), Some(0));
}

#[test]
fn a_killed_server_leaves_no_database_behind_and_keeps_everything() {
    let machine = Machine::new(tool_or_skip!(Tool::Postgres));
    let plane = Plane::start(&machine, "data");
    let link = plane.link().unwrap().to_owned();
    let setup = [
        "setup",
        &link,
        "--email",
        "ada@example.org",
        "--password-stdin",
    ];
    machine.run(&setup, PASSWORD).unwrap();
    let mut plane = plane;
    for round in 0..3 {
        let slug = format!("tenant-{round}");
        machine.ask(&["tenant", "create", &slug]);
        let database = postmaster(&machine.path("data")).unwrap();
        assert_eq!(plane.end(Signal::SIGKILL), None);
        let killed = Instant::now();
        while kill(database, None).is_ok() {
            assert!(killed.elapsed() < PATIENCE, "PostgreSQL outlived Nimbus");
            std::thread::yield_now();
        }
        plane = Plane::start(&machine, "data");
        let login = ["login", "--server", plane.address(), "--password-stdin"];
        machine.run(&login, PASSWORD).unwrap();
        let tenants = machine.ask(&["tenant", "list"]);
        assert!(tenants.to_string().contains(&slug), "{tenants:#}");
        machine.ask(&["audit", "verify"]);
    }
    assert_eq!(plane.end(Signal::SIGTERM), Some(0));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
