//! The pinned Pulumi Node SDK: `tools/node` installed by npm.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{InstalledTool, version};
use crate::cache::{DownloadCache, Recipe};
use crate::process;
use crate::repo::Repo;

const FILES: [&str; 2] = ["package.json", "package-lock.json"];

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<PathBuf> {
    version::check_node()?;
    with_recipe(repo, |recipe| {
        cache.install(recipe, |folder| {
            println!("setup: installing the Node SDK with npm (about a minute)");
            for file in FILES {
                fs::copy(repo.join("tools/node").join(file), folder.join(file))?;
            }
            process::run_logged(
                Command::new("npm")
                    // No package here needs its install script; running them would only add risk.
                    .args([
                        "ci",
                        "--ignore-scripts",
                        "--no-audit",
                        "--no-fund",
                        "--loglevel=error",
                    ])
                    .current_dir(folder),
                &folder.join("install.log"),
            )
            .context("the Node SDK was not installed")
        })
    })
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    with_recipe(repo, |recipe| {
        let entry = cache.entry(recipe);
        Ok(if entry.is_dir() {
            InstalledTool::Ready(entry)
        } else {
            InstalledTool::Missing("run `cargo xtask setup`".into())
        })
    })
}

fn with_recipe<T>(repo: &Repo, use_it: impl FnOnce(&Recipe<'_>) -> Result<T>) -> Result<T> {
    let [package, lock] = [
        repo.read("tools/node/package.json")?,
        repo.read("tools/node/package-lock.json")?,
    ];
    let inputs = [
        package.as_str(),
        &lock,
        std::env::consts::OS,
        std::env::consts::ARCH,
    ];
    use_it(&Recipe {
        name: "node-sdk",
        inputs: &inputs,
        megabytes: 500,
    })
}
