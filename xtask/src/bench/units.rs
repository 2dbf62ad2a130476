//! `cargo xtask bench units`: a deployment of sixteen real programs on the simulated cloud.
//!
//! The library's default template is deployed for the first time, again without changes, and again
//! with one program changed. Two ways to run its TypeScript are compared: translated before the
//! programs start with types checked beside, and compiled by the SDK. Where programs spend their
//! time is told by themselves and becomes a table, `docs/bench/units-phases.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::measure;
use super::report::{Report, machine};
use crate::process;
use crate::repo::Repo;

const ID: &str = "D1BENCH";
const PASSPHRASE: &str = "bench";

/// A way to run TypeScript, as a variable says it.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    typescript: &'static str,
}

const WAYS: [Way; 2] = [
    Way {
        name: "translated",
        typescript: "",
    },
    Way {
        name: "by the SDK",
        typescript: "sdk",
    },
];

/// What a program says about itself when it ends, in milliseconds and kilobytes.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Phases {
    start: f64,
    sdk: f64,
    modules: f64,
    total: f64,
    user: f64,
    system: f64,
    memory: f64,
}

pub(super) fn run(repo: &Repo, nimbus: &Path, rounds: u32, alone: bool) -> Result<()> {
    let ways = if alone { &WAYS[..1] } else { &WAYS[..] };
    let library = repo.join("library/stacks/node_modules");
    anyhow::ensure!(
        library.is_dir(),
        "the library's packages are missing: run `cargo xtask setup`"
    );
    let mut report = Report {
        bench: "units",
        title: "Sixteen programs of the default template, rehearsed",
        machine: machine(),
        cases: Vec::new(),
    };
    let mut table = String::new();
    for round in 0..rounds {
        for way in ways {
            let home = repo.join("target/bench/units");
            let place = Place::new(home, nimbus, &library, *way)?;
            for case in ["first deploy", "no-op", "one program changed"] {
                if case == "one program changed" {
                    place.change_one_program()?;
                }
                report.add(case, way.name, place.deploy()?);
                if round == 0 && way.typescript.is_empty() && case == "first deploy" {
                    table = phase_table(&place.phases()?);
                }
            }
        }
    }
    report.publish(repo)?;
    print!("{table}");
    fs::write(repo.join("docs/bench/units-phases.md"), table)?;
    println!("wrote docs/bench/units-phases.md");
    Ok(())
}

/// A workspace with one deployment and a home of its own, so that nothing is known before.
struct Place {
    home: PathBuf,
    nimbus: PathBuf,
    way: Way,
}

impl Place {
    fn new(home: PathBuf, nimbus: &Path, packages: &Path, way: Way) -> Result<Self> {
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        let place = Self {
            home,
            nimbus: nimbus.to_owned(),
            way,
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
            .env_remove("XDG_CACHE_HOME")
            .env("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
            .env("NIMBUS_TYPESCRIPT", self.way.typescript)
            .env("NIMBUS_PHASES", self.path("phases"));
        command
    }

    fn deploy(&self) -> Result<measure::Sample> {
        let arguments = ["deploy", ID, "--environment", "dev", "--rehearse", "--json"];
        measure::sample(&self.command(&arguments), &self.path("log"))
    }

    /// A comment: nothing to deploy, but the program has to be run to find that out.
    fn change_one_program(&self) -> Result<()> {
        let program = self.path("cloud/stacks/storage/src/index.ts");
        let text = fs::read_to_string(&program)?;
        Ok(fs::write(program, format!("{text}\n// changed\n"))?)
    }

    fn phases(&self) -> Result<Vec<Phases>> {
        let text = fs::read_to_string(self.path("phases")).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).context("a program's phases"))
            .collect()
    }
}

impl Drop for Place {
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

/// One figure of a program.
type Figure = fn(&Phases) -> f64;

/// Medians over all programs.
fn phase_table(phases: &[Phases]) -> String {
    let median = |value: Figure| {
        let mut values: Vec<f64> = phases.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let rows: [(&str, &str, Figure); 7] = [
        ("process start", "ms", |p| p.start),
        ("SDK loaded", "ms", |p| p.sdk),
        ("program and its packages loaded", "ms", |p| p.modules),
        ("waiting for the engine and the rest", "ms", |p| {
            p.total - p.start - p.sdk - p.modules
        }),
        ("whole process", "ms", |p| p.total),
        ("processor time", "ms", |p| p.user + p.system),
        ("peak memory", "MB", |p| p.memory / 1024.0),
    ];
    let mut text = format!(
        "# Where a program's time goes\n\nMedians over the {} programs of a first deployment, \
         written by `cargo xtask bench units`.\n\n| phase | median |\n|---|---|\n",
        phases.len()
    );
    for (name, unit, value) in rows {
        text.push_str(&format!("| {name} | {:.0} {unit} |\n", median(value)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_medians_and_what_is_left() {
        let phases = |sdk| Phases {
            start: 50.0,
            sdk,
            modules: 100.0,
            total: 1000.0,
            user: 300.0,
            system: 20.0,
            memory: 102_400.0,
        };
        let table = phase_table(&[phases(200.0), phases(100.0), phases(900.0)]);
        assert!(table.contains("| SDK loaded | 200 ms |"), "{table}");
        assert!(table.contains("| peak memory | 100 MB |"), "{table}");
        assert!(table.contains("the 3 programs"), "{table}");
    }
}
