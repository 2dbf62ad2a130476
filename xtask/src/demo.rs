//! `cargo xtask demo`: the main job, on a fresh machine, with nothing but this repository.
//!
//! Builds console and server and starts `nimbus up --demo`: an installation in which sixteen real
//! programs with the real AWS SDK are rehearsed on a simulated cloud. With `--cli` the same platform
//! from `new` to `destroy` in the terminal. Every command is shown before it runs, so that the reader
//! can repeat it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result};

use crate::repo::Repo;
use crate::{console, process, setup};

const WORKPLACE: &str = "target/demo";
const INSTALLATION: &str = "target/demo-server";
const ID: &str = "D1DEMO";

#[derive(clap::Args)]
pub(crate) struct DemoOptions {
    /// In the terminal, without a server: from an empty folder to a destroyed platform.
    #[arg(long)]
    cli: bool,
    /// With --cli: the template to rehearse: default, minimal, microservices or data-platform.
    #[arg(long, default_value = "default", requires = "cli")]
    template: String,
    /// With --cli: leave the simulated infrastructure instead of destroying it.
    #[arg(long, requires = "cli")]
    keep: bool,
    /// Where the console is to be found; another port if this one is taken.
    #[arg(long, default_value = "127.0.0.1:8000", conflicts_with = "cli")]
    listen: String,
}

pub(crate) fn run(repo: &Repo, options: &DemoOptions) -> Result<()> {
    setup::check()?;
    match options.cli {
        true => terminal(repo, options),
        false => server(repo, options),
    }
}

/// An installation of its own each time, so that what a visitor broke is whole again.
fn server(repo: &Repo, options: &DemoOptions) -> Result<()> {
    console::install(repo)?;
    console::build(repo)?;
    build(repo)?;
    let folder = repo.join(INSTALLATION);
    clear(&folder)?;
    let words = ["up", "--demo", "--listen", &options.listen, "--data-dir"];
    println!("\n# An installation to look at; Ctrl-C ends it");
    println!("$ nimbus {} {INSTALLATION}", words.join(" "));
    process::run_foreground(
        Command::new(repo.join("target/debug/nimbus"))
            .args(words)
            .arg(&folder)
            .current_dir(repo.root()),
    )
}

/// Leaves only what was fetched: hundreds of megabytes that are the same the next time.
fn clear(folder: &Path) -> Result<()> {
    const FETCHED: &str = "tools";
    let database = folder.join("postgres").join("postmaster.pid");
    if let Ok(text) = fs::read_to_string(&database) {
        let owner = text.lines().next().unwrap_or_default().trim();
        let alive = Command::new("kill").args(["-0", owner]).output();
        anyhow::ensure!(
            !alive.is_ok_and(|probe| probe.status.success()),
            "an earlier demonstration still runs in {INSTALLATION} (its database is process {owner}); end it first"
        );
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == FETCHED => {}
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

fn build(repo: &Repo) -> Result<()> {
    println!("building nimbus (minutes, the first time)");
    process::run_foreground(
        process::cargo()
            .args([
                "build",
                "--quiet",
                "--package",
                "nimbus-cli",
                "--bin",
                "nimbus",
            ])
            .current_dir(repo.root()),
    )
}

fn terminal(repo: &Repo, options: &DemoOptions) -> Result<()> {
    build(repo)?;
    let stage = DemoFolder::build(repo)?;
    stage.play("A workspace with the shipped components", &["new"])?;
    stage.install_packages()?;
    stage.play(
        "A deployment from a template",
        &[
            "init",
            ID,
            "--org",
            "Example",
            "--project",
            "shop",
            "--domain",
            "shop.example.com",
            "--template",
            &options.template,
            "--account-dev",
            "111111111111",
        ],
    )?;
    let deploy = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--no-typecheck",
    ];
    stage.play("Which stack needs which", &["graph", ID])?;
    stage.play("Deploy it on a simulated cloud", &deploy)?;
    stage.play("Again: nothing has changed, nothing runs", &deploy)?;
    let why = ["why", ID, "security", "--environment", "dev", "--rehearse"];
    stage.play("And it can say why", &why)?;
    if !options.keep {
        let destroy = ["destroy", ID, "--environment", "dev", "--rehearse"];
        stage.play("Take it away, in reverse order", &destroy)?;
    }
    println!(
        "\nThe workspace is {}/cloud: change a program and deploy again.",
        WORKPLACE
    );
    Ok(())
}

/// The folder in which the demo happens.
struct DemoFolder {
    nimbus: PathBuf,
    folder: PathBuf,
}

impl DemoFolder {
    fn build(repo: &Repo) -> Result<Self> {
        let folder = repo.join(WORKPLACE);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self {
            nimbus: repo.join("target/debug/nimbus"),
            folder,
        })
    }

    /// What a user of the workspace does once.
    fn install_packages(&self) -> Result<()> {
        println!("\n# The programs' packages");
        println!("$ npm ci --prefix cloud/stacks");
        process::run_logged(
            Command::new("npm")
                .args([
                    "ci",
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                    "--loglevel=error",
                ])
                .arg("--prefer-offline")
                .current_dir(self.folder.join("cloud/stacks")),
            &self.folder.join("npm.log"),
        )
        .context("the packages of the components were not installed")
    }

    fn play(&self, explanation: &str, words: &[&str]) -> Result<()> {
        println!("\n# {explanation}");
        println!("$ nimbus {}", words.join(" "));
        process::run_foreground(
            Command::new(&self.nimbus)
                .args(words)
                .current_dir(&self.folder),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_stays_and_a_running_demonstration_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        clear(&folder.path().join("never was")).unwrap();
        for name in ["tools", "postgres", "keys"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("nimbus.lock"), "").unwrap();
        let database = folder.path().join("postgres/postmaster.pid");
        fs::write(&database, format!("{}\n/data\n", std::process::id())).unwrap();
        assert!(clear(folder.path()).is_err());
        assert!(database.exists());

        fs::write(&database, "2147483647\n").unwrap();
        clear(folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert!(folder.path().join("tools").is_dir());
    }
}
