//! `cargo xtask bench orchestrator`: how long it takes to make and to plan a deployment, and what
//! the ready queue and skipping save.
//!
//! `init` is the real command in an empty directory. Plans and virtual runs come from the example
//! `figures` of the orchestrator crate, which needs no programs: what it says about time saved is
//! about the order of units, not about any cloud.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::measure::{self, Sample};
use super::report::{Report, machine};
use crate::process;
use crate::repo::Repo;

#[derive(Deserialize)]
struct Planned {
    units: u64,
    plan_ms: f64,
    no_op_decisions_ms: f64,
}

#[derive(Deserialize)]
struct Virtual {
    sequential_min: f64,
    barriers_min: f64,
    queue_min: f64,
    queue_4_min: f64,
    one_unit_changed_min: f64,
}

pub(super) fn run(repo: &Repo, nimbus: PathBuf, rounds: u32) -> Result<()> {
    let mut report = Report {
        bench: "orchestrator",
        title: "Making, planning and ordering a deployment",
        machine: machine(),
        cases: Vec::new(),
    };
    let log = repo.join("target/bench-orchestrator.log");
    for round in 0..rounds {
        let place = repo.join("target/bench-orchestrator");
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(&place)?;
        process::capture(Command::new(&nimbus).arg("new").current_dir(&place))?;
        let mut init = Command::new(&nimbus);
        init.args([
            "init",
            "--org",
            "o",
            "--project",
            "p",
            "--template",
            "default",
        ]);
        init.args(["--account-dev", "111111111111"])
            .current_dir(&place);
        report.add(
            "init, 16 × 3 configs",
            "nimbus",
            measure::sample(&init, &log)?,
        );

        let text = process::capture(
            Command::new("cargo")
                .args([
                    "run",
                    "--quiet",
                    "--release",
                    "--package",
                    "nimbus-orchestrator",
                ])
                .args(["--example", "figures"])
                .current_dir(repo.root()),
        )?;
        for line in text.lines() {
            if let Ok(planned) = serde_json::from_str::<Planned>(line) {
                let case = format!("{} units", planned.units);
                report.add(&case, "plan", time(planned.plan_ms));
                report.add(&case, "no-op decisions", time(planned.no_op_decisions_ms));
            } else if round == 0 {
                tell(&serde_json::from_str(line).context("a figure is not understood")?);
            }
        }
    }
    report.publish(repo)
}

fn time(wall_ms: f64) -> Sample {
    Sample {
        wall_ms,
        cpu_ms: wall_ms,
        peak_mb: 0.0,
    }
}

/// What order and skipping save on the shipped platform, against one unit after the other.
fn tell(figures: &Virtual) {
    let saved = |minutes: f64| 100.0 * (1.0 - minutes / figures.sequential_min);
    println!(
        "virtual minutes, one after the other: {}",
        figures.sequential_min
    );
    for (name, minutes) in [
        ("layers as walls", figures.barriers_min),
        ("ready queue", figures.queue_min),
        ("ready queue, four at once", figures.queue_4_min),
        ("one unit changed", figures.one_unit_changed_min),
    ] {
        println!("  {name}: {minutes} ({:.0} % saved)", saved(minutes));
    }
}
