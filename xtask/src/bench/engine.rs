//! `cargo xtask bench engine`: the embedded engine against the official command line.
//!
//! The same program runs on both, from nothing to nothing: first up, an up without changes, an up
//! with one change, destroy. The official command line is the one that setup built, else the one on
//! `PATH`. Where there is none only the embedded engine is measured, and the report has no ratio to
//! show.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::measure;
use super::report::{BenchReport, machine};
use crate::process;
use crate::repo::Repo;
use crate::setup::{self, InstalledTools, SetupScope};

const PROGRAM: &str = include_str!("program.js");
const PROJECT: &str = "name: bench\nruntime: nodejs\nmain: index.js\n";
const PASSPHRASE: &str = "bench";

/// The life of a stack: what is run, and the value of the one input that changes.
const PHASES: [(&str, Verb, &str); 4] = [
    ("first up", Verb::Up, "before"),
    ("no-op up", Verb::Up, "before"),
    ("one change", Verb::Up, "after"),
    ("destroy", Verb::Destroy, "after"),
];

#[derive(Clone, Copy)]
enum Verb {
    Up,
    Destroy,
}

enum BenchedEngine {
    Nimbus(PathBuf),
    Pulumi(PathBuf),
}

pub(super) fn run(
    repo: &Repo,
    nimbus: PathBuf,
    rounds: u32,
    sizes: &[u32],
    keep: bool,
) -> Result<()> {
    let mut tools = setup::install(repo, SetupScope::Integration)?;
    tools.add_go_tools(setup::install_go_tools(repo)?);
    let report = compare(repo, &tools, nimbus, rounds, sizes)?;
    if keep {
        return report.publish(repo);
    }
    print!("{}", report.table());
    Ok(())
}

/// The same with few resources and the build of the tests, whose figures say little: it shows that
/// both engines can still be measured.
pub(crate) fn short(repo: &Repo, tools: &InstalledTools) -> Result<()> {
    let nimbus = repo.join("target/debug/nimbus");
    print!("{}", compare(repo, tools, nimbus, 1, &[5])?.table());
    Ok(())
}

fn compare(
    repo: &Repo,
    tools: &InstalledTools,
    nimbus: PathBuf,
    rounds: u32,
    sizes: &[u32],
) -> Result<BenchReport> {
    let sdk = tools
        .node_sdk
        .path()
        .context("the Node SDK is not installed")?;
    let mut engines = vec![BenchedEngine::Nimbus(nimbus)];
    let pulumi = tools.pulumi.path().cloned();
    match pulumi.or_else(|| on_path("pulumi")) {
        Some(path) => {
            println!("compared with {}", path.display());
            engines.push(BenchedEngine::Pulumi(path));
        }
        None => println!("the official command line is not installed: nothing to compare with"),
    }

    let mut report = BenchReport {
        bench: "engine",
        title: "One stack from first up to destroy",
        machine: machine(),
        cases: Vec::new(),
    };
    for &size in sizes {
        for round in 1..=rounds {
            println!("{size} resources, round {round} of {rounds}");
            for engine in &engines {
                let stack = BenchStack::new(&repo.join("target/bench-engine"), sdk)?;
                engine.prepare(&stack)?;
                for (phase, verb, changed) in PHASES {
                    stack.configure(size, changed)?;
                    let sample = measure::sample(&engine.command(verb, &stack), &stack.log())?;
                    report.add(&format!("{size}: {phase}"), engine.name(), sample);
                }
            }
        }
    }
    Ok(report)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file())
}

/// A folder with a program and an empty backend, made anew for every round.
struct BenchStack {
    folder: PathBuf,
}

impl BenchStack {
    fn new(folder: &Path, sdk: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder.join("state"))?;
        let program = folder.join("program");
        fs::create_dir_all(&program)?;
        fs::write(program.join("index.js"), PROGRAM)?;
        fs::write(program.join("Pulumi.yaml"), PROJECT)?;
        fs::write(
            program.join("package.json"),
            "{\"name\": \"bench\", \"private\": true}\n",
        )?;
        std::os::unix::fs::symlink(sdk.join("node_modules"), program.join("node_modules"))?;
        Ok(Self {
            folder: folder.to_path_buf(),
        })
    }

    /// Only the `config` part is ours: an engine keeps its encryption salt beside it.
    fn configure(&self, count: u32, changed: &str) -> Result<()> {
        let path = self.program().join("Pulumi.dev.yaml");
        let old = fs::read_to_string(&path).unwrap_or_default();
        let kept: String = old
            .lines()
            .filter(|line| line.starts_with("encryptionsalt:"))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(
            path,
            format!("{kept}config:\n  bench:count: \"{count}\"\n  bench:changed: {changed}\n"),
        )?;
        Ok(())
    }

    fn program(&self) -> PathBuf {
        self.folder.join("program")
    }

    fn backend(&self) -> OsString {
        let mut url = OsString::from("file://");
        url.push(self.folder.join("state"));
        url
    }

    fn log(&self) -> PathBuf {
        self.folder.join("output.log")
    }
}

impl BenchedEngine {
    fn name(&self) -> &'static str {
        match self {
            Self::Nimbus(_) => "nimbus",
            Self::Pulumi(_) => "pulumi",
        }
    }

    /// The official command line wants a stack to exist before it is used.
    fn prepare(&self, stack: &BenchStack) -> Result<()> {
        match self {
            Self::Nimbus(_) => Ok(()),
            Self::Pulumi(program) => process::run_logged(
                with_environment(Command::new(program), stack).args(["stack", "init", "dev"]),
                &stack.log(),
            ),
        }
    }

    fn command(&self, verb: Verb, stack: &BenchStack) -> Command {
        let word = match verb {
            Verb::Up => "up",
            Verb::Destroy => "destroy",
        };
        match self {
            Self::Nimbus(program) => {
                let mut command = with_environment(Command::new(program), stack);
                command.args(["program", word, "--yes", "--skip-preview", "--stack", "dev"]);
                command.arg("--dir").arg(stack.program());
                command.arg("--backend").arg(stack.backend());
                command
            }
            Self::Pulumi(program) => {
                let mut command = with_environment(Command::new(program), stack);
                command.args([word, "--yes", "--skip-preview", "--non-interactive"]);
                command.args(["--stack", "dev"]);
                command
            }
        }
    }
}

fn with_environment(mut command: Command, stack: &BenchStack) -> Command {
    command
        .current_dir(stack.program())
        .env("PULUMI_BACKEND_URL", stack.backend())
        .env("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        .env("PULUMI_SKIP_UPDATE_CHECK", "true");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_keeps_its_salt_when_it_is_configured_anew() {
        let folder = tempfile::tempdir().unwrap();
        let stack = BenchStack::new(&folder.path().join("x"), folder.path()).unwrap();
        let file = stack.program().join("Pulumi.dev.yaml");
        fs::write(
            &file,
            "encryptionsalt: v1:abc\nconfig:\n  bench:count: \"9\"\n",
        )
        .unwrap();
        stack.configure(2, "after").unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "encryptionsalt: v1:abc\nconfig:\n  bench:count: \"2\"\n  bench:changed: after\n"
        );
    }

    #[test]
    fn both_engines_are_given_the_same_stack() {
        let folder = tempfile::tempdir().unwrap();
        let stack = BenchStack::new(&folder.path().join("x"), folder.path()).unwrap();
        for engine in [
            BenchedEngine::Nimbus("n".into()),
            BenchedEngine::Pulumi("p".into()),
        ] {
            let command = engine.command(Verb::Up, &stack);
            let words: Vec<_> = command
                .get_args()
                .map(|word| word.to_string_lossy())
                .collect();
            for word in ["up", "--skip-preview", "dev"] {
                assert!(words.iter().any(|known| known == word), "{words:?}");
            }
            assert_eq!(command.get_current_dir(), Some(stack.program().as_path()));
        }
    }
}
