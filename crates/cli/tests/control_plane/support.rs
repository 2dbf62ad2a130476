//! A server process, and commands that ask it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
pub(crate) const EMAIL: &str = "owner@operator.example";
pub(crate) const PASSWORD: &str = "glass lamp river 9";

/// A data directory, a home and the settings that every command gets.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    settings: Vec<(String, String)>,
}

impl Site {
    pub(crate) fn new(postgres: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        // Root's PostgreSQL runs as somebody else, who must pass through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let site = Self {
            folder,
            settings: Vec::new(),
        };
        site.with("NIMBUS_DB_BINARIES", &postgres.display().to_string())
    }

    /// One whose server carries out programs of Node, with the packages of this SDK.
    pub(crate) fn of_programs(postgres: &Path, sdk: &Path) -> Self {
        let modules = sdk.join("node_modules").display().to_string();
        Self::new(postgres)
            .with("PATH", &std::env::var("PATH").unwrap())
            .with("NIMBUS_ENGINE_SANDBOX", "best-effort")
            .with("NIMBUS_RATE_LIMITING_ENABLED", "false")
            .with("NIMBUS_RUNS_NODE_MODULES", &modules)
    }

    pub(crate) fn with(mut self, variable: &str, value: &str) -> Self {
        self.set(variable, value);
        self
    }

    pub(crate) fn set(&mut self, variable: &str, value: &str) {
        self.settings.retain(|(name, _)| name != variable);
        self.settings.push((variable.to_owned(), value.to_owned()));
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A command with nothing of the tester's own environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nimbus"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path().join("home"))
            .env("NIMBUS_CONFIG_HOME", self.folder.path().join("profiles"))
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .args(arguments);
        command
    }

    /// Runs a command to its end with something to read.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> AdminOutput {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        AdminOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command that has to succeed; its result.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        self.run_with(&with_json, "").ok()
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn up(&self) -> Up {
        self.try_up().unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// Starts the server; what it said if it did not start.
    pub(crate) fn try_up(&self) -> Result<Up, String> {
        self.try_up_with(&[])
    }

    /// As [`try_up`](Self::try_up), with more arguments.
    pub(crate) fn try_up_with(&self, more: &[&str]) -> Result<Up, String> {
        let (out, err) = (self.log("up.out"), self.log("up.err"));
        let data = self.data();
        let process = self
            .command(&["up", "--listen", "127.0.0.1:0", "--json", "--data-dir"])
            .arg(&data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let mut up = Up {
            process,
            report: Value::Null,
        };
        let started = Instant::now();
        loop {
            if let Ok(report) = serde_json::from_str(&fs::read_to_string(&out).unwrap()) {
                up.report = report;
            }
            if up.process.try_wait().unwrap().is_some() {
                let said = fs::read_to_string(&out).unwrap() + &fs::read_to_string(&err).unwrap();
                return Err(said);
            }
            if up.report["address"].is_string() {
                return Ok(up);
            }
            assert!(started.elapsed() < PATIENCE, "the server does not start");
            // tidy-allow(sleep): nothing tells when another process has written a file
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the first administrator, who is signed in from now on.
    pub(crate) fn set_up(&self, server: &Up) {
        let link = server.report["setup_link"].as_str().unwrap();
        let arguments = [
            "setup",
            link,
            "--email",
            EMAIL,
            "--password-stdin",
            "--json",
        ];
        self.run_with(&arguments, &format!("{PASSWORD}\n")).ok();
    }

    /// The process number of the private PostgreSQL.
    pub(crate) fn postmaster(&self) -> Option<i32> {
        let file = self.data().join("postgres/postmaster.pid");
        let text = fs::read_to_string(file).ok()?;
        text.lines().next()?.parse().ok()
    }
}

pub(crate) struct AdminOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl AdminOutput {
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.stdout))
    }
}

/// A server. It is killed if the test forgets it.
pub(crate) struct Up {
    pub(crate) process: Child,
    pub(crate) report: Value,
}

impl Up {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(mut self) -> i32 {
        kill(self.pid(), Signal::SIGTERM).unwrap();
        let status = self.process.wait().unwrap();
        status.code().unwrap_or(-1)
    }

    pub(crate) fn address(&self) -> String {
        let text = self.report["address"].as_str().unwrap();
        text.trim_start_matches("http://").to_owned()
    }

    pub(crate) fn login(&self, headers: &str) -> (u16, String) {
        let body = json!({"email": EMAIL, "password": PASSWORD}).to_string();
        request(
            &self.address(),
            "POST",
            "/api/v1/auth/login",
            headers,
            &body,
        )
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One HTTP request: the status, and head and body as text.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// The body of an answer.
pub(crate) fn body_of(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

/// Whether a process is there and not just waiting to be forgotten.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = text
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        // tidy-allow(sleep): nothing tells when a process that is not our child has ended
        std::thread::sleep(Duration::from_millis(20));
    }
}
