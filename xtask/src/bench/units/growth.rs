//! How a deployment grows with its units: small TypeScript programs with the AWS package, of which
//! nothing changed and every one is run.
//!
//! All engines run on one workspace, which the embedded one has deployed: state is the same for all
//! of them, so none has to repeat the first deployment. Each runs once before it is measured, so
//! that whatever it keeps between runs is there.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::{UnitsBenchOptions, Way, page};
use crate::bench::report::{BenchReport, machine};
use crate::bench::site::Site;
use crate::repo::Repo;

pub(super) fn run(
    repo: &Repo,
    nimbus: &Path,
    official: Option<&Way>,
    options: &UnitsBenchOptions,
) -> Result<()> {
    let sizes = options.growth.iter().copied().filter(|size| *size > 0);
    let ways: Vec<_> = [&Way::Embedded].into_iter().chain(official).collect();
    let mut report = BenchReport {
        bench: "units-growth",
        title: "Nothing changed, every unit run: from few units to many",
        machine: machine(),
        cases: Vec::new(),
    };
    for size in sizes {
        let case = if size == 1 {
            "1 unit".to_owned()
        } else {
            format!("{size} units")
        };
        let site = Site::aws(repo, nimbus, size)?;
        let parallel = options.parallel.to_string();
        let forced = ["--parallel", &parallel, "--force"];
        let deploy = |way: &Way| site.deploy_with(&forced, |command| way.choose(command));
        for way in &ways {
            deploy(way)?;
        }
        for round in 1..=options.rounds {
            for way in &ways {
                let sample = deploy(way)?;
                let (rounds, seconds) = (options.rounds, sample.wall_ms / 1e3);
                println!(
                    "{case}, round {round} of {rounds}: {}: {seconds:.1} s",
                    way.name()
                );
                report.add(&case, way.name(), sample);
            }
        }
    }
    if report.cases.is_empty() {
        return Ok(());
    }
    if !options.write {
        print!("{}", report.table());
    } else {
        report.publish(repo)?;
        fs::write(
            repo.join("docs/bench/units-growth.md"),
            text(&report, options.parallel),
        )?;
        println!("wrote docs/bench/units-growth.md");
    }
    Ok(())
}

fn text(report: &BenchReport, parallel: usize) -> String {
    format!(
        "# From few units to many\n\nNothing changed and every unit is run, {parallel} at once; {}. \
         Written by `cargo xtask bench units --write`.\n\n{}",
        report.machine,
        page::comparison(report)
    )
}
