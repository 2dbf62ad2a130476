//! `cargo xtask bench control-plane`: what the control plane does per second between a catalog and running
//! infrastructure.
//!
//! An example of the store does the measuring, because developer commands name no crate of ours. What is printed is
//! kept in `docs/bench/control-plane.json` and `control-plane.md` with `--write`.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::report::machine;
use crate::process;
use crate::repo::Repo;
use crate::setup;

#[derive(clap::Args)]
pub(super) struct ControlPlaneBenchOptions {
    /// Allocations of addresses.
    #[arg(long, default_value_t = 10_000)]
    allocations: u32,
    /// Keep the figures in docs/bench.
    #[arg(long)]
    write: bool,
    /// Measure builds for debugging; the page says so.
    #[arg(long)]
    debug: bool,
}

pub(super) fn run(repo: &Repo, options: &ControlPlaneBenchOptions) -> Result<()> {
    let tools = setup::find(repo)?;
    let Some(postgres) = tools.postgres.path() else {
        bail!("no PostgreSQL: run `cargo xtask setup`");
    };
    let mut command = process::cargo();
    command.args(["run", "--quiet"]);
    if !options.debug {
        command.arg("--release");
    }
    command
        .args([
            "--package",
            "nimbus-control-store",
            "--example",
            "allocations",
            "--",
        ])
        .arg(postgres)
        .arg(options.allocations.to_string())
        .current_dir(repo.root());
    let text = process::capture(&mut command)?;
    let allocations: Value =
        serde_json::from_str(&text).context("the example printed something else")?;
    let page = page(&allocations, options.debug);
    println!("{page}");
    let given = allocations.as_array().into_iter().flatten();
    if given.clone().any(|row| row["duplicates"] != 0) {
        bail!("something was given twice");
    }
    if options.write {
        let kept = json!({
            "bench": "control-plane",
            "machine": machine(),
            "debug": options.debug,
            "figures": {"allocations": allocations},
        });
        let folder = repo.join("docs/bench");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("control-plane.json"), format!("{kept:#}\n"))?;
        fs::write(folder.join("control-plane.md"), page)?;
    }
    Ok(())
}

/// The figures for people.
fn page(allocations: &Value, debug: bool) -> String {
    let mut page = String::from(
        "# From catalog to running infrastructure\n\n\
         `cargo xtask bench control-plane --write` wrote this page; `control-plane.json` names the machine. PostgreSQL is a\n\
         private one with everything forced to disk.",
    );
    if debug {
        page.push_str(" Nimbus was built for debugging.");
    }
    page.push_str(
        "\n\n## Resolvers\n\nBlocks of addresses, asked for by sixteen at once. An answer is the configuration in force, the pool, \
         its lock and the\nlease, in two transactions. Takes from one pool are one after the other, each on disk before the next; \
         those from\ndifferent pools are not.\n\n\
         | what | allocations | duplicates | per second | p50 | p99 | released per second |\n|---|---|---|---|---|---|---|\n",
    );
    let ms = |value: &Value| format!("{:.1} ms", value.as_f64().unwrap_or_default() / 1000.0);
    for row in allocations.as_array().into_iter().flatten() {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row["what"].as_str().unwrap_or_default(),
            row["allocations"],
            row["duplicates"],
            row["per_second"],
            ms(&row["p50_us"]),
            ms(&row["p99_us"]),
            row["released_per_second"]
        );
    }
    page
}
