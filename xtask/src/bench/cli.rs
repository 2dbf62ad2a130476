//! `cargo xtask bench cli`: how long the command line takes to say its first word.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::measure;
use super::report::{BenchReport, machine};
use crate::repo::Repo;
use crate::setup;

pub(super) fn run(repo: &Repo, nimbus: PathBuf, rounds: u32) -> Result<()> {
    let pulumi = setup::find(repo)?
        .pulumi
        .path()
        .map(|path| path.clone().into_os_string());
    // What any program costs to start here: the floor for the others.
    let mut alternatives = vec![
        ("nimbus", nimbus.into_os_string(), Some("--help")),
        ("true", "true".into(), None),
    ];
    alternatives.extend(pulumi.map(|path| ("pulumi", path, Some("--help"))));

    let log = repo.join("target/bench-cli.log");
    fs::create_dir_all(repo.join("target"))?;
    let mut report = BenchReport {
        bench: "cli",
        title: "Cold start of the command line",
        machine: machine(),
        cases: Vec::new(),
    };
    for _ in 0..rounds {
        for (name, program, argument) in &alternatives {
            let mut command = Command::new(program);
            command.args(argument);
            report.add("--help", name, measure::sample(&command, &log)?);
        }
    }
    report.publish(repo)
}
