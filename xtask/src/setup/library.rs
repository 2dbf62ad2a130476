//! The packages of `library/`, installed where its own lock files are.
//!
//! They are not in the shared cache: npm links the workspace's packages to the folders beside them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::InstalledTool;
use crate::process;
use crate::repo::Repo;

/// The sixteen components and what they share.
pub(crate) const STACKS: &str = "library/stacks";
/// The policy pack.
pub(crate) const POLICIES: &str = "library/policies/baseline";

/// Says which lock file the packages were installed from.
const STAMP: &str = "node_modules/.installed-from";

pub(crate) fn install(repo: &Repo) -> Result<InstalledTool> {
    for folder in [STACKS, POLICIES] {
        install_packages(repo, folder)?;
    }
    find(repo)
}

pub(crate) fn find(repo: &Repo) -> Result<InstalledTool> {
    Ok(if is_current(repo, STACKS)? {
        InstalledTool::Ready(repo.join(STACKS))
    } else {
        InstalledTool::Missing("run `cargo xtask setup --integration`".into())
    })
}

fn install_packages(repo: &Repo, folder: &str) -> Result<()> {
    if is_current(repo, folder)? {
        return Ok(());
    }
    println!("setup: installing the packages of {folder} with npm (about half a minute)");
    let path = repo.join(folder);
    let log = repo.join("target").join("library-packages.log");
    fs::create_dir_all(repo.join("target"))?;
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    process::run_logged(npm.current_dir(&path), &log)
        .with_context(|| format!("the packages of {folder} were not installed"))?;
    // Written last: an interrupted installation has no stamp.
    Ok(fs::write(path.join(STAMP), lock_digest(repo, folder)?)?)
}

fn is_current(repo: &Repo, folder: &str) -> Result<bool> {
    let stamp = fs::read_to_string(repo.join(folder).join(STAMP));
    Ok(stamp.is_ok_and(|stamp| lock_digest(repo, folder).is_ok_and(|digest| digest == stamp)))
}

fn lock_digest(repo: &Repo, folder: &str) -> Result<String> {
    let lock = repo.read(&format!("{folder}/package-lock.json"))?;
    Ok(hex::encode(Sha256::digest(lock.as_bytes())))
}
