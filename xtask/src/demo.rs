//! `cargo xtask demo`: the main job, on a fresh machine, with nothing but this repository.
//!
//! Builds `nimbus`, lays the example out in a folder of its own with the cached SDK beside it, and
//! takes a stack through its life. Every command is shown before it runs, so that the reader can
//! repeat it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::repo::Repo;
use crate::setup::{self, Scope};

const EXAMPLE: &str = "examples/quickstart";
const WORKPLACE: &str = "target/demo";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave the stack and the files it made instead of destroying them.
    #[arg(long)]
    keep: bool,
}

/// What is shown, in order; the explanation goes before the command.
const ACTS: [(&str, &[&str]); 5] = [
    ("What would be made, changing nothing", &["preview"]),
    ("Make it", &["up", "--yes", "--skip-preview"]),
    (
        "Again: nothing has changed, nothing is done",
        &["up", "--yes", "--skip-preview"],
    ),
    (
        "What the program exports; the token stays secret",
        &["outputs"],
    ),
    ("Take it away", &["destroy", "--yes", "--skip-preview"]),
];

pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let tools = setup::install(repo, Scope::Basic)?;
    let sdk = tools
        .node_sdk
        .path()
        .context("the Node SDK is not installed")?;
    println!("building nimbus");
    process::run_foreground(
        Command::new("cargo")
            .args([
                "build",
                "--quiet",
                "--package",
                "nimbus-cli",
                "--bin",
                "nimbus",
            ])
            .current_dir(repo.root()),
    )?;
    let stage = Stage::build(repo, sdk)?;
    let count = if options.keep {
        ACTS.len() - 1
    } else {
        ACTS.len()
    };
    for (explanation, words) in &ACTS[..count] {
        stage.play(explanation, words)?;
    }
    println!("\nThat was {EXAMPLE}: read its index.ts, change it, and run this again.");
    Ok(())
}

/// The folder in which the demo happens.
struct Stage {
    nimbus: PathBuf,
    program: PathBuf,
    backend: String,
}

impl Stage {
    fn build(repo: &Repo, sdk: &Path) -> Result<Self> {
        let folder = repo.join(WORKPLACE);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let program = folder.join("quickstart");
        copy_files(&repo.join(EXAMPLE), &program)?;
        symlink(sdk.join("node_modules"), program.join("node_modules"))?;
        let state = folder.join("state");
        fs::create_dir_all(&state)?;
        Ok(Self {
            nimbus: repo.join("target/debug/nimbus"),
            program,
            backend: format!("file://{}", state.display()),
        })
    }

    fn play(&self, explanation: &str, words: &[&str]) -> Result<()> {
        println!("\n# {explanation}");
        println!(
            "$ nimbus program {} --dir quickstart --stack dev",
            words.join(" ")
        );
        process::run_foreground(
            Command::new(&self.nimbus)
                .arg("program")
                .args(words)
                .arg("--dir")
                .arg(&self.program)
                .args(["--stack", "dev", "--backend", &self.backend])
                .env("PULUMI_CONFIG_PASSPHRASE", "demo"),
        )
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
