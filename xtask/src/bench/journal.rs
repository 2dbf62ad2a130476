//! `cargo xtask bench journal`: what it costs to record one step, for small and large states.
//!
//! The official engine writes the whole state after every step, so a step costs more the more a
//! stack has. A journal entry must cost the same always; the last column says whether it does.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::report::machine;
use crate::process;
use crate::repo::Repo;

#[derive(Debug, Deserialize, Serialize)]
struct JournalFigure {
    resources: u64,
    steps: u64,
    median_us: u64,
    p99_us: u64,
    bytes_per_step: u64,
}

#[derive(Serialize)]
struct JournalBenchReport<'a> {
    bench: &'static str,
    machine: String,
    figures: &'a [JournalFigure],
}

pub(super) fn run(repo: &Repo, sizes: &[u32]) -> Result<()> {
    let arguments: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let text = process::capture(
        process::cargo()
            .args(["run", "--release", "--quiet"])
            .args(["--package", "nimbus-engine-backend"])
            .args(["--example", "journal_cost", "--"])
            .args(arguments)
            .current_dir(repo.root()),
    )?;
    let figures: Vec<JournalFigure> =
        serde_json::from_str(&text).context("the figures are not understood")?;
    print!("{}", table(&figures));
    let report = JournalBenchReport {
        bench: "journal",
        machine: machine(),
        figures: &figures,
    };
    let json = serde_json::to_string_pretty(&report)? + "\n";
    fs::write(repo.join("docs/bench/journal.json"), json)?;
    println!("wrote docs/bench/journal.json");
    Ok(())
}

fn table(figures: &[JournalFigure]) -> String {
    let mut text = format!(
        "{:>10} {:>12} {:>10} {:>12} {:>8}\n",
        "resources", "median µs", "p99 µs", "bytes/step", "ratio"
    );
    for figure in figures {
        let first = figures.first().map_or(1, |first| first.median_us.max(1));
        text.push_str(&format!(
            "{:>10} {:>12} {:>10} {:>12} {:>7.2}x\n",
            figure.resources,
            figure.median_us,
            figure.p99_us,
            figure.bytes_per_step,
            figure.median_us as f64 / first as f64,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_with_the_smallest_state() {
        let figure = |resources, median_us| JournalFigure {
            resources,
            steps: 1,
            median_us,
            p99_us: 9,
            bytes_per_step: 7,
        };
        let table = table(&[figure(100, 20), figure(1000, 30)]);
        let last: Vec<_> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["1000", "30", "9", "7", "1.50x"]);
    }
}
