//! A folder with a program, a backend and a cloud made of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, compile_cache};
use serde_json::Value;
use tempfile::TempDir;

/// No wait for a program of a test may take longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What a run left behind.
pub(crate) struct ProgramRunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramRunOutput {
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("JSON: {}", self.stdout))
    }

    /// Every line of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The path of the Node SDK, or `None` after telling that the test is skipped.
pub(crate) fn node_sdk(test: &str) -> Option<PathBuf> {
    Tool::NodeSdk.find_or_record_skip(test)
}

/// The interpreter of an environment with the Python SDK.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    Tool::Python.find_or_record_skip(test)
}

pub(crate) struct Site {
    folder: TempDir,
    /// Whether its program runs without a check of its types.
    skips_types: bool,
}

impl Site {
    /// A project without code.
    pub(crate) fn new() -> Self {
        let site = Self {
            folder: TempDir::new().unwrap(),
            skips_types: false,
        };
        for name in ["program", "cloud", "home"] {
            fs::create_dir(site.path(name)).unwrap();
        }
        site.write("program/Pulumi.yaml", "name: notes\nruntime: nodejs\n");
        site
    }

    /// A program in one file of TypeScript.
    pub(crate) fn typescript(sdk: &Path, source: &str) -> Self {
        let site = Self::new();
        site.write("program/index.ts", source);
        site.write("program/package.json", r#"{"name":"notes"}"#);
        symlink(sdk.join("node_modules"), site.path("program/node_modules")).unwrap();
        site
    }

    /// The program under `fixtures/notes`, with a stack `dev` that is configured. Its providers are kept
    /// as text, so the SDK compiles it in every run; with types that takes seven seconds of processor
    /// time, without them three. Types are the subject of other tests.
    pub(crate) fn notes(sdk: &Path) -> Self {
        let site = Self {
            skips_types: true,
            ..Self::new()
        };
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/notes");
        for entry in fs::read_dir(fixture).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), site.path("program").join(entry.file_name())).unwrap();
        }
        symlink(sdk.join("node_modules"), site.path("program/node_modules")).unwrap();
        let cloud = site.path("cloud").display().to_string();
        site.config(&["set", "folder", &cloud]).ok();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of the objects that exist.
    pub(crate) fn cloud(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cloud")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut notes: Vec<String> = names.filter(|name| name.ends_with(".note")).collect();
        notes.sort();
        notes
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nimbus"));
        let backend = format!("file://{}", self.path("backend").display());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env(
                "XDG_CACHE_HOME",
                compile_cache(Path::new(env!("CARGO_BIN_EXE_nimbus"))),
            )
            .env("PULUMI_BACKEND_URL", backend)
            .env("PULUMI_CONFIG_PASSPHRASE", "correct horse")
            .env("PULUMI_STACK", "dev")
            // Packages and interpreters of tests are shared by their projects, as an operator's are.
            .env("NIMBUS_ENGINE_SANDBOX_ROOTS", shared_roots())
            .current_dir(self.path("program"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramRunOutput {
        finish(self.command(arguments).output().unwrap())
    }

    pub(crate) fn program(&self, arguments: &[&str]) -> ProgramRunOutput {
        let runs = matches!(arguments, ["up" | "preview", ..]);
        let flags: &[&str] = match self.skips_types && runs {
            true => &["--no-typecheck"],
            false => &[],
        };
        self.run(&[&["program"], arguments, flags].concat())
    }

    pub(crate) fn state(&self, arguments: &[&str]) -> ProgramRunOutput {
        self.run(&[&["state"], arguments].concat())
    }

    pub(crate) fn config(&self, arguments: &[&str]) -> ProgramRunOutput {
        self.run(&[&["stack-config"], arguments].concat())
    }

    /// Brings the stack up without a preview.
    pub(crate) fn up(&self) -> ProgramRunOutput {
        self.program(&["up", "--yes", "--skip-preview"])
    }

    /// Starts an update that writes a note and then waits for [`go`](Self::go).
    pub(crate) fn stalled_up(&self) -> Child {
        self.config(&["set", "stalls", "true"]).ok();
        let child = self
            .command(&["program", "up", "--yes", "--skip-preview", "--no-typecheck"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let slow = self.path("cloud/slow.note");
        wait_until("the slow note is written", || slow.exists());
        child
    }

    pub(crate) fn go(&self) {
        self.write("cloud/go", "");
    }
}

/// Folders with the SDKs and the interpreter behind them.
fn shared_roots() -> std::ffi::OsString {
    let folder = |path: PathBuf| path.parent()?.parent().map(Path::to_owned);
    let python = std::env::var_os("NIMBUS_TEST_PYTHON").map(PathBuf::from);
    let behind = python
        .as_ref()
        .and_then(|python| python.canonicalize().ok());
    let sdk = std::env::var_os("NIMBUS_TEST_NODE_SDK").map(PathBuf::from);
    let roots = [sdk, python.and_then(folder), behind.and_then(folder)];
    let roots: Vec<PathBuf> = roots.into_iter().flatten().collect();
    match roots.is_empty() {
        true => env!("CARGO_MANIFEST_DIR").into(),
        false => std::env::join_paths(roots).unwrap(),
    }
}

/// Waits for a process that ends by itself.
pub(crate) fn end_of(child: Child) -> ProgramRunOutput {
    finish(child.wait_with_output().unwrap())
}

pub(crate) fn finish(output: std::process::Output) -> ProgramRunOutput {
    ProgramRunOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Watches for something that another process does.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < LIMIT, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}
