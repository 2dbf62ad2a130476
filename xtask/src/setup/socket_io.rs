//! The official Socket.IO client for tests of live events: `tools/socket-io` installed by npm.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::InstalledTool;
use crate::cache::{DownloadCache, Recipe};
use crate::process;
use crate::repo::Repo;

const FILES: [&str; 2] = ["package.json", "package-lock.json"];

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    let entry = with_recipe(repo, |recipe| {
        cache.install(recipe, |folder| {
            println!("setup: installing the Socket.IO client with npm");
            for file in FILES {
                fs::copy(repo.join("tools/socket-io").join(file), folder.join(file))?;
            }
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ])
            .current_dir(folder);
            process::run_logged(&mut npm, &folder.join("install.log"))
                .context("the Socket.IO client was not installed")
        })
    })?;
    Ok(InstalledTool::Ready(entry))
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    with_recipe(repo, |recipe| {
        let entry = cache.entry(recipe);
        Ok(if entry.is_dir() {
            InstalledTool::Ready(entry)
        } else {
            InstalledTool::Missing("run `cargo xtask setup --integration`".into())
        })
    })
}

fn with_recipe<T>(repo: &Repo, use_it: impl FnOnce(&Recipe<'_>) -> Result<T>) -> Result<T> {
    let [package, lock] = [
        repo.read("tools/socket-io/package.json")?,
        repo.read("tools/socket-io/package-lock.json")?,
    ];
    use_it(&Recipe {
        name: "socket-io",
        inputs: &[package.as_str(), &lock],
        megabytes: 10,
    })
}
