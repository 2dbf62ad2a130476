//! `cargo xtask bench`: figures that can be repeated.
//!
//! Every figure comes from alternatives that ran side by side in one run: each round runs all of them
//! in turn, so a machine that slows down slows them all. The table shows medians and ratios to the
//! first alternative; `docs/bench/<name>.json` keeps every sample and `docs/bench/<name>.svg` the
//! chart. What an alternative costs is measured by a process of its own, see [`measure`].

mod api;
mod chart;
mod cli;
mod control_plane;
pub(crate) mod engine;
mod journal;
pub(crate) mod measure;
mod orchestrator;
mod report;
mod site;
mod tenancy;
mod units;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use crate::repo::Repo;

#[derive(clap::Args)]
pub(crate) struct BenchOptions {
    /// Measure this build of nimbus instead of a new release build of the tree.
    #[arg(long, global = true)]
    nimbus: Option<PathBuf>,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Cold start of the command line.
    Cli {
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// What it costs to record one step, for small and large states.
    Journal {
        /// Numbers of resources.
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 30_000])]
        sizes: Vec<u32>,
    },
    /// Making, planning and ordering a deployment.
    Orchestrator(orchestrator::OrchestratorBenchOptions),
    /// The embedded engine against the official command line, same programs.
    Engine {
        #[arg(long, default_value_t = 3)]
        rounds: u32,
        /// Numbers of resources.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 50, 500])]
        sizes: Vec<u32>,
        /// Keep the figures in docs/bench; otherwise they are only shown.
        #[arg(long)]
        keep: bool,
    },
    /// Sixteen programs of the library on the simulated cloud.
    Units(units::UnitsBenchOptions),
    /// The budgets of the web console, in a real Chromium.
    Console {
        /// Keep the figures in docs/bench (`console.md`, `console.json`); otherwise they are only shown.
        #[arg(long)]
        write: bool,
    },
    /// What the API answers a second, under overload too, and what memory that takes.
    Api(api::ApiBenchOptions),
    /// Allocations, queue, workflows and configuration items: what the control plane does per second.
    ControlPlane(control_plane::ControlPlaneBenchOptions),
    /// Tenants, audit, sign-in, memory: what the control plane costs.
    Tenancy(tenancy::TenancyBenchOptions),
}

pub(crate) fn run(repo: &Repo, options: &BenchOptions) -> Result<()> {
    let nimbus = || match &options.nimbus {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("no {}", path.display())),
        None => release_build(repo),
    };
    match &options.bench {
        Bench::Cli { rounds } => cli::run(repo, nimbus()?, *rounds),
        Bench::Journal { sizes } => journal::run(repo, sizes),
        Bench::Orchestrator(options) => orchestrator::run(repo, &nimbus()?, options),
        Bench::Engine {
            rounds,
            sizes,
            keep,
        } => engine::run(repo, nimbus()?, *rounds, sizes, *keep),
        Bench::Units(options) => units::run(repo, &nimbus()?, options),
        Bench::Console { write } => crate::console::bench(repo, *write),
        Bench::Api(options) => api::run(repo, options, nimbus()?),
        Bench::ControlPlane(options) => control_plane::run(repo, options),
        Bench::Tenancy(options) => tenancy::run(repo, options, nimbus),
    }
}

/// The release build of `nimbus`; a debug build would measure the wrong thing.
fn release_build(repo: &Repo) -> Result<PathBuf> {
    process::run_foreground(
        process::cargo()
            .args([
                "build",
                "--release",
                "--package",
                "nimbus-cli",
                "--bin",
                "nimbus",
            ])
            .current_dir(repo.root()),
    )?;
    Ok(repo.join("target/release/nimbus"))
}
