//! `cargo xtask bench units`: deployments of real programs on the simulated cloud.
//!
//! The library's default template, sixteen programs, is deployed for the first time, again without
//! changes but with every program run, again without changes as users do it, and again with one
//! program changed. Engines are compared at equal parallelism: the embedded one, the official
//! command line when its path is given, and the embedded one with TypeScript compiled by the SDK.
//! Where programs spend their time is told by themselves. How it grows with the number of units is
//! measured on small programs of the same kind, see [`growth`].

mod growth;
mod page;
mod workspace;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use self::workspace::BenchWorkspace;
use super::report::{BenchReport, machine};
use crate::repo::Repo;

const PASSPHRASE: &str = "bench";

#[derive(clap::Args)]
pub(super) struct UnitsBenchOptions {
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Compare with this official command line, the program `pulumi`.
    #[arg(long, value_name = "PATH")]
    official: Option<PathBuf>,
    /// Leave out the comparison with programs that the SDK compiles.
    #[arg(long)]
    alone: bool,
    /// Stacks at once, on every engine.
    #[arg(long, default_value_t = 4)]
    parallel: usize,
    /// Numbers of units for the growth; 0 leaves it out.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    growth: Vec<usize>,
    /// Leave out the sixteen programs of the template.
    #[arg(long)]
    only_growth: bool,
    /// Keep the figures in docs/bench; otherwise they are only shown.
    #[arg(long)]
    write: bool,
}

/// Who runs the programs, and who makes JavaScript of them.
#[derive(Clone)]
enum Way {
    Embedded,
    EmbeddedBySdk,
    /// The search path on which its command is found.
    Official(OsString),
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::EmbeddedBySdk => "embedded, SDK compiles",
            Self::Official(_) => "official",
        }
    }

    fn typescript(&self) -> &'static str {
        match self {
            Self::EmbeddedBySdk => "sdk",
            Self::Embedded | Self::Official(_) => "",
        }
    }

    /// Makes a deployment run this way.
    fn choose(&self, command: &mut Command) {
        if let Self::Official(path) = self {
            command.args(["--engine", "pulumi"]).env("PATH", path);
        }
    }

    /// The official command line at this path.
    fn official(program: &Path) -> Result<Self> {
        let program = std::path::absolute(program)?;
        let named = program.file_name() == Some("pulumi".as_ref()) && program.is_file();
        anyhow::ensure!(named, "{} is no program `pulumi`", program.display());
        let folder = program.parent().context("a program is in a folder")?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
        Ok(Self::Official(std::env::join_paths(all)?))
    }
}

pub(super) fn run(repo: &Repo, nimbus: &Path, options: &UnitsBenchOptions) -> Result<()> {
    let official = options.official.as_deref().map(Way::official).transpose()?;
    if !options.only_growth {
        sixteen(repo, nimbus, official.as_ref(), options)?;
    }
    growth::run(repo, nimbus, official.as_ref(), options)
}

fn sixteen(
    repo: &Repo,
    nimbus: &Path,
    official: Option<&Way>,
    options: &UnitsBenchOptions,
) -> Result<()> {
    let library = repo.join("library/stacks/node_modules");
    anyhow::ensure!(
        library.is_dir(),
        "the library's packages are missing: run `cargo xtask setup`"
    );
    let mut ways = vec![Way::Embedded];
    ways.extend(official.cloned());
    ways.extend((!options.alone).then_some(Way::EmbeddedBySdk));
    let mut report = BenchReport {
        bench: "units",
        title: "Sixteen programs of the default template, rehearsed",
        machine: machine(),
        cases: Vec::new(),
    };
    let mut phases = page::PhasesOfRuns::default();
    for round in 1..=options.rounds {
        for way in &ways {
            println!("round {round} of {}: {}", options.rounds, way.name());
            let home = repo.join("target/bench/units");
            let place = BenchWorkspace::new(home, nimbus, &library, way)?;
            let told = measure_life(&place, way, options.parallel, &mut report)?;
            if matches!(way, Way::Embedded) {
                phases = told;
            }
        }
    }
    if !options.write {
        print!("{}", report.table());
    } else {
        report.publish(repo)?;
        let text = format!(
            "{}\n## Engines\n\n{} at once, {}.\n\n{}",
            page::phase_table(&phases),
            options.parallel,
            report.machine,
            page::comparison(&report)
        );
        fs::write(repo.join("docs/bench/units-phases.md"), text)?;
        let chart = page::phase_chart(&phases, &report.machine);
        fs::write(repo.join("docs/bench/units-phases.svg"), chart)?;
        println!("wrote docs/bench/units-phases.md and .svg");
    }
    Ok(())
}

/// One deployment from nothing to a change.
fn measure_life(
    place: &BenchWorkspace,
    way: &Way,
    parallel: usize,
    report: &mut BenchReport,
) -> Result<page::PhasesOfRuns> {
    let parallel = parallel.to_string();
    let usual = ["--parallel", &parallel];
    let forced = ["--parallel", &parallel, "--force"];
    let mut add = |case, arguments: &[&str]| {
        let sample = place.deploy(arguments)?;
        println!("  {case}: {:.1} s", sample.wall_ms / 1e3);
        report.add(case, way.name(), sample);
        anyhow::Ok(())
    };
    add("first deploy", &usual)?;
    let first = place.take_phases()?;
    add("no-op, all run", &forced)?;
    let again = place.take_phases()?;
    add("no-op", &usual)?;
    place.change_one_program()?;
    add("one program changed", &usual)?;
    Ok(page::PhasesOfRuns { first, again })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_official_engine_is_found_first_and_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("pulumi");
        assert!(Way::official(&program).is_err(), "it is not there");
        fs::write(&program, "").unwrap();
        let mut command = Command::new("nimbus");
        Way::official(&program).unwrap().choose(&mut command);
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--engine", "pulumi"]);
        let (_, path) = command.get_envs().next().unwrap();
        let first = std::env::split_paths(path.unwrap()).next();
        assert_eq!(first.as_deref(), Some(folder.path()));
    }
}
