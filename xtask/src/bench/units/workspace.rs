//! A workspace with the library's default template, deployed by one engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::page::Phases;
use super::{PASSPHRASE, Way};
use crate::bench::measure;
use crate::process;

const ID: &str = "D1BENCH";

/// A workspace with one deployment and a home of its own, so that nothing is known before. Temporary
/// files are in it too: the SDK keeps programs that it has compiled among them.
pub(super) struct BenchWorkspace {
    home: PathBuf,
    nimbus: PathBuf,
    way: Way,
}

impl BenchWorkspace {
    pub(super) fn new(home: PathBuf, nimbus: &Path, packages: &Path, way: &Way) -> Result<Self> {
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(home.join("tmp"))?;
        let place = Self {
            home,
            nimbus: nimbus.to_owned(),
            way: way.clone(),
        };
        process::capture(&mut place.command(&["new"]))?;
        let init = [
            "init",
            ID,
            "--template",
            "default",
            "--org",
            "Example",
            "--project",
            "shop",
            "--domain",
            "shop.example.com",
            "--account-dev",
            "111111111111",
            "--account-stage",
            "222222222222",
            "--account-prod",
            "333333333333",
        ];
        process::capture(&mut place.command(&init))?;
        link_tree(packages, &place.path("cloud/stacks/node_modules"))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.nimbus);
        command
            .args(arguments)
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("TMPDIR", self.path("tmp"))
            .env_remove("XDG_CACHE_HOME")
            .env("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
            .env("NIMBUS_TYPESCRIPT", self.way.typescript())
            .env("NIMBUS_PHASES", self.path("phases"));
        command
    }

    pub(super) fn deploy(&self, more: &[&str]) -> Result<measure::Sample> {
        let usual = ["deploy", ID, "--environment", "dev", "--rehearse", "--json"];
        let mut command = self.command(&usual);
        command.args(more);
        self.way.choose(&mut command);
        measure::sample(&command, &self.path("log"))
    }

    /// A comment: nothing to deploy, but the program has to be run to find that out.
    pub(super) fn change_one_program(&self) -> Result<()> {
        let program = self.path("cloud/stacks/storage/src/index.ts");
        let text = fs::read_to_string(&program)?;
        Ok(fs::write(program, format!("{text}\n// changed\n"))?)
    }

    /// What programs have told since they were asked last.
    pub(super) fn take_phases(&self) -> Result<Vec<Phases>> {
        let file = self.path("phases");
        let text = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, "")?;
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).context("a program's phases"))
            .collect()
    }
}

impl Drop for BenchWorkspace {
    fn drop(&mut self) {
        // Thousands of links; the next round would remove them too.
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn link_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            // Links between packages are relative: here they lead to the copies.
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}
