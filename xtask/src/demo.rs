//! `cargo xtask demo`: the main job, on a fresh machine, with nothing but this repository.
//!
//! Makes a workspace, initialises the full platform from its template and rehearses it: sixteen
//! real programs with the real AWS SDK on a simulated cloud. Every command is shown before it runs,
//! so that the reader can repeat it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::repo::Repo;
use crate::setup;

const WORKPLACE: &str = "target/demo";
const ID: &str = "D1DEMO";

#[derive(clap::Args)]
pub(crate) struct DemoOptions {
    /// Template to rehearse: default, minimal, microservices or data-platform.
    #[arg(long, default_value = "default")]
    template: String,
    /// Leave the simulated infrastructure instead of destroying it.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(repo: &Repo, options: &DemoOptions) -> Result<()> {
    setup::check()?;
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
