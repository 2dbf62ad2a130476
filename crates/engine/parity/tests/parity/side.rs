//! One of the two stacks of a case: a program folder, a backend and a world of its own.
//!
//! A side belongs to no engine: when the engines change places, each works on the other's side.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::case::{Case, Disturbance, Language};
use crate::tools::Tools;

/// The passphrase of every stack, and the salt that belongs to it. A given salt saves a run of the
/// command line, and the same one on both sides lets a case give secrets in its configuration.
pub(crate) const PASSPHRASE: &str = "parity";
pub(crate) const SALT: &str =
    "v1:9risCarbvtQ=:v1:TrAOeQSpr9T31DKm:DLWj6S2mHwG8oPeUUL5W2BQkSJIjZw==";

/// An empty stack, as the official `stack init` leaves it.
const EMPTY: &str = concat!(
    r#"{"version":3,"checkpoint":{"stack":"organization/PROJECT/STACK","latest":{"#,
    r#""manifest":{"time":"2026-01-01T00:00:00Z","#,
    r#""magic":"7dff0d166258e7f1d265e8e044021ea087795d58a0c6415ab6fe8b7c790e447f","#,
    r#""version":"v3.260.0"},"#,
    r#""secrets_providers":{"type":"passphrase","state":{"salt":"SALT"}},"metadata":{}}}}"#,
);

pub(crate) struct Side {
    pub(crate) root: PathBuf,
    case: Case,
}

impl Side {
    pub(crate) fn create(root: PathBuf, case: &Case, tools: &Tools) -> Self {
        let side = Self {
            root,
            case: case.clone(),
        };
        for folder in [side.program(), side.backend(), side.world(), side.home()] {
            fs::create_dir_all(folder).unwrap();
        }
        side.write_project(tools);
        for stack in side.stacks() {
            side.write_stack(stack);
        }
        side
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.root.join("program")
    }

    pub(crate) fn backend(&self) -> PathBuf {
        self.root.join("backend")
    }

    pub(crate) fn world(&self) -> PathBuf {
        self.root.join("world")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn stacks(&self) -> Vec<&'static str> {
        let mut stacks: Vec<_> = self.case.steps.iter().map(|step| step.stack).collect();
        stacks.sort_unstable();
        stacks.dedup();
        stacks
    }

    fn write_project(&self, tools: &Tools) {
        let program = self.program();
        copy_all(&programs().join("shared"), &program);
        if let Some(other) = self.case.packs_of {
            copy_all(&programs().join(other), &program);
        }
        copy_all(&programs().join(self.case.program), &program);
        // Policy packs of Python programs are written in TypeScript too.
        let modules = program.join("node_modules");
        symlink(tools.node_sdk.join("node_modules"), modules).unwrap();
        let runtime = match self.case.language {
            Language::TypeScript => {
                let package = format!(r#"{{"name": "{}"}}"#, self.case.program);
                fs::write(program.join("package.json"), package).unwrap();
                fs::write(program.join("tsconfig.json"), TSCONFIG).unwrap();
                "runtime: nodejs".to_owned()
            }
            Language::Python => format!(
                "runtime:\n  name: python\n  options:\n    virtualenv: {}",
                tools.virtual_environment().display()
            ),
        };
        let mut project = format!("name: {}\n{runtime}\n", self.case.program);
        if let Some(folder) = self.case.main {
            project.push_str(&format!("main: {folder}\n"));
            fs::create_dir(program.join(folder)).unwrap();
        }
        fs::write(program.join("Pulumi.yaml"), project).unwrap();
    }

    fn write_stack(&self, stack: &str) {
        let mut settings = format!("encryptionsalt: {SALT}\n");
        if !self.case.config.is_empty() {
            settings.push_str("config:\n");
            for line in self.case.config {
                settings.push_str(&format!("  {line}\n"));
            }
        }
        let file = self.program().join(format!("Pulumi.{stack}.yaml"));
        fs::write(file, settings).unwrap();
        let state = self.backend().join(".pulumi");
        let stacks = state.join("stacks").join(self.case.program);
        fs::create_dir_all(&stacks).unwrap();
        fs::write(state.join("meta.yaml"), "version: 1\n").unwrap();
        let empty = EMPTY
            .replace("PROJECT", self.case.program)
            .replace("STACK", stack)
            .replace("SALT", SALT);
        fs::write(stacks.join(format!("{stack}.json")), empty).unwrap();
        if !self.case.tags.is_empty() {
            let tags: BTreeMap<_, _> = self.case.tags.iter().copied().collect();
            let tags = json!({"version": 1, "tags": tags}).to_string();
            fs::write(stacks.join(format!("{stack}.pulumi-tags")), tags).unwrap();
        }
    }

    /// Puts a version of the program in place.
    pub(crate) fn set_version(&self, version: u32) {
        let (ending, entry) = match self.case.language {
            Language::TypeScript => ("ts", "index.ts"),
            Language::Python => ("py", "__main__.py"),
        };
        let program = self.program();
        let source = program.join(format!("step{version}.{ending}"));
        let folder = program.join(self.case.main.unwrap_or_default());
        fs::copy(&source, folder.join(entry))
            .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    }

    pub(crate) fn disturb(&self, disturbance: &Disturbance) {
        let write = |folder: PathBuf, name: &str, text: &str| {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        match disturbance {
            Disturbance::World(name, text) => write(self.world(), name, text),
            Disturbance::Program(name, text) => write(self.program(), name, text),
            // Where it is not there, the comparison of the worlds has said so already.
            Disturbance::Gone(name) => drop(fs::remove_file(self.world().join(name))),
        }
    }

    /// The state as the backend has it.
    pub(crate) fn state_file(&self, stack: &str) -> Vec<u8> {
        fs::read(self.state_path(stack)).unwrap()
    }

    pub(crate) fn state_path(&self, stack: &str) -> PathBuf {
        let stacks = self
            .backend()
            .join(".pulumi/stacks")
            .join(self.case.program);
        stacks.join(format!("{stack}.json"))
    }

    /// The provider calls since the last time, one JSON object per line.
    pub(crate) fn take_calls(&self) -> String {
        let file = self.world().join("calls.log");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text
    }

    /// What programs have noted since the last time, by the resource that each line names second;
    /// only the notes about one resource have an order.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let file = self.world().join("notes");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
        lines
    }

    /// Names and contents of what exists in the world.
    pub(crate) fn things(&self) -> Vec<(String, String)> {
        let Ok(entries) = fs::read_dir(self.world().join("things")) else {
            return Vec::new();
        };
        let mut things: Vec<_> = entries
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        things.sort();
        things
    }
}

const TSCONFIG: &str = r#"{"compilerOptions": {"target": "es2020", "module": "commonjs", "moduleResolution": "node", "strict": true}}"#;

/// Where the programs of this crate are.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

pub(crate) fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
