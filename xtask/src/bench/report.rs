//! Samples become medians, a table with ratios, a JSON file and a chart.

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use super::chart;
use super::measure::Sample;
use crate::repo::Repo;

/// One thing that was measured, with every alternative's samples.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) alternatives: Vec<Alternative>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Alternative {
    pub(super) name: String,
    pub(super) samples: Vec<Sample>,
}

/// What a bench has to say.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    /// The name of the files in `docs/bench/`.
    pub(super) bench: &'static str,
    pub(super) title: &'static str,
    pub(super) machine: String,
    pub(super) cases: Vec<Case>,
}

impl Alternative {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            samples: Vec::new(),
        }
    }

    pub(super) fn median(&self, value: fn(&Sample) -> f64) -> f64 {
        let mut values: Vec<_> = self.samples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        match values.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => values[count / 2],
            count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
        }
    }
}

impl BenchReport {
    /// Adds a sample, in the order in which cases and alternatives first appear.
    pub(super) fn add(&mut self, case: &str, alternative: &str, sample: Sample) {
        let case = match self.cases.iter().position(|known| known.name == case) {
            Some(index) => &mut self.cases[index],
            None => {
                self.cases.push(Case {
                    name: case.to_owned(),
                    alternatives: Vec::new(),
                });
                let last = self.cases.len() - 1;
                &mut self.cases[last]
            }
        };
        match case
            .alternatives
            .iter_mut()
            .find(|known| known.name == alternative)
        {
            Some(known) => known.samples.push(sample),
            None => {
                let mut new = Alternative::new(alternative);
                new.samples.push(sample);
                case.alternatives.push(new);
            }
        }
    }

    /// One line per case and alternative; ratios compare with the first alternative of the case.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{:<22} {:<16} {:>10} {:>7} {:>10} {:>9}\n",
            "case", "alternative", "wall ms", "ratio", "cpu ms", "peak MB"
        );
        for case in &self.cases {
            let Some(first) = case.alternatives.first() else {
                continue;
            };
            let base = first.median(|sample| sample.wall_ms);
            for alternative in &case.alternatives {
                let wall = alternative.median(|sample| sample.wall_ms);
                text.push_str(&format!(
                    "{:<22} {:<16} {wall:>10.1} {:>6.2}x {:>10.1} {:>9.1}\n",
                    case.name,
                    alternative.name,
                    wall / base,
                    alternative.median(|sample| sample.cpu_ms),
                    alternative.median(|sample| sample.peak_mb),
                ));
            }
        }
        text
    }

    /// Median wall time of one alternative in milliseconds.
    pub(super) fn wall(&self, case: &str, alternative: &str) -> Option<f64> {
        let case = self.cases.iter().find(|known| known.name == case)?;
        let found = case
            .alternatives
            .iter()
            .find(|known| known.name == alternative)?;
        Some(found.median(|sample| sample.wall_ms))
    }

    /// Prints the table and writes `docs/bench/<name>.json` and `.svg`.
    pub(super) fn publish(&self, repo: &Repo) -> Result<()> {
        print!("{}", self.table());
        self.write(repo, chart::draw(self))
    }

    /// Writes the files with only these cases in the chart: bars of milliseconds say nothing beside
    /// bars of minutes.
    pub(super) fn publish_chart_of(&self, repo: &Repo, cases: &[&str]) -> Result<()> {
        let shown = Self {
            bench: self.bench,
            title: self.title,
            machine: self.machine.clone(),
            cases: self
                .cases
                .iter()
                .filter(|case| cases.contains(&case.name.as_str()))
                .cloned()
                .collect(),
        };
        self.write(repo, chart::draw(&shown))
    }

    fn write(&self, repo: &Repo, chart: String) -> Result<()> {
        let folder = repo.join("docs/bench");
        fs::create_dir_all(&folder)?;
        let json = serde_json::to_string_pretty(self)? + "\n";
        for (ending, text) in [("json", json), ("svg", chart)] {
            let path = folder.join(format!("{}.{ending}", self.bench));
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote docs/bench/{}.{ending}", self.bench);
        }
        Ok(())
    }
}

/// Processor and core count: figures mean nothing without them.
pub(super) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}

#[cfg(test)]
pub(super) fn example() -> BenchReport {
    let sample = |wall_ms| Sample {
        wall_ms,
        cpu_ms: 1.0,
        peak_mb: 2.0,
    };
    let mut report = BenchReport {
        bench: "x",
        title: "A & B",
        machine: "m".into(),
        cases: Vec::new(),
    };
    for (ours, theirs) in [(10.0, 40.0), (30.0, 20.0), (20.0, 60.0)] {
        report.add("up", "nimbus", sample(ours));
        report.add("up", "pulumi", sample(theirs));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_medians_and_ratios_to_the_first() {
        let table = example().table();
        let rows: Vec<Vec<_>> = table
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0][..4], ["up", "nimbus", "20.0", "1.00x"]);
        assert_eq!(rows[1][..4], ["up", "pulumi", "40.0", "2.00x"]);
    }

    #[test]
    fn an_even_number_of_samples_has_the_mean_of_the_middle() {
        let mut alternative = Alternative::new("x");
        for wall_ms in [4.0, 1.0, 2.0, 9.0] {
            alternative.samples.push(Sample {
                wall_ms,
                cpu_ms: 0.0,
                peak_mb: 0.0,
            });
        }
        assert_eq!(alternative.median(|sample| sample.wall_ms), 3.0);
    }

    #[test]
    fn every_sample_is_kept() {
        let report = example();
        assert_eq!(report.cases.len(), 1);
        assert_eq!(report.cases[0].alternatives[1].samples.len(), 3);
    }
}
