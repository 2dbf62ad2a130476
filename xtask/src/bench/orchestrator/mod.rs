//! `cargo xtask bench orchestrator`: how long it takes to make, plan, order and skip.
//!
//! Three kinds of figures, and none says anything about a real cloud. *Decisions* come from the
//! example `figures` of the crate of runs: planner and state machine alone. *Order* comes from
//! the same example: the real executor over units that take as long as the graph says, a minute
//! shrunk to milliseconds. *Real* ones are the command on a workspace of small programs in
//! rehearsal, see [`super::site`].

mod page;

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::measure::{self, Sample};
use super::report::{BenchReport, machine};
use super::site::{PLATFORM, Site};
use crate::process;
use crate::repo::Repo;

#[derive(clap::Args)]
pub(super) struct OrchestratorBenchOptions {
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Units of the large deployment; its first deploy runs as many programs and takes minutes.
    #[arg(long, default_value_t = 1000)]
    units: usize,
    /// Write docs/bench/orchestrator.{md,json,svg}.
    #[arg(long)]
    write: bool,
}

/// A minute of a unit in seconds of a rehearsal.
const MINUTE: f64 = 0.25;

pub(super) const INIT: &str = "init, 16 × 3 configs";
pub(super) const ORDER: &str = "platform of 16, order";
pub(super) const SPANS: &str = "spans that nobody hears";
pub(super) const THOUSAND: &str = "a thousand of them";
pub(super) const ONE_DEPLOY: &str = "those of the platform's first deploy";
pub(super) const REAL: &str = "platform of 16, rehearsed";

#[derive(Deserialize)]
#[serde(tag = "figure", rename_all = "snake_case")]
enum OrchestratorFigure {
    Planned {
        units: u64,
        plan_ms: f64,
        no_op_decisions_ms: f64,
    },
    Order {
        way: String,
        ms: f64,
    },
    /// Spans of traces that nobody listens to.
    UnheardSpans {
        thousand_ms: f64,
    },
}

pub(super) fn run(repo: &Repo, nimbus: &Path, options: &OrchestratorBenchOptions) -> Result<()> {
    let mut report = BenchReport {
        bench: "orchestrator",
        title: "Making, planning and ordering a deployment",
        machine: machine(),
        cases: Vec::new(),
    };
    for _ in 0..options.rounds {
        init(repo, nimbus, &mut report)?;
        decisions(repo, &mut report)?;
    }
    rehearsed(repo, nimbus, &mut report)?;
    spans(repo, nimbus, &mut report)?;
    large(repo, nimbus, options.units, &mut report)?;
    let page = page::write(&report, options.units);
    println!("{page}");
    if options.write {
        report.publish_chart_of(repo, &[ORDER, REAL])?;
        std::fs::write(repo.join("docs/bench/orchestrator.md"), page)?;
        println!("wrote docs/bench/orchestrator.md");
    }
    Ok(())
}

/// The real command in an empty workspace, with the shipped default template.
fn init(repo: &Repo, nimbus: &Path, report: &mut BenchReport) -> Result<()> {
    let site = Site::empty(repo, nimbus)?;
    process::capture(&mut site.command(&["new"]))?;
    let arguments = [
        "init",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "default",
    ];
    let mut init = site.command(&arguments);
    init.args(["--account-dev", "111111111111"]);
    report.add(INIT, "nimbus", measure::sample(&init, &site.log())?);
    Ok(())
}

fn decisions(repo: &Repo, report: &mut BenchReport) -> Result<()> {
    let text = process::capture(
        process::cargo()
            .args(["run", "--quiet", "--release", "--package", "nimbus-runs"])
            .args(["--example", "figures"])
            .current_dir(repo.root()),
    )?;
    for line in text.lines() {
        match serde_json::from_str(line).context("a figure is not understood")? {
            OrchestratorFigure::Planned {
                units,
                plan_ms,
                no_op_decisions_ms,
            } => {
                let case = format!("{units} units, decisions");
                report.add(&case, "plan", time(plan_ms));
                report.add(&case, "no-op", time(no_op_decisions_ms));
            }
            OrchestratorFigure::Order { way, ms } => report.add(ORDER, &way, time(ms)),
            OrchestratorFigure::UnheardSpans { thousand_ms } => {
                report.add(SPANS, THOUSAND, time(thousand_ms));
            }
        }
    }
    Ok(())
}

/// Sixteen real programs whose resources take their time: one at a time against all that can run.
fn rehearsed(repo: &Repo, nimbus: &Path, report: &mut BenchReport) -> Result<()> {
    for parallel in ["1", "4", "16"] {
        let site = Site::platform(repo, nimbus, MINUTE)?;
        let way = match parallel {
            "1" => "one after the other".to_owned(),
            many => format!("ready queue, {many} at once"),
        };
        report.add(REAL, &way, site.deploy(&["--parallel", parallel])?);
        if parallel == "16" {
            report.add(REAL, "nothing changed", site.deploy(&[])?);
            site.change(PLATFORM[PLATFORM.len() - 1].0)?;
            report.add(REAL, "one unit changed", site.deploy(&[])?);
        }
    }
    Ok(())
}

/// How many spans a first deploy has, and so what they cost when nobody listens.
fn spans(repo: &Repo, nimbus: &Path, report: &mut BenchReport) -> Result<()> {
    let Some(thousand) = report.wall(SPANS, THOUSAND) else {
        return Ok(());
    };
    let site = Site::platform(repo, nimbus, MINUTE)?;
    let file = site.log().with_extension("trace.json");
    let path = file.display().to_string();
    site.deploy(&["--parallel", "16", "--trace", &path])?;
    let text = std::fs::read(&file).context("the trace is not there")?;
    let spans: Vec<serde_json::Value> = serde_json::from_slice(&text)?;
    let cost = thousand * spans.len() as f64 / 1000.0;
    report.add(SPANS, ONE_DEPLOY, time(cost));
    Ok(())
}

/// Many units, of which none or one has changed.
fn large(repo: &Repo, nimbus: &Path, units: usize, report: &mut BenchReport) -> Result<()> {
    let case = format!("{units} units, rehearsed");
    let site = Site::wide(repo, nimbus, units)?;
    report.add(&case, "first deploy", site.deploy(&["--parallel", "8"])?);
    for _ in 0..3 {
        report.add(&case, "nothing changed", site.deploy(&[])?);
    }
    site.change("u0000")?;
    report.add(&case, "one unit changed", site.deploy(&[])?);
    Ok(())
}

fn time(wall_ms: f64) -> Sample {
    Sample {
        wall_ms,
        cpu_ms: wall_ms,
        peak_mb: 0.0,
    }
}
