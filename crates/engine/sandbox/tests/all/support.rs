//! Runs a program in a sandbox and collects what it said.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use nimbus_engine_sandbox::{
    Helper, Interpreter, Intervention, IsolationMode, Primitive, Probe, ProgramNetwork, Readable,
    ResourceLimits, Sandbox, SandboxSession, SandboxSettings, readable_by_program,
};
use nimbus_test_tools::{Tool, record_skip};

/// The languages that every hostile program is written in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    Node,
    Python,
}

pub(crate) const LANGUAGES: [Language; 2] = [Language::Node, Language::Python];

impl Language {
    /// Its interpreter; without one the test says that it did not run.
    pub(crate) fn interpreter(self, test: &str) -> Option<PathBuf> {
        match self {
            Self::Node => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let found = std::env::split_paths(&path).map(|folder| folder.join("node"));
                let found = found.into_iter().find(|node| node.is_file());
                if found.is_none() {
                    record_skip("no Node.js", test);
                }
                found
            }
            Self::Python => Tool::Python.find_or_record_skip(test),
        }
    }

    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Node => "index.js",
            Self::Python => "main.py",
        }
    }
}

pub(crate) fn helper() -> Helper {
    Helper::at(env!("CARGO_BIN_EXE_nimbus-sandbox-helper"))
}

pub(crate) fn probe() -> &'static Probe {
    static PROBE: OnceLock<Probe> = OnceLock::new();
    PROBE.get_or_init(|| Probe::run(&helper()))
}

/// Whether the whole sandbox works here; if not, the test says loudly that it proved nothing.
pub(crate) fn complete_sandbox_or_skip(test: &str) -> bool {
    let missing = probe().missing();
    for primitive in &missing {
        record_skip(&format!("no {}", primitive.title()), test);
    }
    missing.is_empty()
}

pub(crate) fn strict() -> SandboxSettings {
    SandboxSettings {
        mode: IsolationMode::Strict { allow_weak: false },
        network: ProgramNetwork::None,
        limits: ResourceLimits::default(),
        environment: Vec::new(),
        roots: Vec::new(),
        allowances: nimbus_engine_sandbox::Allowances::default(),
    }
}

/// What a program in this directory is shown.
pub(crate) fn readable(own: &Path, interpreter: &Path) -> Readable {
    let files = nimbus_engine_files::ProjectFiles::unrestricted();
    let interpreter = Interpreter::Operators(interpreter);
    readable_by_program(&files, own, own, interpreter).unwrap()
}

/// A program in a directory of its own.
pub(crate) struct Hostile {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) interpreter: PathBuf,
    pub(crate) language: Language,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) writable: Vec<PathBuf>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) intervention: Option<Intervention>,
}

impl Hostile {
    pub(crate) fn new(language: Language, interpreter: PathBuf, source: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(language.file()), source).unwrap();
        Self {
            directory,
            interpreter,
            language,
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            writable: Vec::new(),
        }
    }

    pub(crate) fn argument(mut self, argument: impl AsRef<Path>) -> Self {
        self.arguments.push(argument.as_ref().display().to_string());
        self
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command
            .arg(self.directory.path().join(self.language.file()))
            .args(&self.arguments)
            .current_dir(self.directory.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(&self.variables);
        command
    }

    pub(crate) fn start(&self, room: &mut SandboxSession) -> Child {
        let own = self.directory.path();
        let read_only = readable(own, &self.interpreter);
        let command = room.enclose(&self.command(), &read_only, &self.writable);
        let mut command = command.unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn run_in(&self, sandbox: &Sandbox) -> Outcome {
        let mut room = sandbox.open().unwrap();
        let child = self.start(&mut room);
        finish(child, &room)
    }

    pub(crate) fn run(&self, settings: SandboxSettings) -> Outcome {
        let sandbox = Sandbox::new(helper(), probe(), settings).unwrap();
        self.run_in(&sandbox)
    }
}

pub(crate) fn finish(child: Child, room: &SandboxSession) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        intervention: room.intervention(),
    }
}

impl Outcome {
    /// The attempts that a program reports, `name: what came of it`.
    pub(crate) fn attempts(&self) -> BTreeMap<&str, &str> {
        let lines = self.stdout.lines().filter_map(|line| line.split_once(": "));
        lines.collect()
    }

    /// Every attempt was made and none of them worked.
    #[track_caller]
    pub(crate) fn assert_refused(&self, expected: &[&str]) {
        assert_eq!(self.code, Some(0), "{self:#?}");
        let attempts = self.attempts();
        for name in expected {
            let result = attempts.get(name);
            if let Some(reason) = result.and_then(|result| result.strip_prefix("untried: ")) {
                record_skip(reason, name);
                continue;
            }
            let refused = result.is_some_and(|result| result.starts_with("refused"));
            assert!(refused, "{name}: {result:?} in {self:#?}");
        }
    }
}

/// Runs the test body for each language whose interpreter is here, in a complete sandbox.
pub(crate) fn in_each_language(test: &str, body: impl Fn(Language, PathBuf)) {
    if !complete_sandbox_or_skip(test) {
        return;
    }
    for language in LANGUAGES {
        if let Some(interpreter) = language.interpreter(test) {
            body(language, interpreter);
        }
    }
}

/// A machine without namespaces, as in most containers.
pub(crate) fn without_namespaces() -> Probe {
    probe().clone().without(Primitive::UserNamespaces)
}

/// What every hostile program begins with: a way to try something and say what came of it.
pub(crate) fn source(language: Language, node: &str, python: &str) -> String {
    match language {
        Language::Node => format!("{}\n{node}", include_str!("programs/attempt.js")),
        Language::Python => format!("{}\n{python}", include_str!("programs/attempt.py")),
    }
}
