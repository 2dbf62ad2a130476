//! `cargo xtask console`: builds the web console with Vite, to where the Rust build takes it from.
//!
//! Rust builds without it, and says so on its first page; this is the only step that needs Node. The checks of
//! `cargo xtask test` build it as well, then type-check, lint and test it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::env;
use crate::linted;
use crate::process;
use crate::repo::Repo;
use crate::setup::{self, InstalledTools, SetupScope, version};

const FOLDER: &str = "console";
/// Says which lock file the packages were installed from.
const STAMP: &str = "console/node_modules/.installed-from";

#[derive(clap::Args)]
pub(crate) struct ConsoleOptions {
    /// Serve the sources with hot reload instead; requests go on to NIMBUS_SERVER or 127.0.0.1:8000.
    #[arg(long)]
    dev: bool,
    /// Build console and server, then try both in a real Chromium; `cargo xtask test` ends with the same.
    #[arg(long, conflicts_with = "dev")]
    browser: bool,
    /// With `--browser`: take every page in both themes, to `target/console-shots`.
    #[arg(long, requires = "browser")]
    pictures: bool,
}

pub(crate) fn run(repo: &Repo, options: &ConsoleOptions) -> Result<()> {
    install(repo)?;
    if options.dev {
        return process::run_foreground(&mut npm(repo, "dev"));
    }
    build(repo)?;
    if options.browser {
        let tools = setup::install(repo, SetupScope::Integration)?;
        let skips = repo.join("target/browser-skips.txt");
        let passed = browser(repo, &tools, &skips, options.pictures)?;
        print!("{}", fs::read_to_string(&skips)?);
        println!("{passed} browser tests passed");
        return Ok(());
    }
    println!("built; build nimbus again to have it in the binary");
    Ok(())
}

/// Installs the packages if the lock file is another one than last time.
pub(crate) fn install(repo: &Repo) -> Result<()> {
    version::check_node().context("the web console is built with Node")?;
    let lock = lock_digest(repo)?;
    if fs::read_to_string(repo.join(STAMP)).is_ok_and(|stamp| stamp == lock) {
        return Ok(());
    }
    println!("console: installing its packages with npm (about a minute)");
    fs::create_dir_all(repo.join("target"))?;
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ])
    .current_dir(repo.join(FOLDER));
    process::run_logged(&mut npm, &repo.join("target/console-packages.log"))
        .context("the packages of console/ were not installed")?;
    // Written last: an interrupted installation has no stamp.
    Ok(fs::write(repo.join(STAMP), lock)?)
}

pub(crate) fn build(repo: &Repo) -> Result<()> {
    process::run_foreground(&mut npm(repo, "build")).context("the console was not built")
}

/// Types, style and tests; returns how many tests passed.
pub(crate) fn check(repo: &Repo) -> Result<usize> {
    install(repo)?;
    let mut passed = 0;
    for script in ["typecheck", "lint", "test"] {
        println!("{FOLDER}: npm run {script}");
        let status = process::run_watched(&mut npm(repo, script), |line| {
            println!("{line}");
            passed += crate::library::passed_tests(line).unwrap_or(0);
        })?;
        anyhow::ensure!(
            status.success(),
            "`npm run {script}` in {FOLDER} failed, see above"
        );
    }
    build(repo)?;
    Ok(passed)
}

/// The console in a real browser against the real binary; returns how many tests passed. Without a browser, a database or
/// packages for programs, a line in `skips` says which is missing.
pub(crate) fn browser(
    repo: &Repo,
    tools: &InstalledTools,
    skips: &Path,
    pictures: bool,
) -> Result<usize> {
    fs::create_dir_all(repo.join("target"))?;
    fs::write(skips, "")?;
    // As a part of a test and with the lints of tests, because development dependencies switch features on:
    // anything else would compile almost everything a second time beside what the tests have built.
    process::run_foreground(
        linted::cargo()?
            .args(["test", "--workspace", "--no-run", "--test", "command_line"])
            .current_dir(repo.root()),
    )
    .context("the server was not built")?;
    let mut e2e = npm(repo, "e2e");
    e2e.envs(env::variables(tools)).env(env::SKIPS, skips);
    if pictures {
        e2e.env("NIMBUS_E2E_SHOTS", "1");
    }
    let mut passed = 0;
    let status = process::run_watched(&mut e2e, |line| {
        println!("{line}");
        passed += crate::library::passed_tests(line).unwrap_or(0);
    })?;
    anyhow::ensure!(
        status.success(),
        "browser tests failed, see above; target/console-shots/failed.png is the page at that moment"
    );
    Ok(passed)
}

/// Measures what the console promises, on a build of its own; fails when a budget is not kept.
pub(crate) fn bench(repo: &Repo, write: bool) -> Result<()> {
    install(repo)?;
    build(repo)?;
    let tools = setup::install(repo, SetupScope::Integration)?;
    let mut node = Command::new("node");
    node.arg("bench/measure.mjs")
        .current_dir(repo.join(FOLDER))
        .envs(env::variables(&tools));
    if write {
        node.arg("--write").arg(repo.join("docs/bench"));
    }
    process::run_foreground(&mut node).context("a budget of the console is not kept, see above")
}

fn npm(repo: &Repo, script: &str) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", script])
        .current_dir(repo.join(FOLDER))
        .env("NO_COLOR", "1");
    npm
}

fn lock_digest(repo: &Repo) -> Result<String> {
    let lock = repo.read("console/package-lock.json")?;
    Ok(hex::encode(Sha256::digest(lock.as_bytes())))
}
