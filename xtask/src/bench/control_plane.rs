//! `cargo xtask bench control-plane`: what the control plane does per second between a catalog and running
//! infrastructure.
//!
//! Examples of its crates do the measuring, because developer commands name no crate of ours. What they print is
//! kept in `docs/bench/control-plane.json` and `control-plane.md` with `--write`.

use std::ffi::OsStr;
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
    /// Runs in the queue.
    #[arg(long, default_value_t = 1_000)]
    runs: u32,
    /// Workflows on each runtime.
    #[arg(long, default_value_t = 1_000)]
    workflows: u32,
    /// Configuration items; a million takes minutes to import.
    #[arg(long, default_value_t = 1_000_000)]
    items: u32,
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
    let debug = options.debug;
    let measure = |package: &str, example: &str, tool: &OsStr, count: u32| {
        println!("measuring: {example}");
        measure(repo, debug, package, example, tool, count)
    };
    let postgres = postgres.as_os_str();
    let embedded = measure(
        "nimbus-workflows-embedded",
        "embedded_rate",
        postgres,
        options.workflows,
    )?;
    let mut workflows = vec![json!({"runtime": "PostgreSQL", "rate": embedded})];
    // Without Temporal the page has the figures of the runtime that every installation has.
    match tools.temporal.path() {
        Some(program) => {
            let package = "nimbus-workflows-temporal";
            let rate = measure(
                package,
                "temporal_rate",
                program.as_os_str(),
                options.workflows,
            )?;
            workflows.push(
                json!({"runtime": "Temporal, development server on the same machine", "rate": rate}),
            );
        }
        None => println!("left out: no Temporal; `cargo xtask setup` installs it"),
    }
    let store = "nimbus-control-store";
    let figures = json!({
        "allocations": measure(store, "allocations", postgres, options.allocations)?,
        "queue": measure("nimbus-control-runs", "queue", postgres, options.runs)?,
        "workflows": workflows,
        "inventory": measure(store, "inventory", postgres, options.items)?,
    });
    let page = page(&figures, debug);
    println!("{page}");
    let allocations = figures["allocations"].as_array().into_iter().flatten();
    if allocations.clone().any(|row| row["duplicates"] != 0) {
        bail!("something was given twice");
    }
    if options.write {
        let kept = json!({
            "bench": "control-plane",
            "machine": machine(),
            "debug": debug,
            "figures": figures,
        });
        let folder = repo.join("docs/bench");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("control-plane.json"), format!("{kept:#}\n"))?;
        fs::write(folder.join("control-plane.md"), page)?;
    }
    Ok(())
}

/// Runs an example with the tool that it needs and a number, and reads what it prints.
fn measure(
    repo: &Repo,
    debug: bool,
    package: &str,
    example: &str,
    tool: &OsStr,
    count: u32,
) -> Result<Value> {
    let mut command = process::cargo();
    command.args(["run", "--quiet"]);
    if !debug {
        command.arg("--release");
    }
    command
        .args(["--package", package, "--example", example, "--"])
        .arg(tool)
        .arg(count.to_string())
        .current_dir(repo.root());
    let text = process::capture(&mut command)?;
    serde_json::from_str(&text).with_context(|| format!("{example} printed something else"))
}

/// The figures for people.
fn page(figures: &Value, debug: bool) -> String {
    let mut page = String::from(
        "# From catalog to running infrastructure\n\n\
         `cargo xtask bench control-plane --write` wrote this page; `control-plane.json` names the machine. PostgreSQL is a\n\
         private one with everything forced to disk.",
    );
    if debug {
        page.push_str(" Nimbus was built for debugging.");
    }
    allocations(&mut page, &figures["allocations"]);
    queue(&mut page, &figures["queue"]);
    workflows(&mut page, &figures["workflows"]);
    inventory(&mut page, &figures["inventory"]);
    page
}

fn milliseconds(value: &Value) -> String {
    format!("{:.1} ms", value.as_f64().unwrap_or_default() / 1000.0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn allocations(page: &mut String, rows: &Value) {
    page.push_str(
        "\n\n## Resolvers\n\nBlocks of addresses, asked for by sixteen at once. An answer is the configuration in force, the pool, \
         its lock and the\nlease, in two transactions. Takes from one pool are one after the other, each on disk before the next; \
         those from\ndifferent pools are not.\n\n\
         | what | allocations | duplicates | per second | p50 | p99 | released per second |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows.as_array().into_iter().flatten() {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            text(&row["what"]),
            row["allocations"],
            row["duplicates"],
            row["per_second"],
            milliseconds(&row["p50_us"]),
            milliseconds(&row["p99_us"]),
            row["released_per_second"]
        );
    }
}

fn queue(page: &mut String, queue: &Value) {
    let (rate, fairness) = (&queue["rate"], &queue["fairness"]);
    let _ = write!(
        page,
        "\n## Runs\n\nThe queue with an engine that does nothing: {} runs of {} tenants, {} at once.\n\n\
         | what | per second |\n|---|---|\n| queued, one after the other | {} |\n| taken, begun and ended | {} |\n",
        rate["runs"],
        rate["tenants"],
        rate["at_once"],
        rate["queued_per_second"],
        rate["carried_out_per_second"],
    );
    let _ = write!(
        page,
        "\nOne tenant queues {} runs of {} ms each; {} others come later with one each. They begin after {} ms in the middle and\n\
         {} ms at most, while {} of the first tenant's still wait.\n",
        fairness["noisy_runs"],
        fairness["run_ms"],
        fairness["quiet_tenants"],
        fairness["quiet_wait_p50_ms"],
        fairness["quiet_wait_max_ms"],
        fairness["still_queued_of_the_noisy"],
    );
}

fn workflows(page: &mut String, rows: &Value) {
    page.push_str(
        "\n## Workflows\n\nOf one step that does nothing, started by sixteen at once and waited for; both rates count from the first start.\n\n\
         | runtime | workflows | started per second | ended per second |\n|---|---|---|---|\n",
    );
    for row in rows.as_array().into_iter().flatten() {
        let rate = &row["rate"];
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            text(&row["runtime"]),
            rate["workflows"],
            rate["started_per_second"],
            rate["ended_per_second"],
        );
    }
}

fn inventory(page: &mut String, inventory: &Value) {
    let _ = write!(
        page,
        "\n## Configuration items\n\n{} items with five relationships each, imported {} a second, 5,000 in a transaction. Then, one after \
         the other:\n\n| question | found | p50 | p99 |\n|---|---|---|---|\n",
        inventory["items"], inventory["imported_per_second"],
    );
    for row in inventory["questions"].as_array().into_iter().flatten() {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            text(&row["what"]),
            row["found"],
            milliseconds(&row["p50_us"]),
            milliseconds(&row["p99_us"]),
        );
    }
}
